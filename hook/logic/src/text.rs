//! Text in a fixed buffer: paths and lines, made without allocation. What does not fit is cut off, which
//! [`Text::is_cut`] reports.

#[cfg(not(miri))]
use core::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_setzero_si128,
};
use core::ffi::CStr;
use core::ptr;

/// Up to `N - 1` bytes, followed by a NUL.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
    cut: bool,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Text<N> {
    /// Returns an empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0, cut: false }
    }

    /// Empties the text.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
        (self.len, self.cut) = (0, false);
    }

    /// Appends bytes; a NUL in them ends the C string early.
    pub fn push(&mut self, bytes: &[u8]) -> &mut Self {
        for &byte in bytes {
            match self.bytes.get_mut(self.len) {
                Some(place) if self.len + 1 < N => *place = byte,
                _ => {
                    self.cut = true;
                    return self;
                }
            }
            self.len += 1;
        }
        self
    }

    /// Appends a number in decimal.
    pub fn push_number(&mut self, number: u64) -> &mut Self {
        if number >= 10 {
            self.push_number(number / 10);
        }
        self.push(&[b'0' + (number % 10) as u8])
    }

    /// Appends the parts, with this separator between them, so that `left` more bytes fit. The part that doesn't fit is cut, and
    /// those after it are left out.
    pub fn push_joined<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a [u8]>,
        separator: &[u8],
        left: usize,
    ) {
        for (i, part) in parts.enumerate() {
            let room = self.room().saturating_sub(left + separator.len());
            if room == 0 {
                break;
            }
            let part = part.get(..room).unwrap_or(part);
            self.push(if i > 0 { separator } else { b"" }).push(part);
        }
    }

    /// Returns how many more bytes fit.
    #[must_use]
    pub fn room(&self) -> usize {
        N.saturating_sub(1).saturating_sub(self.len)
    }

    /// Returns the text without the NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// Returns the text up to the first NUL.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// Whether something was cut off.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

/// Returns the last component of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Returns a path up to its last slash; empty if it has none.
#[must_use]
pub fn directory_of(path: &[u8]) -> &[u8] {
    path.get(..path.len() - file_name(path).len()).unwrap_or(&[])
}

/// Whether `path` ends with the components of `relative`: whether `relative` leads to it from one of the directories that
/// it is in. Repeated slashes and `.` don't count; a `..` matches nothing.
pub fn ends_with_path(path: &[u8], relative: &[u8]) -> bool {
    let components = |path| {
        <[u8]>::split(path, |&byte| byte == b'/').rev().filter(|name| !matches!(*name, b"" | b"."))
    };
    let mut last = components(path);
    components(relative).all(|name| name != b".." && last.next() == Some(name))
}

/// Returns the bytes of the C string at `address`; empty for null.
#[inline]
pub fn c_bytes(address: usize) -> &'static [u8] {
    if address == 0 {
        return &[];
    }
    #[cfg(miri)]
    // SAFETY: as below. (Blocks may extend beyond the string within its page, but Miri only allows reads within an
    // allocation.)
    return unsafe { CStr::from_ptr(ptr::with_exposed_provenance(address)) }.to_bytes();
    #[cfg(not(miri))]
    blocks_until_nul(address)
}

/// Returns the bytes of the C string at `address`, read in blocks.
#[cfg(not(miri))]
#[inline]
fn blocks_until_nul(address: usize) -> &'static [u8] {
    // Names of symbols are long, and there are many, so sixteen bytes are read at once. An aligned block is within
    // one page.
    let mut block: *const __m128i = ptr::with_exposed_provenance(address & !15);
    let nuls = |block: *const __m128i| {
        // SAFETY: sSE2 is part of the baseline; the string extends into the block.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(block), _mm_setzero_si128())) }
    };
    let mut found = nuls(block) & -1 << (address & 15);
    while found == 0 {
        block = block.wrapping_add(1);
        found = nuls(block);
    }
    let len = block.addr() + found.trailing_zeros() as usize - address;
    // SAFETY: callers pass addresses of strings of the dynamic linker or from the process's start, which live as long
    // as the object or process that they describe.
    unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(address), len) }
}

/// Whether `text` matches `pattern`, in which `*` matches any bytes and `?` any one byte.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(b'?'), Some(_)) => (p, t) = (p + 1, t + 1),
            (Some(a), Some(b)) if a == b => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((star_p, star_t)) => {
                    star = Some((star_p, star_t + 1));
                    (p, t) = (star_p + 1, star_t + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|&byte| byte == b'*')
}

