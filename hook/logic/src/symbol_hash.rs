//! The hashes of names in the symbol tables of objects.

/// Computes the GNU hash of a name.
#[inline]
#[must_use]
pub fn gnu(name: &[u8]) -> u32 {
    // hash = hash * 33 + byte, four bytes at a time.
    const POWERS: [u32; 4] = [33 * 33 * 33, 33 * 33, 33, 1];
    let (fours, rest) = name.as_chunks::<4>();
    let hash = fours.iter().fold(5381_u32, |hash, four| {
        let bytes = four.iter().zip(POWERS).map(|(&byte, power)| u32::from(byte) * power);
        hash.wrapping_mul(33 * POWERS[0]).wrapping_add(bytes.sum())
    });
    rest.iter().fold(hash, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

/// Computes the System V hash of a name.
#[must_use]
pub fn sysv(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the ABI's documents have them.
    #[test]
    fn known_hashes() {
        for (name, in_gnu, in_sysv) in [
            ("", 0x1505, 0),
            ("printf", 0x156b_2bb8, 0x0779_05a6),
            ("exit", 0x7c96_7e3f, 0x0006_cf04),
            ("syscall", 0xbac2_12a0, 0x0b09_985c),
            ("flapenguin.me", 0x8ae9_f18e, 0x0398_7915),
        ] {
            assert_eq!((gnu(name.as_bytes()), sysv(name.as_bytes())), (in_gnu, in_sysv), "{name}");
        }
    }

    #[test]
    fn four_bytes_at_a_time_are_as_one_at_a_time() {
        let long: std::vec::Vec<u8> = (0..=255).chain([255; 40]).collect();
        for len in 0..long.len() {
            let name = long.get(..len).expect("so many bytes");
            let one = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
            assert_eq!(gnu(name), name.iter().fold(5381, one));
        }
    }
}
