//! Which GOT entries an object only calls through.
//!
//! The value of an `R_X86_64_GLOB_DAT` entry may be a function pointer that the object compares or
//! passes on; such an entry must keep it. The code tells: x86-64 reaches the GOT by rip-relative
//! operands, which are a ModRM byte with mod 00 and r/m 101 and a 32-bit displacement from the end
//! of the instruction (the displacement itself and an immediate of 0, 1, 2 or 4 bytes behind it).
//! Every byte that could be such an operand is looked at, whether or not an instruction is there,
//! so a pointer use is never missed; a chance match only makes an entry be left alone.

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
    _mm_set_epi32, _mm_set1_epi32,
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
            if any_in_range(at, low, high) {
                for position in at..at + BLOCK {
                    check(candidates, position);
                }
            }
            at += BLOCK;
        }
        while at + 4 <= end {
            check(candidates, at);
            at += 1;
        }
    }
}

/// Whether a displacement at any of the 16 positions from `at` on leads to `low..=high`. Works in
/// 32 bits: an object is smaller than that.
unsafe fn any_in_range(at: usize, low: usize, high: usize) -> bool {
    let bias = (at as i32).wrapping_add(4).wrapping_sub(low as i32).wrapping_add(i32::MIN);
    let limit = ((high - low) as i32).wrapping_add(1).wrapping_add(i32::MIN);
    // SAFETY: SSE2 is part of the baseline; the caller keeps the loads inside the code.
    unsafe {
        let limit = _mm_set1_epi32(limit);
        let mut found: __m128i = _mm_set1_epi32(0);
        for offset in 0..4 {
            let displacements = _mm_loadu_si128((at + offset) as *const __m128i);
            let base = bias.wrapping_add(offset as i32);
            let positions = _mm_set_epi32(
                base.wrapping_add(12),
                base.wrapping_add(8),
                base.wrapping_add(4),
                base,
            );
            let targets = _mm_add_epi32(displacements, positions);
            found = _mm_or_si128(found, _mm_cmpgt_epi32(limit, targets));
        }
        _mm_movemask_epi8(found) != 0
    }
}

/// Takes the four bytes at `at` for a displacement.
unsafe fn check(candidates: &mut [Candidate], at: usize) {
    // SAFETY: the caller keeps `at - 2 .. at + 4` inside the code.
    let (opcode, modrm, displacement) = unsafe {
        (*((at - 2) as *const u8), *((at - 1) as *const u8), (at as *const i32).read_unaligned())
    };
    if modrm & 0xc7 != 0x05 {
        return;
    }
    for immediate in IMMEDIATES {
        let target = (at + 4 + immediate).wrapping_add_signed(displacement as isize);
        let Ok(index) = candidates.binary_search_by_key(&target, |candidate| candidate.address)
        else {
            continue;
        };
        let Some(candidate) = candidates.get_mut(index) else { continue };
        // FF /2 is call, FF /4 is jmp.
        if immediate == 0 && opcode == 0xff && (modrm == 0x15 || modrm == 0x25) {
            candidate.called = true;
        } else {
            candidate.used_otherwise = true;
        }
    }
}
