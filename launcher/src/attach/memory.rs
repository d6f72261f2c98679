//! The memory of another process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::Context;

/// Of one process.
pub(super) struct Memory {
    file: File,
}

impl Memory {
    /// # Errors
    /// If this process may not.
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file })
    }

    /// As many bytes as can be read from there on.
    pub(super) fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut read = 0;
        while read < len {
            match self.file.read_at(&mut bytes[read..], at + read as u64) {
                Ok(more @ 1..) => read += more,
                _ => break,
            }
        }
        bytes.truncate(read);
        bytes
    }

    /// So many words; `None` if they can't be read.
    pub(super) fn words<const N: usize>(&self, at: u64) -> Option<[u64; N]> {
        let bytes = self.read(at, N * 8);
        let words = bytes.as_chunks::<8>().0;
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        words.collect::<Vec<_>>().try_into().ok()
    }

    /// # Errors
    /// If nothing is there, or it is not this process's to write.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all_at(bytes, at).context("can't write into the process")
    }
}
