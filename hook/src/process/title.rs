//! The title that a process has set (`setproctitle`): its role among processes of the same program.
//!
//! It overwrites the arguments, which the kernel shows in `/proc/self/cmdline`. That file is read, since the
//! application's own memory may have changed in any way by now.

use chase_format::layout::ChunkKind;
use chase_logic::text::Text;

use crate::signals::SignalsBlocked;
use crate::{recording, sys};

/// Follows the program's name in a title. (Otherwise, the first argument is a path or a name.)
const MARK: &[u8] = b": ";
/// The maximum length of titles; longer ones are cut.
const LONGEST: usize = 256;

/// Records the title, if the process has set one.
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
