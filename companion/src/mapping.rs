//! The elements of an eBPF map in memory, which the kernel may change at any moment.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use bytemuck::Pod;

/// A memory-mapped array map of `T`s.
#[derive(Debug)]
pub struct Mapping<T> {
    base: *mut T,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Mapping<T> {
    /// Maps `len` elements of the map `fd`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(fd: impl AsFd, len: usize) -> io::Result<Self> {
        const { assert!(size_of::<T>().is_multiple_of(8), "elements lie as in the map") };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice; it holds on to the map.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), len * size_of::<T>(), protection, libc::MAP_SHARED, fd, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), len, element: PhantomData })
    }

    /// Returns a copy of an element; its fields may be one change apart.
    ///
    /// # Panics
    /// If `index` is beyond the end.
    #[must_use]
    pub fn read(&self, index: usize) -> T {
        assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: inside the mapping; any bytes are a `T`.
        unsafe { ptr::read_volatile(self.base.add(index)) }
    }

    /// Changes an element that the kernel does not use at the moment.
    ///
    /// # Panics
    /// If `index` is beyond the end.
    pub fn write(&mut self, index: usize, value: T) {
        assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(self.base.add(index), value) };
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it.
        unsafe { libc::munmap(self.base.cast(), self.len * size_of::<T>()) };
    }
}
