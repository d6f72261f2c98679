//! The auxiliary vector.

use crate::elf::{Image, ProgramHeader, executable_bias};

/// What the kernel tells a new image.
#[derive(Clone, Copy, Default)]
pub(super) struct Auxiliary {
    pub(super) headers: usize,
    pub(super) header_count: usize,
    pub(super) secure: bool,
    pub(super) vdso: usize,
    pub(super) executable_name: usize,
}

impl Auxiliary {
    /// # Safety
    /// `environment` is the kernel's array, with the auxiliary vector behind it.
    pub(super) unsafe fn behind(environment: *const usize) -> Self {
        let mut this = Self::default();
        let mut at = environment;
        // SAFETY: vouched for by the caller; AT_NULL ends the vector.
        unsafe {
            while *at != 0 {
                at = at.add(1);
            }
            at = at.add(1);
            while *at != libc::AT_NULL as usize {
                let value = *at.add(1);
                match *at as u64 {
                    libc::AT_PHDR => this.headers = value,
                    libc::AT_PHNUM => this.header_count = value,
                    libc::AT_SECURE => this.secure = value != 0,
                    libc::AT_SYSINFO_EHDR => this.vdso = value,
                    libc::AT_EXECFN => this.executable_name = value,
                    _ => {}
                }
                at = at.add(2);
            }
        }
        this
    }

    pub(super) fn executable_image(&self) -> Option<Image> {
        if self.headers == 0 {
            return None;
        }
        // SAFETY: the kernel has mapped the executable's program headers there.
        unsafe {
            let headers = core::slice::from_raw_parts(
                self.headers as *const ProgramHeader,
                self.header_count,
            );
            Image::new(executable_bias(headers, self.headers), self.headers, self.header_count)
        }
    }
}
