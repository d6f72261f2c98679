//! The jump at the end of a stub: through the table of functions, or straight to the function.

/// The code of the jump, followed by a distance of 32 bits, relative to the end of the jump. A direct one is shorter, and
/// followed by a byte that never runs.
pub type Jump = [u8; 6];

const INDIRECT: [u8; 2] = [0xff, 0x25];
const DIRECT: u8 = 0xe9;
const DIRECT_LEN: usize = 5;
const NEVER_RUN: u8 = 0xcc;

/// Returns the jump at the address `at` to `target`, whose address is also at `place` in the table; `None` if both are too
/// far away.
#[must_use]
pub fn to(at: usize, target: usize, place: usize) -> Option<Jump> {
    let distance = |to: usize, len| i32::try_from(to.wrapping_sub(at + len) as isize).ok();
    if let Some(distance) = distance(target, DIRECT_LEN) {
        let [a, b, c, d] = distance.to_le_bytes();
        return Some([DIRECT, a, b, c, d, NEVER_RUN]);
    }
    let [code, kind] = INDIRECT;
    let [a, b, c, d] = distance(place, size_of::<Jump>())?.to_le_bytes();
    Some([code, kind, a, b, c, d])
}

/// Returns the target of the jump at the address `at`; `None` if it jumps through the table.
#[must_use]
pub fn destination(at: usize, jump: Jump) -> Option<usize> {
    let [code, a, b, c, d, _] = jump;
    let distance = i32::from_le_bytes([a, b, c, d]) as isize;
    (code == DIRECT).then(|| (at + DIRECT_LEN).wrapping_add_signed(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = 0x7f00_0000_1000;

    #[test]
    fn a_near_function_is_jumped_to() {
        for target in [AT + (1 << 31) + 4, AT + 5, AT - (1 << 31) + 5] {
            let jump = to(AT, target, AT + 0x1000).expect("a jump");
            assert_eq!(destination(AT, jump), Some(target), "{target:x}");
        }
        assert_eq!(to(AT, AT + 0x105, 0), Some([0xe9, 0, 1, 0, 0, 0xcc]));
    }

    #[test]
    fn a_distant_one_is_jumped_to_through_the_table() {
        for target in [AT + (1 << 31) + 5, AT - (1 << 31) + 4, 0x5555_0000_0000] {
            let jump = to(AT, target, AT + 0x1006).expect("a jump");
            assert_eq!(jump, [0xff, 0x25, 0, 0x10, 0, 0], "{target:x}");
            assert_eq!(destination(AT, jump), None);
        }
        assert_eq!(to(AT, 0, 0), None);
    }
}
