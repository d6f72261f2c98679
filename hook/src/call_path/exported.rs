//! The functions that programs find here in the place of the C library's (`special.S`).

use core::arch::naked_asm;

/// # Safety
/// As that of the C library.
#[unsafe(naked)]
#[unsafe(export_name = "clone")]
unsafe extern "C" fn clone() {
    naked_asm!("jmp chase_clone")
}

/// # Safety
/// As that of the C library.
#[unsafe(naked)]
#[unsafe(export_name = "__clone")]
unsafe extern "C" fn underscored_clone() {
    naked_asm!("jmp chase___clone")
}
