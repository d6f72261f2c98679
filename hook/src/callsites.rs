//! Which GOT entries an object only calls through.
//!
//! The value of an `R_X86_64_GLOB_DAT` entry may be a function pointer that the object compares or
//! passes on; such an entry must keep it. The code tells: x86-64 reaches the GOT by rip-relative
//! operands, which are a ModRM byte with mod 00 and r/m 101 and a 32-bit displacement from the end
//! of the instruction (the displacement itself and an immediate of 0, 1, 2 or 4 bytes behind it).
//! Every byte that could be such an operand is looked at, whether or not an instruction is there,
//! so a pointer use is never missed; a chance match only makes an entry be left alone.

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_and_si128, _mm_castsi128_ps, _mm_cmpeq_epi8, _mm_cmpgt_epi32,
    _mm_loadu_si128, _mm_movemask_epi8, _mm_movemask_ps, _mm_or_si128, _mm_set_epi32,
    _mm_set1_epi8, _mm_set1_epi32, _mm_setzero_si128,
};

/// A GOT entry whose uses are wanted, and what was found.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) address: usize,
    pub(crate) called: bool,
    pub(crate) used_otherwise: bool,
}

impl Candidate {
    pub(crate) fn only_called(&self) -> bool {
        self.called && !self.used_otherwise
    }
}

/// The bits of ModRM that make an operand rip-relative, and their value.
const MODRM_MASK: u8 = 0xc7;
const MODRM_RIP: u8 = 0x05;
/// Bytes of immediate that can follow a displacement.
const IMMEDIATES: [usize; 4] = [0, 1, 2, 4];

/// Looks for uses of the candidates, which are sorted by address, in the code from `start` to `end`.
///
/// # Safety
/// The code is readable.
pub(crate) unsafe fn scan(candidates: &mut [Candidate], start: usize, end: usize) {
    let (Some(first), Some(last)) = (candidates.first(), candidates.last()) else { return };
    let (low, high) = (first.address - 4, last.address);
    const BLOCK: usize = 16;
    let mut at = start + 2;
    // SAFETY: a block's loads reach 3 bytes beyond it, which the loop bound leaves inside.
    unsafe {
        while at + BLOCK + 3 < end {
            let mut positions = operands(at);
            if positions != 0 {
                positions &= in_range(at, low, high);
            }
            while positions != 0 {
                check(candidates, at + positions.trailing_zeros() as usize);
                positions &= positions - 1;
            }
            at += BLOCK;
        }
        while at + 4 <= end {
            check(candidates, at);
            at += 1;
        }
    }
}

/// Of the 16 positions from `at` on, those behind a byte that can be the ModRM byte of a
/// rip-relative operand.
unsafe fn operands(at: usize) -> u32 {
    // SAFETY: SSE2 is part of the baseline; the caller keeps the load inside the code.
    unsafe {
        let before = _mm_loadu_si128((at - 1) as *const __m128i);
        let fixed = _mm_and_si128(before, _mm_set1_epi8(MODRM_MASK as i8));
        _mm_movemask_epi8(_mm_cmpeq_epi8(fixed, _mm_set1_epi8(MODRM_RIP as i8))) as u32
    }
}

/// Of the 16 positions from `at` on, those whose displacement leads to `low..=high`. Works in 32
/// bits: an object is smaller than that.
unsafe fn in_range(at: usize, low: usize, high: usize) -> u32 {
    let bias = (at as i32).wrapping_add(4).wrapping_sub(low as i32).wrapping_add(i32::MIN);
    let limit = ((high - low) as i32).wrapping_add(1).wrapping_add(i32::MIN);
    // SAFETY: as below.
    let mut found = [unsafe { _mm_setzero_si128() }; 4];
    // SAFETY: SSE2 is part of the baseline; the caller keeps the loads inside the code.
    unsafe {
        let limit = _mm_set1_epi32(limit);
        for (offset, found) in found.iter_mut().enumerate() {
            let displacements = _mm_loadu_si128((at + offset) as *const __m128i);
            let base = bias.wrapping_add(offset as i32);
            let [b, c, d] = [4, 8, 12].map(|more| base.wrapping_add(more));
            let targets = _mm_add_epi32(displacements, _mm_set_epi32(d, c, b, base));
            *found = _mm_cmpgt_epi32(limit, targets);
        }
        let [a, b, c, d] = found;
        if _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) == 0 {
            return 0;
        }
        // Lane n of the vector for an offset is position 4n + offset.
        found.iter().enumerate().fold(0, |positions, (offset, &lanes)| {
            let lanes = _mm_movemask_ps(_mm_castsi128_ps(lanes)) as u32;
            (0..4).fold(positions, |all, lane| all | (lanes >> lane & 1) << (4 * lane + offset))
        })
    }
}

/// Takes the four bytes at `at` for a displacement.
unsafe fn check(candidates: &mut [Candidate], at: usize) {
    // SAFETY: the caller keeps `at - 2 .. at + 4` inside the code.
    let (opcode, modrm, displacement) = unsafe {
        (*((at - 2) as *const u8), *((at - 1) as *const u8), (at as *const i32).read_unaligned())
    };
    if modrm & MODRM_MASK != MODRM_RIP {
        return;
    }
    let end = (at + 4).wrapping_add_signed(displacement as isize);
    // FF /2 is call, FF /4 is jmp.
    if opcode == 0xff
        && (modrm == 0x15 || modrm == 0x25)
        && let Some(candidate) = at_address(candidates, end)
    {
        candidate.called = true;
        return;
    }
    for immediate in IMMEDIATES {
        if let Some(candidate) = at_address(candidates, end.wrapping_add(immediate)) {
            candidate.used_otherwise = true;
        }
    }
}

fn at_address(candidates: &mut [Candidate], address: usize) -> Option<&mut Candidate> {
    let index = candidates.binary_search_by_key(&address, |candidate| candidate.address).ok()?;
    candidates.get_mut(index)
}
