//! Names of generated code, as compilers in processes list them for `perf`: a line `START SIZE NAME` for each function, in
//! hexadecimal digits.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The functions of generated code. Memory is used again: of functions in one place, the last in the list counts.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// By their starts: the ends, and the names.
    functions: BTreeMap<u64, (u64, String)>,
}

impl PerfMap {
    /// Reads a list. Lines that are none of it are left out.
    ///
    /// # Errors
    ///
    /// If the file can't be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut map = Self::default();
        let mut lines = BufReader::new(std::fs::File::open(path)?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            map.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(map)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (start, rest) = line.trim_end().split_once(' ')?;
        let (size, name) = rest.split_once(' ')?;
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let (start, size) = (number(start)?, number(size)?);
        let end = start.checked_add(size).filter(|&end| end > start)?;
        // What was there is no more.
        while let Some((&old, _)) =
            self.functions.range(..end).next_back().filter(|(_, old)| old.0 > start)
        {
            self.functions.remove(&old);
        }
        self.functions.insert(start, (end, name.to_owned()));
        Some(())
    }

    /// The function at an address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::PerfMap;

    #[test]
    fn the_last_function_in_a_place_counts() {
        let mut map = PerfMap::default();
        for line in [
            "1000 20 first\n",
            "0x2000 0x10 LazyCompile:*hot /a file.js:3:1\n",
            "nonsense",
            "3000 zz no",
            "3000 0 empty",
            "ffffffffffffffff 10 beyond",
            "1010 8 second",
            "4000 10 ",
        ] {
            map.add(line);
        }
        assert_eq!(map.name(0x1012), Some("second"));
        assert_eq!(map.name(0x1000), None, "it was overwritten");
        assert_eq!(map.name(0x1018), None);
        assert_eq!(map.name(0x200f), Some("LazyCompile:*hot /a file.js:3:1"));
        assert_eq!(map.name(0x2010), None);
        assert_eq!(map.name(0x3000), None);
    }
}
