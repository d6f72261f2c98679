//! Which of the programs that a recorded process starts are recorded: `CHASE_FOLLOW`.
//!
//! The only thing passed on from process to process is the environment, which is the application's. So the rule is
//! applied to what the kernel shows of the parent: whether it has this library, or a recording, mapped.

use crate::{maps, sys};
use chase_logic::follow::is_named;
use chase_logic::proc::{holds, path_in};
use chase_logic::recordings::is_recording;
use chase_logic::text::Text;

/// Whether this image is recorded. `all` (or nothing): always; `none`: if its parent does not have the library
/// mapped; a list: if an item matches, or the parent is recorded.
pub(super) fn is_wanted(
    rule: &[u8],
    executable: &'static [u8],
    arguments: impl Iterator<Item = &'static [u8]>,
) -> bool {
    match rule {
        b"" | b"all" => true,
        b"none" => {
            let own = own_path();
            !parent_maps(|path| path == own.as_bytes())
        }
        list => is_named(list, executable, arguments) || parent_maps(is_recording),
    }
}

/// Whether a fork of a recorded process is recorded too.
pub(super) fn forks_are_wanted(rule: &[u8]) -> bool {
    rule != b"none"
}

/// Whether `f` is true of the path of any file that the parent has mapped; it is called no more after that. False if the
/// parent's mappings can't be read.
pub(super) fn parent_maps(mut f: impl FnMut(&[u8]) -> bool) -> bool {
    let (parent, ..) = sys::family();
    let mut file = Text::<32>::new();
    file.push(b"/proc/").push_number(u64::from(parent)).push(b"/maps");
    maps::any_line(file.as_c_str(), |line| path_in(line).is_some_and(&mut f))
}

/// Returns the path of this library as the kernel knows it.
fn own_path() -> Text<4096> {
    let here = own_path as *const () as usize;
    let mut path = Text::new();
    maps::any_line(c"/proc/self/maps", |line| {
        let is_here = holds(line, here);
        if is_here {
            path.push(path_in(line).unwrap_or(b""));
        }
        is_here
    });
    path
}
