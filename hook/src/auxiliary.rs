//! The auxiliary vector.

use crate::sys;
use chase_logic::elf::{Image, ProgramHeader, executable_bias};

/// What the kernel passes to a new process image.
#[derive(Clone, Copy, Default)]
pub(crate) struct Auxiliary {
    pub(crate) headers: usize,
    pub(crate) header_count: usize,
    pub(crate) secure: bool,
    pub(crate) vdso: usize,
    pub(crate) executable_name: usize,
}

impl Auxiliary {
    /// # Safety
    /// `environment` is the kernel's array, with the auxiliary vector behind it.
    pub(crate) unsafe fn behind(environment: *const usize) -> Self {
        let mut this = Self::default();
        let mut at = environment;
        // SAFETY: vouched for by the caller; AT_NULL ends the vector.
        unsafe {
            while *at != 0 {
                at = at.add(1);
            }
            at = at.add(1);
            while *at != libc::AT_NULL as usize {
                this.note(*at as u64, *at.add(1));
                at = at.add(2);
            }
        }
        this
    }

    /// Takes what the launcher has read: pairs of a kind and a value, with `AT_NULL` behind them or up to the end.
    pub(crate) fn of(vector: &[u64]) -> Self {
        let mut this = Self::default();
        let pairs = vector.as_chunks::<2>().0.iter();
        for &[kind, value] in pairs.take_while(|[kind, _]| *kind != libc::AT_NULL) {
            this.note(kind, value as usize);
        }
        this
    }

    /// Reads the vector from `/proc`; fields that it lacks stay zero. A process that has changed its user may not read
    /// it, unless it is root's.
    pub(crate) fn read() -> Self {
        const WORD: usize = size_of::<usize>();
        let mut this = Self::default();
        let mut buffer = [0; 1024];
        let vector = sys::read_file(c"/proc/self/auxv", &mut buffer);
        for entry in vector.as_chunks::<{ 2 * WORD }>().0 {
            let (kind, value) = entry.split_at(WORD);
            let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
            this.note(word(kind) as u64, word(value));
        }
        this
    }

    fn note(&mut self, kind: u64, value: usize) {
        match kind {
            libc::AT_PHDR => self.headers = value,
            libc::AT_PHNUM => self.header_count = value,
            libc::AT_SECURE => self.secure = value != 0,
            libc::AT_SYSINFO_EHDR => self.vdso = value,
            libc::AT_EXECFN => self.executable_name = value,
            _ => {}
        }
    }

    pub(crate) fn executable_image(&self) -> Option<Image> {
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
