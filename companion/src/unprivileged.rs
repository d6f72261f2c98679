//! Takes samples without privilege: of processes of the same user, in user space, without contexts.
//!
//! It watches the process that started the companion, and everything that this starts from then on: the kernel passes
//! the events ([`crate::perf`]) on to new threads and processes. Other processes that record into the same directory
//! are found by their recordings. A process's mappings, and its threads' time on the CPU, are read from `/proc`. A
//! watched process can't notice that it is watched.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aya::util::online_cpus;
use bytemuck::Zeroable;
use chase_format::layout::Header;
use chase_format::syscalls::{STATE_COMPLETE, SyscallsHeader};
use chase_logic::proc::process_start;

use crate::clock::{now_ns, realtime_of};
use crate::drain::{boot_id, path_of};
use crate::file::{Place, SyscallsFile};
use crate::perf::{Event, Record, Ring, What};
use crate::processors::{Allowed, ControlGroups, Quota};
use crate::recordings::Recordings;
use crate::samples::Samples;
use crate::shared::{ON_CPU, PROCESS_EXECED, PROCESS_GREETED, Process, Row, Sample};
use crate::watcher::{Found, Watcher};

/// How much later the records of one CPU may become readable than those of another.
const SLACK_NS: u64 = 5_000_000;
/// The times of a process with more threads than this are not read in each round, ...
const MANY_THREADS: usize = 64;
/// ... but in one of so many.
const ROUNDS: u64 = 10;

/// Why no samples can be taken, as one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list of CPUs can't be read.
    #[error("can't read which CPUs there are: {0}")]
    Cpus(io::Error),
    /// Ordinary users may not use it.
    #[error(
        "perf_event_open is not permitted (kernel.perf_event_paranoid is {level}): \
         `sysctl kernel.perf_event_paranoid=2` permits it"
    )]
    NotPermitted {
        /// The value of `kernel.perf_event_paranoid`.
        level: String,
    },
    /// Another reason.
    #[error("perf_event_open: {0}")]
    Refused(io::Error),
}

/// A thread's time on the CPU.
#[derive(Debug, Default)]
struct Thread {
    /// Its time since its start, as last read.
    read_ns: u64,
    /// That time when its image began.
    before_ns: u64,
    samples: u64,
    place: Option<Place>,
    is_written: bool,
}

/// A program image of a process.
#[derive(Debug)]
struct Image {
    process: Process,
    file: Option<SyscallsFile>,
    samples: Samples,
    threads: HashMap<u32, Thread>,
    /// The limit of its processor time, once it was asked for.
    quota: Option<Option<Quota>>,
}

/// A living process.
#[derive(Debug)]
struct Living {
    image: Image,
    /// Its threads, as far as known.
    tids: HashSet<u32>,
}

/// Everything that is watched.
#[derive(Debug)]
pub struct Unprivileged {
    directory: PathBuf,
    hz: u64,
    cpus: Vec<u32>,
    /// One ring buffer for each CPU.
    rings: Vec<Ring>,
    events: Vec<Event>,
    living: HashMap<u32, Living>,
    /// Images that have ended, and whose recording may not have been found yet.
    ended: Vec<Image>,
    /// Records too new to be processed, since earlier ones of other CPUs may follow.
    pending: Vec<Record>,
    recordings: Recordings,
    groups: ControlGroups,
    boot_id: [u8; 16],
    lost: u64,
    rounds: u64,
    failed: Option<(PathBuf, io::Error)>,
}

impl Unprivileged {
    /// Begins without processes. Recordings are in `directory`.
    ///
    /// # Errors
    /// If the process may not even sample itself.
    pub fn start(directory: &Path, hz: u64) -> Result<Self, Error> {
        let cpus = online_cpus().map_err(|(_, error)| Error::Cpus(error))?;
        Event::of_this_thread(hz).map_err(refused)?;
        Ok(Self {
            directory: directory.to_owned(),
            hz,
            cpus,
            rings: Vec::new(),
            events: Vec::new(),
            living: HashMap::new(),
            ended: Vec::new(),
            pending: Vec::new(),
            recordings: Recordings::default(),
            groups: ControlGroups::default(),
            boot_id: boot_id(),
            lost: 0,
            rounds: 0,
            failed: None,
        })
    }

