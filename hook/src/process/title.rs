//! The title that a process has given itself (`setproctitle`): what it does among others of its program.
//!
//! It stands where the arguments were, which the kernel shows of each process. The application's memory is not looked at:
//! by now, anything may be there.

use chase_format::layout::ChunkKind;
use chase_logic::text::Text;

use crate::signals::SignalsBlocked;
use crate::{recording, sys};

/// What follows the program's name in a title. (The first argument is a path otherwise, or a name.)
const MARK: &[u8] = b": ";
/// Longer titles are cut.
const LONGEST: usize = 256;

/// Notes it, if the process has one, in the recording's data.
pub(super) fn record() {
    let mut buffer = [0_u8; LONGEST];
    let shown = sys::read_file(c"/proc/self/cmdline", &mut buffer);
    let Some(title) = shown.split(|&byte| byte == 0).next() else { return };
    if !title.windows(MARK.len()).any(|part| part == MARK) {
        return;
    }
    let mut entry = Text::<{ LONGEST + 16 }>::new();
    entry.push(b"title\0").push(title).push(b"\0");
    let _signals = SignalsBlocked::new();
    recording::write_chunk(ChunkKind::Meta, entry.as_bytes());
}
