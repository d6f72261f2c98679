//! Where functions without a name begin: compilers describe each to unwinders, stripped or not.

use addr2line::gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};

use crate::image::Image;

impl Image {
    /// The start of the function that `svma` lies in, by `.eh_frame`; `None` if that doesn't know of one.
    pub(crate) fn function_start(&self, svma: u64) -> Option<u64> {
        let file = self.elf.parse().ok()?;
        let [header, frames] =
            [".eh_frame_hdr", ".eh_frame"].map(|name| file.section_by_name(name));
        let (header, frames) = (header?, frames?);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(header.address())
            .set_eh_frame(frames.address());
        let header = EhFrameHdr::new(header.data().ok()?, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(frames.data().ok()?, LittleEndian);
        let table = header.table()?;
        let function =
            table.fde_for_address(&frames, &bases, svma, EhFrame::cie_from_offset).ok()?;
        function.contains(svma).then(|| function.initial_address())
    }
}
