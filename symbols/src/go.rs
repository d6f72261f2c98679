//! Names of Go's functions, from the table that each Go program carries for its runtime (`.gopclntab`), stripped or not.
//!
//! Layout: Go's `src/runtime/symtab.go` (`pcHeader`, `functab`, `_func`) and `src/internal/abi/symtab.go`. Of each function it
//! has where it begins; it ends where the next one begins. Any bytes are accepted. (Crates that read the table take a whole
//! program apart, and none is widely used.)

/// End of the section's name; in position-independent programs, `.data.rel.ro` stands before it.
pub(crate) const SECTION: &str = ".gopclntab";
/// First words of the table, by the versions of Go that write it.
const GO_1_16: u32 = 0xffff_fffa;
const GO_1_18: u32 = 0xffff_fff0;
const GO_1_20: u32 = 0xffff_fff1;
/// Length of pointers, where the table says it.
const POINTER_SIZE_AT: usize = 7;
/// Longer names are none.
const LONGEST_NAME: usize = 4096;

/// A function: where it begins, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoFunction {
    pub(crate) svma: u64,
    pub(crate) len: u64,
    pub(crate) name: String,
}

/// Where the table has what.
struct Layout {
    /// Address that entries count from; `None` where they are addresses themselves.
    text: Option<u64>,
    count: u64,
    names: usize,
    functions: usize,
}

/// The functions in `table`. `text_svma`: where the code begins, if the table is one that says that, as its file has it.
pub(crate) fn functions(table: &[u8], text_svma: Option<u64>) -> Vec<GoFunction> {
    layout(table, text_svma).and_then(|layout| read(table, &layout)).unwrap_or_default()
}

/// Offset in the table of the word that says where the code begins, for tables that have it.
pub(crate) const TEXT_AT: u64 = 24;

fn layout(table: &[u8], text_svma: Option<u64>) -> Option<Layout> {
    if *table.get(POINTER_SIZE_AT)? != 8 {
        return None;
    }
    let place = |at| usize::try_from(long(table, at)?).ok();
    let count = long(table, 8)?;
    Some(match word(table, 0)? {
        GO_1_16 => Layout { text: None, count, names: place(24)?, functions: place(56)? },
        GO_1_18 | GO_1_20 => {
            // In files that are linked by a C linker, a relocation has it.
            let text = long(table, TEXT_AT as usize).filter(|&text| text != 0).or(text_svma)?;
            Layout { text: Some(text), count, names: place(32)?, functions: place(64)? }
        }
        _ => return None,
    })
}

fn read(table: &[u8], layout: &Layout) -> Option<Vec<GoFunction>> {
    let functions = table.get(layout.functions..)?;
    let names = table.get(layout.names..)?;
    let size = if layout.text.is_some() { 4 } else { 8 };
    // Behind the last function's entry is the end of the code.
    let most = (functions.len() / (2 * size)).saturating_sub(1);
    let count = usize::try_from(layout.count).unwrap_or(usize::MAX).min(most);
    let number = |at: usize| match size {
        4 => word(functions, at).map(u64::from),
        _ => long(functions, at),
    };
    let entry = |at: usize| {
        let start = number(2 * size * at)?;
        Some(layout.text.map_or(start, |text| text.wrapping_add(start)))
    };
    let function = |at: usize| {
        let (svma, end) = (entry(at)?, entry(at + 1)?);
        let record = usize::try_from(number(2 * size * at + size)?).ok()?;
        // Where it begins comes first, again.
        let name_at = word(functions, record.checked_add(size)?)?;
        let name = text(names.get(name_at as usize..)?)?;
        let len = end.checked_sub(svma).filter(|&len| len > 0)?;
        Some(GoFunction { svma, len, name })
    };
    Some((0..count).filter_map(function).collect())
}

/// The text up to NUL.
fn text(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(LONGEST_NAME)];
    let len = bytes.iter().position(|&byte| byte == 0).filter(|&len| len > 0)?;
    String::from_utf8(bytes[..len].to_vec()).ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::{GO_1_16, GO_1_18, GO_1_20, GoFunction, functions};

    const TEXT: u64 = 0x40_1000;
    const NAMES: &[u8] = b"\0main.first\0main.(*worker).add\0";

    /// A table of two functions of 0x20 and 0x40 bytes, of which the second is called `second`.
    fn table(magic: u32, second: u32) -> Vec<u8> {
        let is_old = magic == GO_1_16;
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        let names_at = if is_old { 64 } else { 72 };
        let functions_at = names_at + NAMES.len() as u64;
        let mut longs = vec![2, 1];
        if !is_old {
            longs.push(TEXT);
        }
        longs.extend([names_at, 0, 0, 0, functions_at]);
        bytes.extend(longs.iter().flat_map(|long| long.to_le_bytes()));
        bytes.extend(NAMES);
        let size = if is_old { 8 } else { 4 };
        let number = |number: u64| number.to_le_bytes()[..size].to_vec();
        let base = if is_old { TEXT } else { 0 };
        let records = 5 * size as u64;
        for number_ in [0, records, 0x20, records + size as u64 + 4, 0x60] {
            let is_place = [0, 0x20, 0x60].contains(&number_);
            bytes.extend(number(number_ + if is_place { base } else { 0 }));
        }
        for (entry, name) in [(0, 1), (0x20, second)] {
            bytes.extend(number(base + entry));
            bytes.extend(name.to_le_bytes());
        }
        bytes
    }

    fn found(svma: u64, len: u64, name: &str) -> GoFunction {
        GoFunction { svma, len, name: name.to_owned() }
    }

    #[test]
    fn functions_of_each_version() {
        for magic in [GO_1_16, GO_1_18, GO_1_20] {
            let expected =
                [found(TEXT, 0x20, "main.first"), found(TEXT + 0x20, 0x40, "main.(*worker).add")];
            assert_eq!(functions(&table(magic, 12), None), expected, "{magic:x}");
        }
    }

    #[test]
    fn where_the_code_begins_may_stand_elsewhere() {
        let mut table = table(GO_1_20, 12);
        table[24..32].fill(0);
        assert_eq!(functions(&table, None), []);
        assert_eq!(functions(&table, Some(0x1000))[0], found(0x1000, 0x20, "main.first"));
    }

    #[test]
    fn of_any_bytes_some_functions_are_read_or_none() {
        assert_eq!(functions(b"", None), []);
        assert_eq!(functions(&[0xff; 100], None), []);
        // A name that is not there.
        assert_eq!(functions(&table(GO_1_18, u32::MAX), None).len(), 1);
        for magic in [GO_1_16, GO_1_18] {
            let whole = table(magic, 12);
            for len in 0..whole.len() {
                assert!(functions(&whole[..len], None).len() <= 2);
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = byte;
                    assert!(
                        functions(&damaged, Some(u64::MAX)).len() <= 8,
                        "{magic:x} {at} {byte}"
                    );
                }
            }
        }
    }
}
