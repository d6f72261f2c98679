//! Where functions without a name begin: compilers describe each to unwinders, stripped or not.

use addr2line::gimli::{
    BaseAddresses, EhFrame, EhFrameHdr, EhFrameOffset, LittleEndian, Pointer, UnwindSection,
};
use object::{Object, ObjectSection};

use crate::image::Image;

/// The beginning of `.eh_frame_hdr` as all linkers write it: its version, and how the address of `.eh_frame`, the number of
/// functions and the rows of the table are written.
const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// What precedes the table.
const HEADER_LEN: usize = 12;
const ROW_LEN: usize = 8;

impl Image {
    /// The start of the function that `svma` lies in, by `.eh_frame`; `None` if that doesn't know of one.
    pub(crate) fn function_start(&self, svma: u64) -> Option<u64> {
        let file = self.elf.parse().ok()?;
        let [header, frames] =
            [".eh_frame_hdr", ".eh_frame"].map(|name| file.section_by_name(name));
        let (header, frames) = (header?, frames?);
        let (table, bytes) = (header.data().ok()?, frames.data().ok()?);
        if !is_whole(table) {
            return None;
        }
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(header.address())
            .set_eh_frame(frames.address());
        let table = EhFrameHdr::new(table, LittleEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(at) = table.table()?.lookup(svma, &bases).ok()? else { return None };
        let at = usize::try_from(at.checked_sub(frames.address())?).ok()?;
        let frames = EhFrame::new(bytes, LittleEndian);
        let function = frames.fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset);
        let function = function.ok()?;
        function.contains(svma).then(|| function.initial_address())
    }
}

/// Whether a table has as many rows as it says.
fn is_whole(table: &[u8]) -> bool {
    let count = table.get(8..HEADER_LEN).and_then(|count| count.first_chunk().copied());
    let count = count.map_or(usize::MAX, |count| u32::from_le_bytes(count) as usize);
    let len = count.checked_mul(ROW_LEN).and_then(|len| len.checked_add(HEADER_LEN));
    table.starts_with(&HEADER) && len.is_some_and(|len| len <= table.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_says_more_rows_than_it_has_is_not_looked_at() {
        let table = |count: u32, rows: usize| {
            [&HEADER[..], &[0; 4], &count.to_le_bytes(), &vec![0; rows * ROW_LEN]].concat()
        };
        assert!(is_whole(&table(3, 3)) && is_whole(&table(0, 1)));
        assert!(!is_whole(&table(4, 3)) && !is_whole(&table(u32::MAX, 3)));
        assert!(!is_whole(&table(0, 0)[..11]) && !is_whole(&[2; 64]));
    }
}
