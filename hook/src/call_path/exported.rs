//! The functions that the library exports: replacements of the C library's (`special.S`), and those of `chase.h`.

use core::arch::naked_asm;
use core::ffi::c_char;

use crate::signals::SignalsBlocked;
use crate::thread_life::current_or_adopt;
use crate::{marks, recording};
use chase_logic::text::c_bytes;

/// # Safety
/// Like the C library's.
#[unsafe(naked)]
#[unsafe(export_name = "clone")]
unsafe extern "C" fn clone() {
    naked_asm!("jmp chase_clone")
}

/// # Safety
/// Like the C library's.
#[unsafe(naked)]
#[unsafe(export_name = "__clone")]
unsafe extern "C" fn underscored_clone() {
    naked_asm!("jmp chase___clone")
}

/// Records a named mark at this moment: `chase_mark` of `hook/include/chase.h`.
///
/// # Safety
/// The name is null or ends with NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn chase_mark_named(name: *const c_char) {
    if name.is_null() || !recording::is_open() {
        return;
    }
    let Some(thread) = current_or_adopt().filter(|thread| !thread.is_busy()) else { return };
    let mark = {
        let _signals = SignalsBlocked::new();
        marks::number_of(c_bytes(name.expose_provenance()))
    };
    thread.note_mark(mark);
}

/// Called by the dynamic linker if this library is named in `LD_AUDIT`. Accepts any version, but has no other audit
/// functions. If it refused, the dynamic linker would unload it, and end the process if that is impossible.
#[unsafe(no_mangle)]
extern "C" fn la_version(version: u32) -> u32 {
    version
}
