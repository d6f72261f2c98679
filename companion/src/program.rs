//! Loads and attaches the eBPF program, and gives access to its maps.

use std::fs;
use std::io;

use aya::maps::{HashMap, Map, MapData, MapError, Queue, RingBuf};
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{BtfTracePoint, PerfEvent, ProgramError};
use aya::util::online_cpus;
use aya::{Btf, Ebpf, include_bytes_aligned};
use bytemuck::{Pod, Zeroable};

pub use crate::error::Error;
use crate::mapping::Mapping;
use crate::privilege::may_load;
use crate::shared::{
    Interval, PROCESSES, Process, ROWS, Row, Sample, SingleSyscall, Totals, Turn, WAITS, Wait,
    WaitKey,
};
use crate::types;

/// The compiled program, built from `bpf/syscalls.bpf.c`.
pub static OBJECT: &[u8] = include_bytes_aligned!("../bpf/syscalls.bpf.o");

/// The programs, which have the names of their tracepoints, in the order of attaching: those for ends come before
/// those for beginnings, so that nothing that began before is taken for complete.
const PROGRAMS: [&str; 8] = [
    "sched_process_exit",
    "sched_process_exec",
    "task_newtask",
    "sched_switch",
    "sched_waking",
    "sys_exit",
    "sys_enter",
    "signal_deliver",
];

/// The program that takes samples.
const TAKE_SAMPLE: &str = "take_sample";

/// Size in bytes of the buffer for samples of each CPU: for 2,000 samples, which is two seconds.
const SAMPLES_BYTES: u32 = 1 << 18;

/// How many threads one element of the table by thread number holds.
const THREADS_IN_BLOCK: u32 = 64;

/// Key of the table that finds a row.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct RowKey {
    /// As in [`Row`].
    pub process: u32,
    /// As in [`Row`].
    pub tid: u32,
    /// As in [`Row`].
    pub context: u32,
    /// As in [`Row`].
    pub syscall: u32,
}

// SAFETY: plain integers without padding.
unsafe impl aya::Pod for RowKey {}

/// The running program, detached when this is dropped.
pub struct Program {
    /// All rows; the first [`Totals::rows`] are used, or were.
    pub rows: Mapping<Row>,
    /// All processes; the first [`Totals::processes`] are used, or were.
    pub processes: Mapping<Process>,
    /// One element.
    pub totals: Mapping<Totals>,
    /// All causes of waits; the first [`Totals::waits`] are used, or were.
    pub waits: Mapping<Wait>,
    wait_of: HashMap<MapData, WaitKey, u32>,
    free_waits: Queue<MapData, u32>,
    row_of: HashMap<MapData, RowKey, u32>,
    free_rows: Queue<MapData, u32>,
    free_processes: Queue<MapData, u32>,
    samples: RingBuf<MapData>,
    intervals: RingBuf<MapData>,
    long_turns: RingBuf<MapData>,
    narrated: RingBuf<MapData>,
    sampler_error: Option<ProgramError>,
    loaded: Ebpf,
}

/// Returns the largest thread number of this kernel.
fn most_threads() -> u32 {
    const LARGEST: u32 = 1 << 22;
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(LARGEST)
}

/// Whether any error in the chain means that permission is missing.
fn is_permission(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::PermissionDenied) {
            return true;
        }
        at = error.source();
    }
    false
}

impl Program {
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// As for [`Self::load`] and [`Self::attach`].
    pub fn start(session: u64, owner: u32) -> Result<Self, Error> {
        let mut this = Self::load(session, owner)?;
        this.attach()?;
        Ok(this)
    }

    /// Loads the program. Attached, it traces processes that send a hello with `session` and run as the user `owner`,
    /// and their children.
    ///
    /// # Errors
    /// If there is no BTF or no permission, or if the kernel refuses.
    pub fn load(session: u64, owner: u32) -> Result<Self, Error> {
        if !may_load() {
            // (Reading the kernel's types takes long.)
            return Err(Error::NotPermitted);
        }
        let btf = types::of_kernel(OBJECT)?;
        let cpus = online_cpus().map_or(1, |cpus| cpus.len() as u32);
        let mut loaded = types::loader(&btf)
            .map_max_entries("blocks", most_threads() / THREADS_IN_BLOCK + 1)
            .map_max_entries("samples", (SAMPLES_BYTES * cpus).next_power_of_two())
            .override_global("session", &session, true)
            .override_global("owner_uid", &owner, true)
            .load(OBJECT)
            .map_err(|e| {
                if is_permission(&e) { Error::NotPermitted } else { Error::Load(Box::new(e)) }
            })?;
        for name in PROGRAMS {
            load(&mut loaded, name, &btf).map_err(|source| refused(name, source))?;
        }
        // Loaded while its maps are there. If it fails, the other programs are used without it.
        let sampler = sampler(&mut loaded).and_then(PerfEvent::load).err();
        Ok(Self {
            rows: map(&mut loaded, "rows", ROWS)?,
            processes: map(&mut loaded, "processes", PROCESSES)?,
            totals: map(&mut loaded, "totals", 1)?,
            waits: map(&mut loaded, "waits", WAITS)?,
            wait_of: take(&mut loaded, "wait_of")?,
            free_waits: take(&mut loaded, "free_waits")?,
            row_of: take(&mut loaded, "row_of")?,
            free_rows: take(&mut loaded, "free_rows")?,
            free_processes: take(&mut loaded, "free_processes")?,
            samples: take(&mut loaded, "samples")?,
            intervals: take(&mut loaded, "intervals")?,
            long_turns: take(&mut loaded, "long_turns")?,
            narrated: take(&mut loaded, "narrated")?,
            sampler_error: sampler,
            loaded,
        })
    }

