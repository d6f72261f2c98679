//! Keys and hashes of the table in which a thread finds the node of (caller, slot).

use chase_format::layout::{FRAMED, SAMPLED, UNIT};

/// Size in bytes of an entry of the table.
pub const ENTRY: usize = 16;
/// A slot's number is multiplied by this: an odd number of entries (2^28 by the golden ratio), so that slots are
/// spread over the table.
pub const HASH: u32 = 0x9e3_779b * ENTRY as u32;
/// This is added for calls that get frames and are not all timed.
pub const FRAMED_HASH: u32 = 85 * ENTRY as u32;

/// Bit of the slot's number in a key: the entry has a row of arguments, which refers to the node.
pub const WITH_ARGUMENT: u64 = 1 << 28;

/// Returns the key of calls of `slot`, including its bits, made by the node at the address `caller`. It is never
/// zero, which marks a free entry, since no node is at address 0.
#[must_use]
#[inline]
pub const fn key(caller: usize, slot: u32) -> u64 {
    (caller as u64) << 32 | slot as u64
}

/// Returns the caller's part of a key: the lower half of its address.
#[must_use]
#[inline]
pub const fn caller_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// Returns where the search for a key begins, as an offset in bytes that is still to be masked to the table. Computed
/// as in `call.S`, where the sum is available soon after the caller. Neighbouring nodes are nine entries apart, so
/// that what is called from many neighbours does not fill runs of entries.
#[must_use]
#[inline]
pub const fn hash(key: u64) -> u32 {
    let (caller, slot) = (caller_of(key), key as u32);
    let caller = caller / (UNIT / ENTRY) as u32;
    let hash = caller.wrapping_mul(9).wrapping_add(slot.wrapping_mul(HASH));
    if slot & FRAMED == 0 { hash } else { hash.wrapping_add(FRAMED_HASH) }
}

// The call path multiplies the bare number, without these bits.
const _: () = assert!((SAMPLED | FRAMED | WITH_ARGUMENT as u32).wrapping_mul(HASH) == 0);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Computes it as the assembly does, from the bare number.
    fn as_in_assembly(caller: usize, number: u32, framed: bool) -> u32 {
        let product = number.wrapping_mul(HASH);
        let eighth = caller as u32 >> 3;
        product.wrapping_add(eighth.wrapping_mul(9)).wrapping_add(if framed {
            FRAMED_HASH
        } else {
            0
        })
    }

    #[test]
    fn the_assembly_looks_in_the_same_place() {
        for caller in [0x7f12_3456_7880, 0x7f12_ffff_ff80, UNIT] {
            for number in [0, 1, 511, (1 << 17) - 1] {
                assert_eq!(hash(key(caller, number)), as_in_assembly(caller, number, false));
                let framed = key(caller, number | SAMPLED | FRAMED);
                assert_eq!(hash(framed), as_in_assembly(caller, number, true));
            }
        }
    }

    #[test]
    fn keys_differ_by_caller_slot_and_kind() {
        let many = if cfg!(miri) { 8 } else { 50 };
        let mut keys = HashSet::new();
        for caller in (1..many).map(|node| 0x7000_0000_0000 + node * UNIT) {
            for slot in
                (0..many as u32).flat_map(|slot| [slot, slot | SAMPLED, slot | SAMPLED | FRAMED])
            {
                assert!(keys.insert(key(caller, slot)));
                assert_eq!(caller_of(key(caller, slot)), caller as u32);
            }
        }
    }

    /// Searches are short while at most a quarter of the table is used, as guaranteed.
    #[test]
    fn callers_and_slots_are_spread_over_the_table() {
        const ENTRIES: usize = 4096;
        let mut table = std::vec![false; ENTRIES];
        let mut steps = 0;
        for node in 0..64 {
            for slot in 0..16 {
                let key = key(0x7000_0000_0000 + node * UNIT, slot);
                let mut at = hash(key) as usize / ENTRY % ENTRIES;
                while table[at] {
                    at = (at + 1) % ENTRIES;
                    steps += 1;
                }
                table[at] = true;
            }
        }
        assert!(steps < 64 * 16, "{steps} steps");
    }
}
