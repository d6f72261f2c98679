//! Perf events that an ordinary user may open on processes of its own: the timer of each CPU, while they run in user
//! space.
//!
//! Each CPU has a ring buffer in memory that is shared with the kernel, for records about any of the processes. The
//! layouts are those of `linux/perf_event.h`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytemuck::{Pod, Zeroable};

const PAGE: usize = 4096;
/// The number of pages of a ring buffer: the most, which is tried first, and the least. An ordinary user may lock 516
/// KiB per CPU in total.
const MOST_PAGES: usize = 64;
const FEWEST_PAGES: usize = 4;
/// Offsets in the first page of the positions up to which the kernel has written, and up to which we have read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const SAMPLE_IP_TID_TIME: u64 = 1 | 1 << 1 | 1 << 2;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const COMM: u64 = 1 << 9;
const FREQUENCY: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// The first 112 bytes of `struct perf_event_attr`, as in Linux 4.1.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    unused: [u64; 4],
    stack_user: u32,
    clockid: i32,
    regs_intr: u64,
    aux_watermark: u32,
    max_stack: u32,
}

const _: () = assert!(size_of::<Attributes>() == 112);

/// An event of one thread on one CPU, and of all threads and processes that it starts from then on.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
}

impl Event {
    /// Takes `hz` samples per second of thread `tid` while it runs on `cpu` in user space.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` if this is not allowed, `ESRCH` if the thread has ended.
    pub fn open(tid: u32, cpu: u32, hz: u64) -> io::Result<Self> {
        let flags = INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | FREQUENCY | TASK | COMM;
        Self::open_with(tid as i32, cpu as i32, hz, flags | COMM_EXEC | SAMPLE_ID_ALL)
    }

    /// Takes `hz` samples per second of the calling thread, which are not read.
    ///
    /// # Errors
    /// As for [`Event::open`].
    pub fn of_this_thread(hz: u64) -> io::Result<Self> {
        Self::open_with(0, -1, hz, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | FREQUENCY)
    }

    fn open_with(tid: i32, cpu: i32, hz: u64, flags: u64) -> io::Result<Self> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CLOCK,
            sample_frequency: hz,
            sample_type: SAMPLE_IP_TID_TIME,
            flags: flags | USE_CLOCKID,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::zeroed()
        };
        let no_group = -1;
        // SAFETY: the kernel reads as many bytes as `size` says.
        let fd = unsafe {
            let attributes = &raw const attributes;
            libc::syscall(libc::SYS_perf_event_open, attributes, tid, cpu, no_group, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else has it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
    }

    /// Sends this event's records to the ring buffer of another event of the same CPU.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn write_to(&self, ring: &Ring) -> io::Result<()> {
        // SAFETY: both are events; nothing but their descriptors is passed.
        let result =
            unsafe { libc::ioctl(self.fd.as_raw_fd(), SET_OUTPUT, ring.event.fd.as_raw_fd()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// What a record reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A sample of a thread at this address.
    Sample(u64),
    /// The thread was started by the process with this number, which is its own if it is a further thread.
    Fork(u32),
    /// The process has begun another image with this name.
    Exec([u8; 16]),
    /// The thread has ended.
    Exit,
    /// This many records were lost for lack of room.
    Lost(u64),
}

/// A record of a ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// What happened.
    pub what: What,
}

/// The ring buffer of a CPU.
#[derive(Debug)]
pub struct Ring {
    event: Event,
    base: *mut u8,
    bytes: usize,
}

impl Ring {
    /// Makes a ring buffer for the records of `event`, and of other events that are told to use it.
    ///
    /// # Errors
    /// If not enough memory may be locked.
    pub fn for_event(event: Event) -> io::Result<Self> {
        let mut pages = MOST_PAGES;
        loop {
            let len = (pages + 1) * PAGE;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: A new mapping, at an address of the kernel's choice.
            let base = unsafe {
                libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, event.fd.as_raw_fd(), 0)
            };
            if base != libc::MAP_FAILED {
                return Ok(Self { event, base: base.cast(), bytes: pages * PAGE });
            }
            if pages == FEWEST_PAGES {
                return Err(io::Error::last_os_error());
            }
            pages /= 2;
        }
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the first page, which is mapped as long as this exists, and which the kernel
        // reads and writes as a whole.
        unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }
    }

    /// Appends the records in the buffer to `records`, and frees their space.
    pub fn take(&self, records: &mut Vec<Record>) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        while tail < head {
            let Some(header) = self.copy(tail, HEADER, &mut bytes) else { break };
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < HEADER || size as u64 > head - tail {
                break;
            }
            if let Some(record) = self.copy(tail, size, &mut bytes).and_then(parse) {
                records.push(record);
            }
            tail += size as u64;
        }
        // Everything must be read before the kernel may overwrite it.
        fence(Ordering::SeqCst);
        self.position(TAIL).store(head, Ordering::Release);
    }

    /// Copies bytes from a position of the buffer.
    fn copy<'b>(&self, at: u64, len: usize, bytes: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        if len > self.bytes {
            return None;
        }
        bytes.clear();
        let start = at as usize % self.bytes;
        let first = len.min(self.bytes - start);
        // SAFETY: both pieces are in the pages behind the first, and the kernel does not write between tail and head.
        unsafe {
            let ring = self.base.add(PAGE);
            bytes.extend_from_slice(std::slice::from_raw_parts(ring.add(start), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(ring, len - first));
        }
        Some(bytes)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes + PAGE) };
    }
}

