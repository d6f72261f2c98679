//! The names of the functions and variables at an address, from the symbol tables of an ELF file.

/// Size in bytes of the file's header, of a section's header and of a symbol.
const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// Names are cut off at this length.
const NAME: usize = 512;
/// The least length of the buffer that [`any_name_at`] is given.
pub const BUFFER: usize = NAME + SYMBOL;

/// Sections with all symbols of the file, and with those for the dynamic linker.
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;

/// Whether `is_wanted` is true of the name of any symbol that `address` (as in the file) is in. `read` copies bytes of the file
/// from an offset on, and returns how many. False for files that are not what they should be.
pub fn any_name_at(
    mut read: impl FnMut(u64, &mut [u8]) -> usize,
    buffer: &mut [u8],
    address: u64,
    mut is_wanted: impl FnMut(&[u8]) -> bool,
) -> bool {
    let mut header = [0; HEADER];
    if read(0, &mut header) < HEADER || !header.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (first, size, count) = (u64_at(&header, 40), u16_at(&header, 58), u16_at(&header, 60));
    if usize::from(size) != SECTION || buffer.len() < BUFFER {
        return false;
    }
    let section = |number: u32| first.checked_add(u64::from(number) * SECTION as u64);
    let mut section_header = |number: u32| {
        let mut header = [0; SECTION];
        let is_there = number < u32::from(count)
            && section(number).is_some_and(|at| read(at, &mut header) == SECTION);
        is_there.then_some(header)
    };
    // (There is one of each kind at most.)
    let mut tables = [None; 2];
    for number in 0..u32::from(count) {
        let Some(header) = section_header(number) else { return false };
        let place = match u32_at(&header, 4) {
            SHT_SYMTAB => 0,
            SHT_DYNSYM => 1,
            _ => continue,
        };
        let strings = section_header(u32_at(&header, 40)).map_or(0, |of| u64_at(&of, 24));
        if let Some(table) = tables.get_mut(place) {
            *table = Some((u64_at(&header, 24), u64_at(&header, 32), strings));
        }
    }
    for (start, len, strings) in tables.into_iter().flatten() {
        let (name_buffer, symbols) = buffer.split_at_mut(NAME);
        let whole = symbols.len() - symbols.len() % SYMBOL;
        let mut done = 0;
        while done < len {
            let wanted = usize::try_from(len - done).unwrap_or(whole).min(whole);
            let part = symbols.get_mut(..wanted).unwrap_or_default();
            let Some(at) = start.checked_add(done) else { break };
            let found = read(at, part);
            if found < SYMBOL {
                break;
            }
            let part = part.get(..found).unwrap_or(&[]);
            for symbol in part.chunks_exact(SYMBOL).filter(|symbol| contains(symbol, address)) {
                let Some(at) = strings.checked_add(u64::from(u32_at(symbol, 0))) else { continue };
                let found = read(at, name_buffer);
                let name = name_buffer.get(..found).unwrap_or(&[]);
                let name = name.split(|&byte| byte == 0).next().unwrap_or(&[]);
                if !name.is_empty() && is_wanted(name) {
                    return true;
                }
            }
            done += found as u64;
        }
    }
    false
}

/// Whether a symbol is defined, and an address is in it.
fn contains(symbol: &[u8], address: u64) -> bool {
    const DATA_OR_FUNCTION: [u8; 4] = [0, 1, 2, 10];
    let kind = symbol.get(4).copied().unwrap_or(0) & 15;
    let (start, size) = (u64_at(symbol, 8), u64_at(symbol, 16));
    u16_at(symbol, 6) != 0
        && DATA_OR_FUNCTION.contains(&kind)
        && (address == start || address.checked_sub(start).is_some_and(|offset| offset < size))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// A file with two symbols: `work` at 0x1000, 16 bytes long, and `end` at 0x1010, without a length; and one that is not
    /// defined.
    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[40..48].copy_from_slice(&(HEADER as u64).to_le_bytes());
        header[58..60].copy_from_slice(&(SECTION as u16).to_le_bytes());
        header[60..62].copy_from_slice(&3u16.to_le_bytes());
        file.extend(header);
        let behind = (HEADER + 3 * SECTION) as u64;
        for (kind, offset, len, link) in [
            (0u32, 0u64, 0u64, 0u32),
            (SHT_SYMTAB, behind, 3 * SYMBOL as u64, 2),
            (3, behind + 3 * SYMBOL as u64, 16, 0),
        ] {
            let mut section = [0; SECTION];
            section[4..8].copy_from_slice(&kind.to_le_bytes());
            section[24..32].copy_from_slice(&offset.to_le_bytes());
            section[32..40].copy_from_slice(&len.to_le_bytes());
            section[40..44].copy_from_slice(&link.to_le_bytes());
            file.extend(section);
        }
        for (name, defined, start, size) in
            [(1u32, 1u16, 0x1000u64, 16u64), (6, 1, 0x1010, 0), (1, 0, 0, 0x4000)]
        {
            let mut symbol = [0; SYMBOL];
            symbol[..4].copy_from_slice(&name.to_le_bytes());
            symbol[4] = 0x12;
            symbol[6..8].copy_from_slice(&defined.to_le_bytes());
            symbol[8..16].copy_from_slice(&start.to_le_bytes());
            symbol[16..24].copy_from_slice(&size.to_le_bytes());
            file.extend(symbol);
        }
        file.extend(b"\0work\0end\0");
        file
    }

    fn names(file: &[u8], address: u64) -> Vec<Vec<u8>> {
        let read = |offset: u64, into: &mut [u8]| {
            let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or(&[]);
            let len = rest.len().min(into.len());
            into[..len].copy_from_slice(&rest[..len]);
            len
        };
        let mut found = Vec::new();
        any_name_at(read, &mut [0; BUFFER], address, |name| {
            found.push(name.to_vec());
            false
        });
        found
    }

    #[test]
    fn an_address_is_in_a_symbol_or_at_its_start() {
        let file = file();
        assert_eq!(names(&file, 0x1000), [b"work"]);
        assert_eq!(names(&file, 0x100f), [b"work"]);
        assert_eq!(names(&file, 0x1010), [b"end"]);
        assert!(names(&file, 0x1011).is_empty() && names(&file, 0xfff).is_empty());
    }

    #[test]
    fn files_that_are_cut_or_damaged_have_fewer_names_or_none() {
        let whole = file();
        for len in 0..whole.len() {
            assert!(names(&whole[..len], 0x1000).len() <= 1, "{len}");
        }
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] ^= 0xff;
            names(&file, 0x1000);
        }
    }
}
