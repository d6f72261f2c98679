//! `libchase.so`: preloaded into a program, it times every call from one loaded object to another.
//!
//! It patches the GOT entries of all objects so that calls go through its own stubs ([`stubs`], [`call_path`]). For
//! each thread, it keeps a shadow stack of the calls under way ([`frames`]) and a calling-context tree of those that
//! ended ([`tree`]), written in place into a mapped file ([`recording`]). Each thread's context is visible to a
//! [`companion`], where there is one.
//!
//! The order of events: [`start`] begins, and [`process`] ends the recording; [`loading`] finds [`objects`], reads
//! their [`elf`](chase_logic::elf) tables, [resolves](chase_logic::resolve) names and patches [`slots`]; [`special`] handles special functions;
//! [`sampling`] chooses which calls are timed; [`thread_life`] follows threads from start to end.
//!
//! Constraints, since this runs inside other people's programs: no allocation from the application's heap, no stdio,
//! no `errno`, no panic, no lock held while calling out, no file descriptor kept open, and nothing that needs another
//! library. Whatever fails, the program runs on.
//!
//! It does not evaluate what it records, nor resolve addresses to names.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "who works on it reads it, with `cargo doc --document-private-items`"
)]
#![no_std]

// Each group uses only those above it, and its own one way (ARCHITECTURE.md): from the machine ...
mod abi;
mod arch;
mod auxiliary;
mod clock;
mod entry;
mod for_tests;
mod fork_word;
mod images;
mod index;
mod lock;
mod maps;
mod pages;
mod readable;
mod signals;
mod stack;
mod stubs;
mod sys;
// ... over the data about calls, threads and objects ...
mod arguments;
mod cost;
mod counts;
mod marks;
mod node;
mod objects;
mod recording;
mod segments;
mod sites;
mod slots;
mod thread;
mod traits;
mod tree;
// ... and what is decided about calls ...
mod calibrate;
mod frames;
mod sampling;
// ... to the events in the program's life, and where they are noticed.
mod call_path;
mod companion;
mod loading;
mod process;
mod special;
mod start;
mod thread_life;

use chase_logic::text::Text;

/// There is no heap here. Cargo may enable features of shared dependencies that link `alloc`, which requires an
/// allocator; no code of ours uses it.
struct NoHeap;

// SAFETY: it never gives memory out.
unsafe impl core::alloc::GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: core::alloc::Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: core::alloc::Layout) {}
}

#[global_allocator]
static NO_HEAP: NoHeap = NoHeap;

/// A release build has no code that panics (`tests/tests/library.rs` checks). Other builds print where it happened.
/// There is no way back into the application from the middle of a change, with locks held, so the process ends.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    const ABORTED: i32 = 134;
    let mut line = Text::<512>::new();
    line.push(b"chase: internal error");
    if let Some(place) = info.location() {
        line.push(b" at ").push(place.file().as_bytes());
        line.push(b":").push_number(u64::from(place.line()));
    }
    sys::write_stderr(line.push(b"\n").as_bytes());
    sys::exit(ABORTED)
}
