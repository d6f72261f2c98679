//! Which threads are recorded: `CHASE_THREADS`, a list of globs for the name of a thread's start routine, or of the object that the
//! routine is in.
//!
//! The routine of a thread that a language's runtime starts is the same for all; so the functions that its argument points to
//! count as well, and the names that Python has for it. Most names are only in the object's file, which is read when a routine is
//! seen first.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{ORIGIN_SMALL, OriginRecord, PAGE, THREAD_MAIN};

use crate::loading::{self, Place};
use crate::signals::SignalsBlocked;
use crate::thread::{Origin, Thread};
use crate::{pages, sys};
use chase_logic::config::Config;
use chase_logic::symtab;

/// Size in bytes of the buffer for the file's symbols.
const BUFFER: usize = 8 * PAGE;
const _: () = assert!(BUFFER >= symtab::BUFFER);

/// What was decided about addresses, in any order: the address and the number of its object, and whether it is wanted in the lowest
/// bit; 0: nothing. (Two threads may decide at once: one is forgotten.)
static DECIDED: [AtomicUsize; 256] = [const { AtomicUsize::new(0) }; 256];

/// Forgets what was decided: the list is another one from now on. No other thread asks meanwhile.
pub(crate) fn forget_choices() {
    DECIDED.iter().for_each(|decided| decided.store(0, Ordering::Relaxed));
}

/// Leaves a thread out of the recording that was found running, or is the first one, if it is not to be recorded.
pub(crate) fn leave_out_unwanted(thread: &Thread, origin: &Origin) {
    let _signals = SignalsBlocked::new();
    let list = loading::wanted_threads();
    let is_wanted = match origin.kind {
        _ if list.is_empty() => true,
        THREAD_MAIN => Config::wants_thread(list, loading::executable_path(), b"main"),
        _ => runs_wanted(list, origin.start_routine),
    };
    if !is_wanted {
        thread.leave_out();
    }
}

/// Whether a thread is recorded that is about to be created with this start routine. Signals are blocked.
pub(super) fn is_new_wanted(routine: usize, noted: &OriginRecord) -> bool {
    let list = loading::wanted_threads();
    if list.is_empty() || runs_wanted(list, routine) {
        return true;
    }
    let text = noted.text.get(..usize::from(noted.text_len)).unwrap_or(&[]);
    let mut names = text.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let is_named = |name: &[u8]| {
        // (Reports leave the module out that a program's own functions are in.)
        let shown = name.strip_prefix(b"__main__.").unwrap_or(name);
        let last = name.rsplit(|&byte| byte == b'.').next().unwrap_or(name);
        [name, shown, last].iter().any(|name| Config::wants_thread(list, b"", name))
    };
    let words = |words: &[u64], count: u16| {
        words.iter().take(usize::from(count)).any(|&word| {
            word >= ORIGIN_SMALL && runs_wanted(list, usize::try_from(word).unwrap_or(0))
        })
    };
    names.any(is_named)
        || words(&noted.words, noted.word_count)
        || words(&noted.inner_words, noted.inner_word_count)
}

/// Whether the list names the code or constant data at an address, or the object that it is in.
fn runs_wanted(list: &[u8], address: usize) -> bool {
    let Some(place) = loading::place_of(address) else { return false };
    let known = address << 17 | ((place.object as usize) & 0xffff) << 1;
    let decided = DECIDED.get(address / 16 % DECIDED.len());
    if let Some(decided) = decided.map(|decided| decided.load(Ordering::Relaxed))
        && decided != 0
        && decided & !1 == known
    {
        return decided & 1 != 0;
    }
    let is_wanted = Config::wants_thread(list, place.name, b"")
        || has_name(&place, |name| Config::wants_thread(list, place.name, name));
    if let Some(decided) = decided {
        decided.store(known | usize::from(is_wanted), Ordering::Relaxed);
    }
    is_wanted
}

/// Whether `is_wanted` is true of a name that the object's file has for the place.
fn has_name(place: &Place, is_wanted: impl FnMut(&[u8]) -> bool) -> bool {
    // (The stack may have little room.)
    let memory = pages::allocate(BUFFER);
    if memory.is_null() {
        return false;
    }
    // SAFETY: the memory is ours, zeroed, and of that length.
    let buffer = unsafe { core::slice::from_raw_parts_mut(memory, BUFFER) };
    let is_found = open(place.path, buffer).is_some_and(|fd| {
        let read = |offset, into: &mut [u8]| sys::read_at(fd, into, offset);
        let is_found = symtab::any_name_at(read, buffer, place.svma, is_wanted);
        sys::close(fd);
        is_found
    });
    pages::give_back(memory, BUFFER);
    is_found
}

/// Opens a file whose path has room in `zeros`.
fn open(path: &[u8], zeros: &mut [u8]) -> Option<i32> {
    zeros.iter_mut().zip(path).for_each(|(to, from)| *to = *from);
    let path = CStr::from_bytes_until_nul(zeros).ok()?;
    sys::open(path, libc::O_RDONLY, 0).ok()
}