    fn open(&mut self, tid: u32) -> io::Result<()> {
        for at in 0..self.cpus.len() {
            let event = Event::open(tid, self.cpus[at], self.hz)?;
            match self.rings.get(at) {
                Some(ring) => {
                    event.write_to(ring)?;
                    self.events.push(event);
                }
                None => self.rings.push(Ring::for_event(event)?),
            }
        }
        Ok(())
    }

    /// Returns the records up to `until_ns`, in order of time.
    fn take_records(&mut self, until_ns: u64) -> Vec<Record> {
        for ring in &self.rings {
            ring.take(&mut self.pending);
        }
        // (A stable sort: one CPU's records of the same time stay in order.)
        self.pending.sort_by_key(|record| record.time_ns);
        let ready = self.pending.partition_point(|record| record.time_ns <= until_ns);
        self.pending.drain(..ready).collect()
    }

    fn note(&mut self, record: &Record) {
        let Record { time_ns, pid, tid, what } = *record;
        match what {
            What::Lost(count) => self.lost += count,
            What::Fork(parent) if parent != pid => {
                let name = self.living.get(&parent).map(|parent| parent.image.process.name);
                let image = Image::new(pid, time_ns, &name.unwrap_or_default());
                let living = Living { image, tids: HashSet::from([tid]) };
                if let Some(before) = self.living.insert(pid, living) {
                    self.end(before.image, time_ns);
                }
            }
            What::Fork(_) => {
                if let Some(living) = self.living.get_mut(&pid) {
                    living.tids.insert(tid);
                }
            }
            What::Exec(name) => {
                let Some(living) = self.living.get_mut(&pid) else { return };
                let mut image = Image::new(pid, time_ns, &name);
                image.process.state = PROCESS_EXECED;
                let read_ns = on_cpu_ns(pid, pid).unwrap_or(0);
                let thread = Thread { read_ns, before_ns: read_ns, ..Thread::default() };
                image.threads.insert(pid, thread);
                living.tids = HashSet::from([pid]);
                let before = std::mem::replace(&mut living.image, image);
                self.end(before, time_ns);
            }
            What::Exit => {
                let Some(living) = self.living.get_mut(&pid) else { return };
                living.tids.remove(&tid);
                if living.tids.is_empty()
                    && let Some(living) = self.living.remove(&pid)
                {
                    self.end(living.image, time_ns);
                }
            }
            What::Sample(address) => {
                let Some(Living { image, .. }) = self.living.get_mut(&pid) else { return };
                let sample =
                    Sample { process: pid, tid, address, at_ns: time_ns, ..Sample::zeroed() };
                image.samples.add(&sample);
                let thread = image.threads.entry(tid).or_default();
                thread.samples += 1;
                thread.is_written = false;
            }
        }
    }

    fn end(&mut self, mut image: Image, time_ns: u64) {
        (image.process.live, image.process.ended_ns) = (0, time_ns);
        self.ended.push(image);
    }

    /// Reads how long threads have been on the CPU, and detects processes that have ended unnoticed.
    fn read_times(&mut self) {
        let mut gone = Vec::new();
        for (&pid, living) in &mut self.living {
            let Ok(tids) = threads_of(pid) else {
                gone.push(pid);
                continue;
            };
            if tids.len() > MANY_THREADS && !self.rounds.is_multiple_of(ROUNDS) {
                continue;
            }
            for tid in tids {
                let Ok(read_ns) = on_cpu_ns(pid, tid) else { continue };
                let thread = living.image.threads.entry(tid).or_default();
                thread.is_written &= thread.read_ns == read_ns;
                thread.read_ns = read_ns;
            }
        }
        // Their last records may still be on the way.
        if self.rounds.is_multiple_of(ROUNDS) {
            let now = now_ns(libc::CLOCK_MONOTONIC);
            for pid in gone {
                if let Some(living) = self.living.remove(&pid) {
                    self.end(living.image, now);
                }
            }
        }
    }