    /// Attaches the program to its tracepoints.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn attach(&mut self) -> Result<(), Error> {
        for name in PROGRAMS {
            attach(&mut self.loaded, name).map_err(|source| refused(name, source))?;
        }
        Ok(())
    }

    /// Takes `hz` samples per second on each CPU from now on.
    ///
    /// # Errors
    /// If `perf_event_open` is not permitted, or if the kernel refuses.
    pub fn sample(&mut self, hz: u64) -> Result<(), Error> {
        let refused = |source| refused(TAKE_SAMPLE, source);
        if let Some(error) = self.sampler_error.take() {
            return Err(refused(error));
        }
        let program = sampler(&mut self.loaded).map_err(refused)?;
        let clock = PerfEventConfig::Software(SoftwareEvent::CpuClock);
        for cpu in online_cpus().map_err(|(_, error)| Error::Cpus(error))? {
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            program.attach(clock, scope, SamplePolicy::Frequency(hz), false).map_err(refused)?;
        }
        Ok(())
    }

    /// Returns the next sample, in the order in which they were taken.
    pub fn next_sample(&mut self) -> Option<Sample> {
        let item = self.samples.next()?;
        bytemuck::try_pod_read_unaligned(&item).ok()
    }

    /// Returns the next long wait, in the order in which they ended.
    pub fn next_interval(&mut self) -> Option<Interval> {
        let item = self.intervals.next()?;
        bytemuck::try_pod_read_unaligned(&item).ok()
    }

    /// Returns the next long turn, in the order in which they were over.
    pub fn next_turn(&mut self) -> Option<Turn> {
        let item = self.long_turns.next()?;
        bytemuck::try_pod_read_unaligned(&item).ok()
    }

    /// Returns the next single system call, in the order in which they returned.
    pub fn next_single_syscall(&mut self) -> Option<SingleSyscall> {
        let item = self.narrated.next()?;
        bytemuck::try_pod_read_unaligned(&item).ok()
    }

    /// Returns the current sums.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals.read(0)
    }

    /// Whether the kernel lets this process use the maps that are not in its memory.
    #[must_use]
    pub fn can_use_maps(&self) -> bool {
        let nobody = RowKey { process: u32::MAX, tid: 0, context: 0, syscall: 0 };
        matches!(self.row_of.get(&nobody, 0), Ok(_) | Err(MapError::KeyNotFound))
    }

    /// Frees a row of a process that has ended.
    ///
    /// # Errors
    /// If the kernel refuses; then the row is lost.
    pub fn free_row(&mut self, number: u32) -> Result<(), MapError> {
        let Row { process, tid, context, syscall, .. } = self.rows.read(number as usize);
        // (First, so that a row that is lost is at least not taken for one of the next process with this number.)
        self.rows.write(number as usize, Row::zeroed());
        self.row_of.remove(&RowKey { process, tid, context, syscall })?;
        self.free_rows.push(number, 0)
    }

    /// Frees a cause of waits of a process that has ended.
    ///
    /// # Errors
    /// If the kernel refuses; then the entry is lost.
    pub fn free_wait(&mut self, number: u32) -> Result<(), MapError> {
        self.wait_of.remove(&self.waits.read(number as usize).key)?;
        self.waits.write(number as usize, Wait::zeroed());
        self.free_waits.push(number, 0)
    }

    /// Frees the entry of a process that has ended, and whose rows are free.
    ///
    /// # Errors
    /// If the kernel refuses; then the entry is lost.
    pub fn free_process(&mut self, number: u32) -> Result<(), MapError> {
        self.processes.write(number as usize, Process::zeroed());
        self.free_processes.push(number, 0)
    }
}

fn refused(name: &'static str, source: ProgramError) -> Error {
    if is_permission(&source) { Error::NotPermitted } else { Error::Program { name, source } }
}

fn sampler(loaded: &mut Ebpf) -> Result<&mut PerfEvent, ProgramError> {
    loaded.program_mut(TAKE_SAMPLE).ok_or(ProgramError::NotLoaded)?.try_into()
}

fn load(loaded: &mut Ebpf, name: &'static str, btf: &Btf) -> Result<(), ProgramError> {
    let program = loaded.program_mut(name).ok_or(ProgramError::NotLoaded)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(name, btf)
}

fn attach(loaded: &mut Ebpf, name: &'static str) -> Result<(), ProgramError> {
    let program = loaded.program_mut(name).ok_or(ProgramError::NotLoaded)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.attach().map(drop)
}

fn take_map(loaded: &mut Ebpf, name: &'static str) -> Result<Map, Error> {
    let missing = || MapError::InvalidName { name: name.to_owned() };
    loaded.take_map(name).ok_or_else(missing).map_err(|source| Error::Map { name, source })
}

fn take<T: TryFrom<Map, Error = MapError>>(
    loaded: &mut Ebpf,
    name: &'static str,
) -> Result<T, Error> {
    take_map(loaded, name)?.try_into().map_err(|source| Error::Map { name, source })
}

fn map<T: Pod>(loaded: &mut Ebpf, name: &'static str, len: usize) -> Result<Mapping<T>, Error> {
    let Map::Array(data) = take_map(loaded, name)? else {
        return Err(Error::Map { name, source: MapError::InvalidMapType { map_type: 0 } });
    };
    Mapping::new(data.fd(), len).map_err(|source| Error::Mmap { name, source })
}
