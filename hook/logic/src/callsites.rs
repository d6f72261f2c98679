//! Finds the GOT entries that an object uses only for calls.
//!
//! The value of an `R_X86_64_GLOB_DAT` entry may be a function pointer that the object compares or passes on; such an
//! entry must keep its value. The code tells: x86-64 accesses the GOT by rip-relative operands, which are a ModRM
//! byte with mod 00 and r/m 101, and a 32-bit displacement from the end of the instruction (behind the displacement
//! may be an immediate of 0, 1, 2 or 4 bytes). Every byte that could begin such an operand is checked, whether or not
//! an instruction is there. So no use as a pointer is missed; a chance match only means that an entry is not hooked.
//!
//! A compiler's library has a hundred megabytes of code. So a first test decides, for sixteen positions at once,
//! whether a displacement there would lead to the wanted entries; almost none does.

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_castsi128_ps, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_movemask_epi8,
    _mm_movemask_ps, _mm_or_si128, _mm_set_epi32, _mm_set1_epi32,
};

/// Bits of what is known of an entry.
const WANTED: u8 = 1;
const CALLED: u8 = 2;
const USED_OTHERWISE: u8 = 4;
const LOADED: u8 = 8;

/// Size in bytes of an entry.
pub const ENTRY: usize = 8;
/// How many bytes of code are tested at once.
const BLOCK: usize = 16;
/// The bits of ModRM that make an operand rip-relative, and their value.
const MODRM_MASK: u8 = 0xc7;
const MODRM_RIP: u8 = 0x05;
/// How many bytes of immediate can follow a displacement.
const IMMEDIATES: [usize; 4] = [0, 1, 2, 4];

/// GOT entries whose uses are wanted, and what was found of them: a byte for each entry from the first to the last.
pub struct Entries<'a> {
    first: usize,
    states: &'a mut [u8],
}

impl<'a> Entries<'a> {
    /// Begins with the entry at the address `first`; the `states` are zero.
    pub fn new(first: usize, states: &'a mut [u8]) -> Self {
        Self { first, states }
    }

    /// Asks for the uses of the entry at `address`.
    pub fn want(&mut self, address: usize) {
        if let Some(state) = self.at(address) {
            *state |= WANTED;
        }
    }

    /// Whether a wanted entry was found to be used for calls, and not in any other way.
    pub fn only_called(&self, address: usize) -> bool {
        self.index(address)
            .and_then(|index| self.states.get(index))
            .is_some_and(|state| *state == WANTED | CALLED)
    }

    /// Whether a wanted entry was found to be used for calls, and perhaps to be loaded into a register or compared with zero, as before
    /// several calls and for functions that may be missing; but not in any other way.
    pub fn called_or_loaded(&self, address: usize) -> bool {
        self.index(address)
            .and_then(|index| self.states.get(index))
            .is_some_and(|state| state & USED_OTHERWISE == 0 && state & (CALLED | LOADED) != 0)
    }

    fn at(&mut self, address: usize) -> Option<&mut u8> {
        self.states.get_mut(self.index(address)?)
    }

