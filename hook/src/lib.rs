//! `libchase.so`: preloaded into a program, it times every call from one loaded object to another.
//!
//! It patches the GOT entries of all objects so that calls go through stubs of its own
//! ([`arch`]), and keeps, per thread, a shadow stack of the calls under way ([`frames`]) and a
//! calling-context tree of those that ended ([`tree`]), written in place into a mapped file
//! ([`recording`]). A [`companion`], where there is one, is shown each thread's context.
//!
//! The order of things: [`process`] starts and ends it; [`loading`] finds [`objects`], reads their
//! [`elf`] tables, [`resolve`]s names and patches [`slots`]; [`special`] knows the functions that
//! are not ordinary; [`sampling`] chooses which calls are timed; [`thread`] follows threads from start to end.
//!
//! Constraints, since this runs inside other people's programs: no allocation from the
//! application's heap, no stdio, no `errno`, no panic, no lock held while calling out, no file
//! descriptor kept, and nothing that needs another library: whatever fails, the program runs on.
//!
//! What it does not do: compute anything from what it counts, or resolve addresses to names.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "who works on it reads it, with `cargo doc --document-private-items`"
)]
#![no_std]

mod arch;
mod calibrate;
mod callsites;
mod clock;
mod companion;
mod config;
mod cost;
mod elf;
mod entry;
mod frames;
mod index;
mod loading;
mod lock;
mod maps;
mod names;
mod objects;
mod pages;
mod process;
mod readable;
mod recording;
mod resolve;
mod sampling;
mod signals;
mod slots;
mod special;
mod stack;
mod sys;
mod text;
mod thread;
mod tree;

/// There is no heap here. Cargo may turn on features of shared dependencies that link `alloc`, which
/// then asks for one; nothing of ours does.
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

/// Nothing in this crate panics on purpose; if it happened, there would be no way to go on that
/// does not harm the application less than this.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