    /// Looks for new recordings that began before `until_ns`: the kernel would have reported their processes by now
    /// if they were watched.
    fn find_recordings(&mut self, until_ns: u64) {
        for (path, header) in self.recordings.find_new(&self.directory, self.boot_id, until_ns) {
            self.found(&path, &header);
        }
    }

    fn found(&mut self, path: &Path, header: &Header) {
        let began_ns = header.clock_start.monotonic_ns;
        let holds = |process: &Process| {
            process.own_pid == header.pid
                && process.state != PROCESS_GREETED
                && process.began_ns <= began_ns
                && (process.ended_ns == 0 || began_ns <= process.ended_ns)
        };
        let living = self.living.get_mut(&header.pid).map(|living| &mut living.image);
        if let Some(image) = self.ended.iter_mut().chain(living).find(|image| holds(&image.process))
        {
            image.is_recorded_in(path, header);
            return;
        }
        let stat = fs::read(format!("/proc/{}/stat", header.pid)).unwrap_or_default();
        if stat.is_empty() || process_start(&stat) != header.process_start {
            return;
        }
        // This is the recording of an image that began before it was watched.
        if !self.living.contains_key(&header.pid) && self.follow(header.pid).is_err() {
            return;
        }
        if let Some(Living { image, .. }) = self.living.get_mut(&header.pid)
            && image.process.state != PROCESS_GREETED
        {
            image.is_recorded_in(path, header);
        }
    }

    fn write(&mut self) {
        let (hz, lost, now) = (self.hz, self.lost, now_ns(libc::CLOCK_MONOTONIC));
        let mut failed = None;
        for Living { image, .. } in self.living.values_mut() {
            let groups = &mut self.groups;
            image.quota.get_or_insert_with(|| groups.quota_of(image.process.pid));
            image.samples.look_up(&image.process, now);
            image.samples.look_for_names(&image.process, now);
            // For other images it is not known yet whether there will be a recording.
            if image.process.state == PROCESS_GREETED {
                failed = image.write(&self.directory, hz, lost).or(failed);
            }
        }
        self.groups.forget();
        for mut image in std::mem::take(&mut self.ended) {
            failed = image.write(&self.directory, hz, lost).or(failed);
            failed = image.finish(&self.directory).or(failed);
        }
        if self.failed.is_none() {
            self.failed = failed.map(|error| (self.directory.clone(), error));
        }
    }

    fn handle(&mut self, until_ns: u64) {
        for record in self.take_records(until_ns) {
            self.note(&record);
        }
        self.read_times();
        self.find_recordings(until_ns);
        self.write();
    }
}

/// Whether an error means that a process or thread has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

impl Watcher for Unprivileged {
    fn follow(&mut self, pid: u32) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // A process may have ended before the companion was ready; others will come.
        let tids = match threads_of(pid) {
            Err(error) if is_gone(&error) => return Ok(()),
            tids => tids.map_err(Error::Refused)?,
        };
        let began_ns = now_ns(libc::CLOCK_MONOTONIC);
        for &tid in &tids {
            match self.open(tid) {
                Err(error) if is_gone(&error) => {}
                opened => opened.map_err(refused)?,
            }
        }
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut image = Image::new(pid, began_ns, &name);
        for &tid in &tids {
            let before_ns = on_cpu_ns(pid, tid).unwrap_or(0);
            let thread = Thread { read_ns: before_ns, before_ns, ..Thread::default() };
            image.threads.insert(tid, thread);
        }
        self.living.insert(pid, Living { image, tids: tids.into_iter().collect() });
        Ok(())
    }

    fn round(&mut self) -> Found {
        self.rounds += 1;
        self.handle(now_ns(libc::CLOCK_MONOTONIC) - SLACK_NS);
        // A process counts as ended once everything about it is written.
        Found { live: self.living.len(), ended: self.ended.len() }
    }

    fn stop(&mut self) {
        self.handle(u64::MAX);
        for living in self.living.values_mut() {
            if let Some(file) = &mut living.image.file {
                file.stop();
            }
        }
    }

    fn failure(&self) -> Option<&(PathBuf, io::Error)> {
        self.failed.as_ref()
    }

    fn left_out(&self) -> Vec<(u64, &'static str)> {
        vec![(self.lost, "samples for want of room")]
    }
}

