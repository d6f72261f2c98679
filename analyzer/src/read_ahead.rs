//! Reads on while what was read is used: unpacking takes as long as what is done with the bytes.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Bytes that are read at a time, and how many such blocks may lie ready.
const BLOCK: u64 = 1 << 18;
const AHEAD: usize = 16;

/// A reader whose source another thread reads.
pub(crate) struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    /// How much of the block was taken.
    taken: usize,
}

impl ReadAhead {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// If there can be no further thread.
    pub(crate) fn new(source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(AHEAD);
        let mut source = source;
        let read = move || loop {
            let mut block = Vec::with_capacity(BLOCK as usize);
            let read = source.by_ref().take(BLOCK).read_to_end(&mut block);
            // (What comes before an error is read all the same.)
            let is_end = block.is_empty();
            if !is_end && sender.send(Ok(block)).is_err() {
                break;
            }
            if let Err(error) = read {
                let _ = sender.send(Err(error));
                break;
            }
            if is_end {
                break;
            }
        };
        thread::Builder::new().name("unpack".to_owned()).spawn(read)?;
        Ok(Self { blocks, block: Vec::new(), taken: 0 })
    }
}

impl Read for ReadAhead {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() {
            let Ok(block) = self.blocks.recv() else { return Ok(0) };
            (self.block, self.taken) = (block?, 0);
        }
        let len = (&self.block[self.taken..]).read(bytes)?;
        self.taken += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns these bytes, a few at a time, and then fails.
    struct Failing(Vec<u8>, usize);

    impl Read for Failing {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let rest = &self.0[self.1..];
            if rest.is_empty() {
                return Err(io::Error::other("the end"));
            }
            let len = rest.len().min(bytes.len()).min(1000);
            bytes[..len].copy_from_slice(&rest[..len]);
            self.1 += len;
            Ok(len)
        }
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn all_is_read_whatever_its_length() {
        for len in [0, 1, BLOCK as usize, BLOCK as usize + 1, 5_000_000] {
            let (whole, mut read) = (bytes(len), Vec::new());
            let mut reader = ReadAhead::new(io::Cursor::new(whole.clone())).unwrap();
            reader.read_to_end(&mut read).unwrap();
            assert!(read == whole, "{len}");
            assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn what_comes_before_an_error_is_read() {
        let (whole, mut read) = (bytes(600_000), Vec::new());
        let mut reader = ReadAhead::new(Failing(whole.clone(), 0)).unwrap();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert_eq!(error.to_string(), "the end");
        assert!(read == whole);
    }

    #[test]
    fn its_thread_ends_if_nobody_reads_on() {
        let mut reader = ReadAhead::new(io::repeat(1)).unwrap();
        reader.read_exact(&mut [0; 10]).unwrap();
        drop(reader);
    }
}
