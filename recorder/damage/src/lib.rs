//! What tests and fuzzers of the readers share, and nothing else links: damage to files, described by few bytes, since these are
//! easier to vary than recordings, which are long and mostly zero; random bytes that are the same in each run; and an allocator
//! that says how much memory a reader takes, and has a limit.
//!
//! What this crate does not do: know what a recording is.

mod bounded;

pub use bounded::{Bounded, peak_bytes, reset_peak};

/// Bytes that describe one damage.
pub const STEP: usize = 8;
/// What is behind so many is ignored.
pub const MOST_STEPS: usize = 64;

/// Numbers that code is wrong about.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 52,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Changes `files` as `script` says, [`STEP`] bytes a change: a byte or a number replaced, a bit flipped, a number a little larger
/// or smaller, a stretch copied from elsewhere, zeroed or taken out, the end cut off. Half of them hit what is not zero. Nothing
/// gets longer than it was.
pub fn damage(files: &mut [Vec<u8>], script: &[u8]) {
    for step in script.as_chunks::<STEP>().0.iter().take(MOST_STEPS) {
        let [what, which, low, middle, high, first, second, third] = *step;
        let place = u32::from_le_bytes([low, middle, high, 0]) as usize;
        let from = usize::from(second) << 8 | usize::from(third);
        let count = files.len();
        if count == 0 || files.iter().all(Vec::is_empty) {
            return;
        }
        let which = usize::from(which) % count;
        let file = &mut files[which];
        if file.is_empty() {
            continue;
        }
        // Places are three bytes long; what is longer is hit in steps.
        let at = ((place as u128 * file.len() as u128) >> 24) as usize;
        let at = if what & 0x80 == 0 { next_used(file, at) } else { at };
        let number = NUMBERS[usize::from(first) % NUMBERS.len()];
        match what % 9 {
            0 => file[at] = first,
            1 => file[at] ^= 1 << (first % 8),
            2 => put(file, at & !3, &(number as u32).to_le_bytes()),
            3 => put(file, at & !7, &number.to_le_bytes()),
            4 => {
                let at = at & !3;
                let old = file.get(at..at + 4).and_then(|it| it.first_chunk()).copied();
                let old = u32::from_le_bytes(old.unwrap_or_default());
                put(file, at, &old.wrapping_add_signed(i32::from(first as i8)).to_le_bytes());
            }
            5 => {
                let len = 1 + usize::from(first) * 16;
                let source = &files[usize::from(third) % count];
                let start = (from * source.len()) >> 16;
                let stretch = source[start..source.len().min(start + len)].to_vec();
                put(&mut files[which], at, &stretch);
            }
            6 => {
                let end = file.len().min(at + 1 + usize::from(first) * 16);
                file[at..end].fill(0);
            }
            7 => {
                // A page, so that what comes behind keeps its place in its own.
                let page = at & !4095;
                let end = file.len().min(page + 4096);
                file.drain(page..end);
            }
            _ => file.truncate(at),
        }
    }
}

/// The first place from `at` on that is not zero, or `at`.
fn next_used(file: &[u8], at: usize) -> usize {
    file[at..].iter().position(|&byte| byte != 0).map_or(at, |behind| at + behind)
}

/// Puts `bytes` at a place, as far as there is room.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..) {
        let len = bytes.len().min(place.len());
        place[..len].copy_from_slice(&bytes[..len]);
    }
}

/// Marsaglia's generator: the same numbers for the same seed, which is not 0, wherever it runs.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, damage};

    #[test]
    fn each_script_is_followed_and_makes_nothing_longer() {
        let mut random = Random(1);
        let whole = [vec![0; 5000], random.bytes(300), Vec::new()];
        let mut changed = 0;
        for _ in 0..2_000 {
            let mut files = whole.clone();
            damage(&mut files, &random.bytes(24));
            assert!(files.iter().zip(&whole).all(|(now, before)| now.len() <= before.len()));
            changed += u32::from(files != whole);
        }
        assert!(changed > 1_000, "{changed}");
        damage(&mut [], &[0; 8]);
        damage(&mut [Vec::new()], &[0; 8]);
    }
}