    fn index(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.first);
        offset.is_multiple_of(ENTRY).then_some(offset / ENTRY)
    }

    /// Searches the code from `start` to `end` for uses.
    ///
    /// Computes in 32 bits, since an object is smaller than 4 GB: the sum of a displacement and the `place` of its
    /// end, relative to the first entry, is at most `limit` (unsigned) if it leads to an entry or slightly beyond,
    /// since an immediate may follow the displacement, and `place` is that of the first of four positions.
    ///
    /// # Safety
    /// The code is readable.
    pub unsafe fn scan(&mut self, start: usize, end: usize) {
        const MORE: usize = 4 + 3;
        let mut at = start + 2;
        // SAFETY: SSE2 is part of the baseline. A block's loads reach 3 bytes beyond it, which is within the code by
        // the loop's bound.
        unsafe {
            // SSE2 only has a signed comparison.
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
                        self.check(at + bit / 4 + bit % 4 * 4, end);
                        found &= found - 1;
                    }
                }
                place = _mm_add_epi32(place, _mm_set1_epi32(BLOCK as i32));
                at += BLOCK;
            }
            while at + 4 <= end {
                self.check(at, end);
                at += 1;
            }
        }
    }

    /// Checks the four bytes at `at` as a displacement, in code up to `code_end`.
    unsafe fn check(&mut self, at: usize, code_end: usize) {
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
        // 8B is mov to a register; 83 /7 with a zero behind the displacement is cmp.
        // SAFETY: the byte is in the code.
        let immediate = (at + 4 < code_end).then(|| unsafe { *((at + 4) as *const u8) });
        let is_zero = || opcode == 0x83 && modrm == 0x3d && immediate == Some(0);
        let entry = match opcode {
            0x8b => Some(end),
            0x83 => Some(end.wrapping_add(1)),
            _ => None,
        };
        if let Some(state) = entry.and_then(|entry| self.at(entry))
            && *state & WANTED != 0
            && (opcode == 0x8b || is_zero())
        {
            *state |= LOADED;
            return;
        }
        // (Of instructions with a ModRM byte, only imul, add and its like, mov and test have an immediate of 2 or 4 bytes.)
        let may_be_long = matches!(opcode, 0x69 | 0x81 | 0xc7 | 0xf7);
        let possible = IMMEDIATES.into_iter().filter(|&len| len < 2 || may_be_long);
        for immediate in possible {
            if let Some(state) = self.at(end.wrapping_add(immediate)) {
                *state |= USED_OTHERWISE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Code and the entries that it may use, as an object has them: in one piece of memory.
    struct Object {
        memory: Vec<u64>,
        states: [u8; ENTRIES],
    }

    const ENTRIES: usize = 4;
    const CODE: usize = 256;
    const NOP: u8 = 0x90;

    impl Object {
        fn new() -> Self {
            let mut memory = std::vec![u64::from_ne_bytes([NOP; 8]); CODE / 8];
            memory.extend([0; ENTRIES]);
            Self { memory, states: [0; ENTRIES] }
        }

        fn start(&self) -> usize {
            self.memory.as_ptr().expose_provenance()
        }

        fn entry(&self, number: usize) -> usize {
            self.start() + CODE + number * ENTRY
        }

        /// Writes an instruction that uses an entry: `opcode`, the displacement of the entry, `immediate`.
        fn put(&mut self, at: usize, opcode: &[u8], entry: usize, immediate: &[u8]) {
            let end = self.start() + at + opcode.len() + 4 + immediate.len();
            let displacement = (self.entry(entry) as i64 - end as i64) as i32;
            let bytes = [opcode, &displacement.to_le_bytes(), immediate].concat();
            let code: *mut u8 = self.memory.as_mut_ptr().cast();
            for (i, &byte) in bytes.iter().enumerate() {
                // SAFETY: the place is in the code.
                unsafe { *code.add(at + i) = byte };
            }
        }

        /// Returns which entries are only called. The uses of all but the last are wanted.
        fn only_called(&mut self) -> [bool; ENTRIES] {
            let (start, first) = (self.start(), self.entry(0));
            let all = [0, 1, 2, 3].map(|number| self.entry(number));
            let mut entries = Entries::new(first, &mut self.states);
            all[..ENTRIES - 1].iter().for_each(|&entry| entries.want(entry));
            // SAFETY: the code is ours.
            unsafe { entries.scan(start, start + CODE) };
            all.map(|entry| entries.only_called(entry))
        }
    }

    const CALL: &[u8] = &[0xff, 0x15];
    const JUMP: &[u8] = &[0xff, 0x25];
    const LOAD: &[u8] = &[0x48, 0x8b, 0x05];
    const COMPARE: &[u8] = &[0x48, 0x81, 0x3d];

    #[test]
    fn calls_and_jumps_are_told_from_other_uses_wherever_they_are() {
        // (Each takes a second to interpret.)
        for at in (0..CODE - 32).step_by(if cfg!(miri) { 31 } else { 1 }) {
            let mut object = Object::new();
            object.put(at, CALL, 0, &[]);
            object.put(at + 6, JUMP, 1, &[]);
            object.put(at + 12, LOAD, 2, &[]);
            assert_eq!(object.only_called(), [true, true, false, false], "at {at}");
        }
    }

    #[test]
    fn what_is_loaded_or_compared_with_zero_may_be_called_by_a_register() {
        const TEST: &[u8] = &[0x48, 0x83, 0x3d];
        let found = |opcode: &[u8], immediate: &[u8]| {
            let mut object = Object::new();
            object.put(0, CALL, 0, &[]);
            object.put(100, opcode, 0, immediate);
            let only = object.only_called();
            let entries = Entries::new(object.entry(0), &mut object.states);
            let first = object.memory.as_ptr().expose_provenance() + CODE;
            (only[0], entries.called_or_loaded(first))
        };
        assert_eq!(found(LOAD, &[]), (false, true));
        assert_eq!(found(TEST, &[0]), (false, true));
        assert_eq!(found(TEST, &[1]), (false, false));
        // cmp with a register, push, lea.
        for opcode in [&[0x48, 0x3b, 0x05][..], &[0xff, 0x35], &[0x48, 0x8d, 0x05]] {
            assert_eq!(found(opcode, &[]), (false, false), "{opcode:x?}");
        }
    }

    #[test]
    fn an_entry_that_is_also_used_otherwise_is_not_only_called() {
        for immediate in [&[][..], &[1], &[1, 2], &[1, 2, 3, 4]] {
            let mut object = Object::new();
            object.put(0, CALL, 0, &[]);
            object.put(100, COMPARE, 0, immediate);
            assert_eq!(object.only_called(), [false; ENTRIES], "{immediate:?}");
        }
    }

    #[test]
    fn what_nobody_wants_or_uses_is_not_only_called() {
        let mut object = Object::new();
        object.put(0, CALL, ENTRIES - 1, &[]);
        assert_eq!(object.only_called(), [false; ENTRIES]);
    }

    #[test]
    fn the_last_bytes_of_the_code_are_looked_at() {
        let mut object = Object::new();
        object.put(CODE - 6, CALL, 1, &[]);
        assert_eq!(object.only_called(), [false, true, false, false]);
    }
}