impl Image {
    fn new(pid: u32, began_ns: u64, name: &[u8]) -> Self {
        let mut process = Process { pid, own_pid: pid, began_ns, live: 1, ..Process::zeroed() };
        let name = name.trim_ascii_end();
        let len = name.len().min(process.name.len() - 1);
        process.name[..len].copy_from_slice(&name[..len]);
        let (samples, threads) = (Samples::default(), HashMap::new());
        Self { process, file: None, samples, threads, quota: None }
    }

    fn is_recorded_in(&mut self, path: &Path, header: &Header) {
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.len() < self.process.path.len() {
            self.process.path[..bytes.len()].copy_from_slice(bytes);
            self.process.state = PROCESS_GREETED;
            self.process.parent_pid = header.parent_pid;
        }
    }

    /// Writes what has changed, if anything; returns the error, if there is one.
    fn write(&mut self, directory: &Path, hz: u64, lost: u64) -> Option<io::Error> {
        if self.file.is_none() {
            let is_recorded = self.process.state == PROCESS_GREETED;
            if !is_recorded && self.threads.values().all(|thread| thread.samples == 0) {
                return None;
            }
            let header = SyscallsHeader {
                pid: self.process.own_pid,
                parent_pid: self.process.parent_pid,
                began_ns: self.process.began_ns,
                began_realtime_ns: realtime_of(self.process.began_ns),
                boot_id: boot_id(),
                name: self.process.name,
                sample_hz: hz,
                user_only: 1,
                ..SyscallsHeader::zeroed()
            };
            match SyscallsFile::create(&path_of(&self.process, directory), header) {
                Ok(file) => self.file = Some(file),
                Err(error) => return Some(error),
            }
        }
        let file = self.file.as_mut()?;
        file.header.written_ns = now_ns(libc::CLOCK_MONOTONIC);
        file.header.lost_samples = lost;
        if let Some(quota) = self.quota.as_ref().and_then(Option::as_ref) {
            quota.describe(&mut file.header);
        }
        let mut result = self.samples.write(file);
        for (&tid, thread) in &mut self.threads {
            if result.is_ok() && !thread.is_written {
                result = thread.write(tid, hz, file);
            }
        }
        result.and_then(|()| file.flush()).err()
    }

    fn finish(&mut self, directory: &Path) -> Option<io::Error> {
        let file = self.file.as_mut()?;
        file.header.state = STATE_COMPLETE;
        file.header.ended_ns = self.process.ended_ns;
        let names = std::mem::take(&mut self.samples).names();
        let names = names.filter(|_| self.process.state == PROCESS_GREETED);
        let kept = names.and_then(|names| {
            let recording = path_of(&self.process, directory).with_extension("");
            names.keep(&self.process, &recording, now_ns(libc::CLOCK_MONOTONIC)).err()
        });
        file.write_header().err().or(kept)
    }
}

impl Thread {
    /// Writes the time that `/proc` last reported, or that of the samples, if that is more.
    fn write(&mut self, tid: u32, hz: u64, file: &mut SyscallsFile) -> io::Result<()> {
        let sampled_ns = self.samples * (1_000_000_000 / hz);
        let total_ns = self.read_ns.saturating_sub(self.before_ns).max(sampled_ns);
        let allowed = Allowed::of(tid);
        let row = Row { tid, syscall: ON_CPU, count: 1, total_ns, ..Row::default() };
        match self.place {
            Some(place) => file.update(place, &row, allowed)?,
            None => self.place = Some(file.add(&row, allowed)?),
        }
        self.is_written = true;
        Ok(())
    }
}

fn refused(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => {
            let path = "/proc/sys/kernel/perf_event_paranoid";
            let level = fs::read_to_string(path)
                .map_or("not there".to_owned(), |text| text.trim().to_owned());
            Error::NotPermitted { level }
        }
        _ => Error::Refused(error),
    }
}

fn threads_of(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Reads how long a thread has been on the CPU since its start: the first number in `schedstat`, which is up to one
/// tick old.
fn on_cpu_ns(pid: u32, tid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"))?;
    let first = text.split(' ').next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
