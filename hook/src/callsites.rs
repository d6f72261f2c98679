//! Which GOT entries an object only calls through.
//!
//! The value of an `R_X86_64_GLOB_DAT` entry may be a function pointer that the object compares or
//! passes on; such an entry must keep it. The code tells: x86-64 reaches the GOT by rip-relative
//! operands, which are a ModRM byte with mod 00 and r/m 101 and a 32-bit displacement from the end
//! of the instruction (the displacement itself and an immediate of 0, 1, 2 or 4 bytes behind it).
//! Every byte that could be such an operand is looked at, whether or not an instruction is there,
//! so a pointer use is never missed; a chance match only makes an entry be left alone.
//!
//! A compiler's library has a hundred megabytes of code. So it is first asked, for sixteen places at
//! once, whether a displacement there would lead to the wanted entries; almost none does.

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_castsi128_ps, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_movemask_epi8,
    _mm_movemask_ps, _mm_or_si128, _mm_set_epi32, _mm_set1_epi32,
};

/// What is known of an entry.
const WANTED: u8 = 1;
const CALLED: u8 = 2;
const USED_OTHERWISE: u8 = 4;

/// Size of an entry.
pub(crate) const ENTRY: usize = 8;
/// Bytes of code that are looked at together.
const BLOCK: usize = 16;
/// The bits of ModRM that make an operand rip-relative, and their value.
const MODRM_MASK: u8 = 0xc7;
const MODRM_RIP: u8 = 0x05;
/// Bytes of immediate that can follow a displacement.
const IMMEDIATES: [usize; 4] = [0, 1, 2, 4];

/// GOT entries whose uses are wanted, and what was found: a byte for each entry from the first to
/// the last.
pub(crate) struct Entries<'a> {
    first: usize,
    states: &'a mut [u8],
}

impl<'a> Entries<'a> {
    /// Those from the address `first` on; the `states` are zero.
    pub(crate) fn new(first: usize, states: &'a mut [u8]) -> Self {
        Self { first, states }
    }

    /// The uses of the entry at `address` are wanted.
    pub(crate) fn want(&mut self, address: usize) {
        if let Some(state) = self.at(address) {
            *state |= WANTED;
        }
    }

    /// Whether a wanted entry was found to be called through, and to be used in no other way.
    pub(crate) fn only_called(&self, address: usize) -> bool {
        self.index(address)
            .and_then(|index| self.states.get(index))
            .is_some_and(|state| *state == WANTED | CALLED)
    }

    fn at(&mut self, address: usize) -> Option<&mut u8> {
        self.states.get_mut(self.index(address)?)
    }

    fn index(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.first);
        offset.is_multiple_of(ENTRY).then_some(offset / ENTRY)
    }

    /// Looks for uses in the code from `start` to `end`.
    ///
    /// Works in 32 bits, since an object is smaller than that: the sum of a displacement and the
    /// `place` of its end, from the first entry on, is at most `limit` (as of numbers without sign)
    /// where it leads to an entry, or almost: an immediate may be behind the displacement, and the
    /// `place` is that of the first of four offsets.
    ///
    /// # Safety
    /// The code is readable.
    pub(crate) unsafe fn scan(&mut self, start: usize, end: usize) {
        const MORE: usize = 4 + 3;
        let mut at = start + 2;
        // SAFETY: SSE2 is part of the baseline. A block's loads reach 3 bytes beyond it, which the
        // loop bound leaves inside.
        unsafe {
            // There is only a comparison of numbers with a sign.
            let limit = ((self.states.len() * ENTRY + MORE) as i32).wrapping_add(i32::MIN);
            let limit = _mm_set1_epi32(limit);
            let first = (self.first - MORE) as i32;
            let place = (at as i32).wrapping_add(4).wrapping_sub(first).wrapping_add(i32::MIN);
            let mut place = _mm_add_epi32(_mm_set1_epi32(place), _mm_set_epi32(12, 8, 4, 0));
            while at + BLOCK + 3 < end {
                let leads = |offset| {
                    let displacements = _mm_loadu_si128((at + offset) as *const __m128i);
                    _mm_cmpgt_epi32(limit, _mm_add_epi32(displacements, place))
                };
                let [a, b, c, d] = [leads(0), leads(1), leads(2), leads(3)];
                if _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) != 0 {
                    let [a, b, c, d] =
                        [a, b, c, d].map(|all| _mm_movemask_ps(_mm_castsi128_ps(all)));
                    // Four bits for each offset.
                    let mut found = a | b << 4 | c << 8 | d << 12;
                    while found != 0 {
                        let bit = found.trailing_zeros() as usize;
                        self.check(at + bit / 4 + bit % 4 * 4);
                        found &= found - 1;
                    }
                }
                place = _mm_add_epi32(place, _mm_set1_epi32(BLOCK as i32));
                at += BLOCK;
            }
            while at + 4 <= end {
                self.check(at);
                at += 1;
            }
        }
    }

    /// Takes the four bytes at `at` for a displacement.
    unsafe fn check(&mut self, at: usize) {
        // SAFETY: the caller keeps `at - 2 .. at + 4` inside the code.
        let (opcode, modrm, displacement) = unsafe {
            let displacement = (at as *const i32).read_unaligned();
            (*((at - 2) as *const u8), *((at - 1) as *const u8), displacement)
        };
        if modrm & MODRM_MASK != MODRM_RIP {
            return;
        }
        let end = (at + 4).wrapping_add_signed(displacement as isize);
        // FF /2 is call, FF /4 is jmp.
        if opcode == 0xff
            && (modrm == 0x15 || modrm == 0x25)
            && let Some(state) = self.at(end)
            && *state & WANTED != 0
        {
            *state |= CALLED;
            return;
        }
        for immediate in IMMEDIATES {
            if let Some(state) = self.at(end.wrapping_add(immediate)) {
                *state |= USED_OTHERWISE;
            }
        }
    }
}