/// Size in bytes of a record's header: kind, flags, size.
const HEADER: usize = 8;
/// Flag of a name set by `exec`.
const BY_EXEC: u16 = 1 << 13;

fn parse(bytes: &[u8]) -> Option<Record> {
    let number = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    // The part that depends on the kind is followed by pid, tid and time.
    let end = bytes.len().checked_sub(16)?;
    let own = |what| {
        Some(Record { time_ns: long(end + 8)?, pid: number(end)?, tid: number(end + 4)?, what })
    };
    match number(0)? {
        2 => own(What::Lost(long(16)?)),
        3 if u16::from_ne_bytes([bytes[4], bytes[5]]) & BY_EXEC != 0 => {
            let mut name = [0; 16];
            let text = bytes.get(16..end)?;
            let len = text.len().min(name.len());
            name[..len].copy_from_slice(&text[..len]);
            own(What::Exec(name))
        }
        kind @ (4 | 7) => {
            let (pid, parent, tid) = (number(8)?, number(12)?, number(16)?);
            let what = if kind == 7 { What::Fork(parent) } else { What::Exit };
            Some(Record { time_ns: long(24)?, pid, tid, what })
        }
        9 => Some(Record {
            time_ns: long(24)?,
            pid: number(16)?,
            tid: number(20)?,
            what: What::Sample(long(8)?),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Record, Ring, What, parse};

    #[test]
    fn records_are_taken_apart() {
        let sample: Vec<u8> =
            [9 | 40 << 48, 0x1234, 7 | 8 << 32, 99].map(u64::to_ne_bytes).concat();
        let expected = Record { time_ns: 99, pid: 7, tid: 8, what: What::Sample(0x1234) };
        assert_eq!(parse(&sample), Some(expected));
        assert_eq!(parse(&sample[..20]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn a_thread_is_found_where_it_runs() {
        // SAFETY: it only asks for a number.
        let tid = unsafe { libc::gettid() } as u32;
        let cpus = aya::util::online_cpus().expect("CPUs");
        let rings: Vec<Ring> = cpus
            .iter()
            .map(|&cpu| {
                Ring::for_event(Event::open(tid, cpu, 997).expect("allowed")).expect("memory")
            })
            .collect();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 200 {
            std::hint::spin_loop();
        }
        let mut records = Vec::new();
        rings.iter().for_each(|ring| ring.take(&mut records));
        let found = records.iter().filter(|record| {
            record.tid == tid && matches!(record.what, What::Sample(address) if address > 0)
        });
        assert!((20..=210).contains(&found.count()), "{records:?}");
    }
}