/// Whether this API of this object matches `OBJECT`, `OBJECT:API` or `:API`, which are globs.
pub(crate) fn matches_item(item: &[u8], object: &[u8], api: &[u8]) -> bool {
    let object = file_name(object);
    let mut parts = item.splitn(2, |&byte| byte == b':');
    let of_object = parts.next().unwrap_or(b"");
    let of_api = parts.next().unwrap_or(b"*");
    (of_object.is_empty() || glob(of_object, object)) && glob(of_api, api)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_cut_and_says_so() {
        let mut text = Text::<6>::new();
        text.push(b"ab").push_number(90);
        assert_eq!((text.as_bytes(), text.is_cut(), text.room()), (&b"ab90"[..], false, 1));
        text.push(b"cd");
        assert_eq!((text.as_c_str(), text.is_cut()), (c"ab90c", true));
        text.clear();
        assert_eq!((text.as_bytes(), text.is_cut()), (&b""[..], false));
    }

    #[test]
    fn parts_are_joined_as_long_as_there_is_room() {
        let joined = |left| {
            let mut text = Text::<10>::new();
            text.push_joined([&b"ab"[..], b"cd", b"ef", b"g"].into_iter(), b" ", left);
            (text.as_bytes().to_vec(), text.is_cut())
        };
        assert_eq!(joined(0), (b"ab cd ef".to_vec(), false));
        assert_eq!(joined(4), (b"ab cd".to_vec(), false));
        assert_eq!(joined(5), (b"ab c".to_vec(), false));
        assert!([9, 10].iter().all(|&left| joined(left).0.is_empty()));
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 12_345, u64::MAX] {
            let mut text = Text::<24>::new();
            text.push_number(number);
            assert_eq!(text.as_bytes(), std::format!("{number}").as_bytes());
        }
    }

    #[test]
    fn the_length_of_a_c_string_is_found_wherever_it_begins() {
        // In each aligned block, all bytes are the string's up to its end.
        #[repr(align(16))]
        struct Block([u8; 64]);
        let mut block = Block([b'x'; 64]);
        for end in 0..64 {
            block.0.fill(b'x');
            block.0[end] = 0;
            for start in 0..=end {
                let found = c_bytes(block.0.as_ptr().expose_provenance() + start);
                assert_eq!(found.len(), end - start, "from {start} to {end}");
            }
        }
        assert!(c_bytes(0).is_empty());
    }

    #[test]
    fn globs() {
        let matching: [(&[u8], &[u8]); 9] = [
            (b"", b""),
            (b"*", b""),
            (b"*", b"anything"),
            (b"lib*.so.?", b"libc.so.6"),
            (b"*.so*", b"libz.so.1.2"),
            (b"a*b*c", b"a__b_bc"),
            (b"**", b"x"),
            (b"?", b"x"),
            (b"*ab", b"aab"),
        ];
        for (pattern, text) in matching {
            assert!(glob(pattern, text), "{} {}", pattern.escape_ascii(), text.escape_ascii());
        }
        let others: [(&[u8], &[u8]); 6] = [
            (b"", b"a"),
            (b"?", b""),
            (b"a", b"ab"),
            (b"a*b", b"ac"),
            (b"*ab", b"abc"),
            (b"ab", b"a"),
        ];
        for (pattern, text) in others {
            assert!(!glob(pattern, text), "{} {}", pattern.escape_ascii(), text.escape_ascii());
        }
    }

    #[test]
    fn a_relative_path_leads_to_whole_components() {
        let path = b"/srv/run/chase.data";
        let leading: [&[u8]; 6] = [
            b"chase.data",
            b"./chase.data",
            b"chase.data/",
            b"run//chase.data",
            b".",
            b"run/./chase.data",
        ];
        assert!(leading.iter().all(|relative| ends_with_path(path, relative)));
        let others: [&[u8]; 5] =
            [b"data", b"e.data", b"../chase.data", b"run", b"/a/b/srv/run/chase.data"];
        assert!(!others.iter().any(|relative| ends_with_path(path, relative)));
        assert!(!ends_with_path(b"/tmp/mychase.data", b"chase.data"));
    }

    #[test]
    fn file_names() {
        assert_eq!(file_name(b"/a/b.so"), b"b.so");
        assert_eq!(file_name(b"b.so"), b"b.so");
        assert_eq!(file_name(b"/a/"), b"");
        let directories = [&b"/a/b.so"[..], b"b.so", b"/a/", b"/b.so", b""].map(directory_of);
        assert_eq!(directories, [&b"/a/"[..], b"", b"/a/", b"/", b""]);
    }
}
