//! The library as it is loaded into a process that runs: a copy that waits to be told, and takes little thread-local
//! storage; and what is known of it once it is there.

use std::fs::{self, File};
use std::io::Write;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use chase_format::attachment::{MAGIC, PRELOADED, SYMBOL, Shown, VERSION, WAITING};
use object::elf::{PT_LOAD, PT_TLS};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};

use super::memory::Memory;
use super::resume::Rests;
use super::unwind::Pads;

/// Of a thread, the library needs four words; there is room for little more in a process that runs.
const WORDS_LEN: u64 = 32;
const WORDS_ALIGN: u64 = 16;
/// Places in a program header, bytes.
const FILE_SIZE_AT: usize = 32;
const MEMORY_SIZE_AT: usize = 40;
const ALIGN_AT: usize = 48;

/// The copy, and where in it [`Attachment`] is.
pub(super) struct Library {
    /// What the file is to hold.
    pub(super) bytes: Vec<u8>,
    /// A file without a name that holds it.
    pub(super) file: File,
    /// Address of the attachment, from where the library is loaded.
    pub(super) attachment_svma: u64,
}

impl Library {
    /// # Errors
    /// If the file can't be read, or is of another version.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let file =
            ElfFile64::<Endianness>::parse(&*bytes).with_context(|| path.display().to_string())?;
        let endian = Endianness::Little;
        let headers_at = file.elf_header().e_phoff(endian) as usize;
        let entry_len = usize::from(file.elf_header().e_phentsize(endian));
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(SYMBOL));
        let attachment_svma = symbol.map_or(0, |symbol| symbol.address());
        ensure!(attachment_svma != 0, "{} is of another version", path.display());
        let (mut mode_at, mut tls_at, mut end) = (None, None, 0);
        for (i, header) in file.elf_program_headers().iter().enumerate() {
            let (offset, address) = (header.p_offset(endian), header.p_vaddr(endian));
            match header.p_type(endian) {
                PT_LOAD => {
                    end = end.max(offset + header.p_filesz(endian));
                    if attachment_svma.wrapping_sub(address) < header.p_filesz(endian) {
                        mode_at = Some(
                            (offset + attachment_svma - address) as usize + offset_of!(Shown, mode),
                        );
                    }
                }
                PT_TLS => tls_at = Some(headers_at + i * entry_len),
                _ => {}
            }
        }
        let (Some(mode_at), Some(tls_at)) = (mode_at, tls_at) else {
            bail!("{} is of another version", path.display());
        };
        bytes.truncate(end as usize);
        put(&mut bytes, mode_at, &WAITING.to_le_bytes())?;
        put(&mut bytes, tls_at + FILE_SIZE_AT, &WORDS_LEN.to_le_bytes())?;
        put(&mut bytes, tls_at + MEMORY_SIZE_AT, &WORDS_LEN.to_le_bytes())?;
        put(&mut bytes, tls_at + ALIGN_AT, &WORDS_ALIGN.to_le_bytes())?;
        // No section headers: they are behind what is loaded.
        const SECTIONS_AT: usize = 40;
        const SECTION_COUNT_AT: usize = 60;
        put(&mut bytes, SECTIONS_AT, &[0; 8])?;
        put(&mut bytes, SECTION_COUNT_AT, &[0; 4])?;
        // SAFETY: the name is a C string, and the new descriptor is nobody else's.
        let mut file = unsafe {
            let fd = libc::memfd_create(c"libchase.so".as_ptr(), libc::MFD_CLOEXEC);
            ensure!(fd >= 0, "no file in memory can be made: {}", std::io::Error::last_os_error());
            File::from_raw_fd(fd)
        };
        file.write_all(&bytes).context("no memory for a copy of the library")?;
        Ok(Self { bytes, file, attachment_svma })
    }

    /// Where another process finds the file, if it may.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> anyhow::Result<()> {
    bytes.get_mut(at..at + value.len()).context("a damaged library")?.copy_from_slice(value);
    Ok(())
}

/// Whether the library there has begun: a load that fails may leave pieces of it, which never will.
pub(super) fn has_begun(memory: &Memory, at: u64) -> bool {
    let word = |field: usize| memory.words::<1>(at + field as u64);
    let is_there = word(offset_of!(Shown, magic)) == Some([MAGIC]);
    is_there && word(offset_of!(Shown, words)).is_some_and(|words| words != [0])
}

/// What the library shows of itself in a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    /// Whether it was preloaded.
    pub(super) is_preloaded: bool,
    /// Whether it can be left.
    pub(super) may_be_left: bool,
    /// Whether the process is recorded.
    pub(super) is_recording: bool,
    /// Words of a thread that is not recorded.
    pub(super) no_counts: u64,
    pub(super) no_thread: u64,
    /// Where they are, from the thread pointer.
    pub(super) words: u64,
    /// Where threads go on in the middle of a system call.
    pub(super) rests: Rests,
    /// Where timed calls return to.
    pub(super) pads: Pads,
}

impl Attachment {
    /// # Errors
    /// If there is none, or one of another version.
    pub(super) fn read(memory: &Memory, at: u64) -> anyhow::Result<Self> {
        const OTHER: &str = "libchase.so of another version is in it";
        let bytes = memory.read(at, size_of::<Shown>());
        ensure!(bytes.len() == size_of::<Shown>(), OTHER);
        let word = |at: usize| {
            bytes[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
        };
        let half = |at: usize| {
            bytes[at..].first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_le_bytes(*bytes))
        };
        let version = half(offset_of!(Shown, version));
        ensure!(word(offset_of!(Shown, magic)) == MAGIC && version == VERSION, OTHER);
        let mode = half(offset_of!(Shown, mode));
        Ok(Self {
            is_preloaded: mode != WAITING,
            may_be_left: mode != PRELOADED,
            no_counts: word(offset_of!(Shown, no_counts)),
            no_thread: word(offset_of!(Shown, no_thread)),
            words: word(offset_of!(Shown, words)),
            is_recording: half(offset_of!(Shown, is_recording)) != 0,
            rests: Rests {
                of_buffer: word(offset_of!(Shown, rest_of_buffer)),
                of_file: word(offset_of!(Shown, rest_of_file)),
                of_buffers: word(offset_of!(Shown, rest_of_buffers)),
                end: word(offset_of!(Shown, rest_end)),
            },
            pads: Pads {
                start: word(offset_of!(Shown, pads)),
                count: word(offset_of!(Shown, pad_count)),
                frames: word(offset_of!(Shown, frames)),
            },
        })
    }
}
