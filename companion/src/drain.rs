//! Copies rows into the files of their processes, and frees the rows of processes that have ended.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aya::util::online_cpus;
use bytemuck::Zeroable;
use chase_format::boot;
use chase_format::syscalls::{EXTENSION, STATE_COMPLETE, SyscallsHeader};

use crate::calibrate::Cost;
use crate::causes::Causes;
use crate::clock::{now_ns, realtime_of};
use crate::file::{Place, SyscallsFile};
use crate::intervals::Intervals;
use crate::long_turns::LongTurns;
use crate::maps::number_of;
use crate::narration::Narration;
use crate::privilege;
use crate::processors::{Allowed, ControlGroups, Quota};
use crate::program::Program;
use crate::recordings::is_recording;
use crate::samples::Samples;
use crate::shared::{ON_CPU, PROCESS_FREE, PROCESS_GREETED, Process, Row, Totals, WAITS};
use crate::watcher::{Found, Watcher};

/// A process that has rows.
#[derive(Debug)]
struct Target {
    /// `None` if the file can't be created, or not be written any more.
    file: Option<SyscallsFile>,
    rows: Vec<u32>,
    quota: Option<Quota>,
    /// Whether its threads have the same numbers for the companion as for itself.
    is_of_same_numbers: bool,
    /// Whether the header has the present totals.
    is_refreshed: bool,
}

impl Target {
    /// Updates the header's fields that are about all processes of the run.
    fn refresh(&mut self, totals: &Totals) {
        self.is_refreshed = true;
        let Some(SyscallsFile { header, .. }) = &mut self.file else { return };
        header.written_ns = now_ns(libc::CLOCK_MONOTONIC);
        (header.lost_calls, header.lost_waits) = (totals.lost_calls, totals.lost_waits);
        (header.lost_processes, header.lost_threads) = (totals.lost_processes, totals.lost_threads);
        header.dropped_images = totals.dropped;
        header.lost_samples = totals.lost_samples;
        header.companion_cpu_ns = now_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        header.lost_causes = totals.lost_wakers;
        header.lost_blocked = header.lost_blocked.max(totals.lost_intervals);
        header.lost_preempted = header.lost_preempted.max(totals.lost_preempted);
        header.lost_turns = totals.lost_turns;
        header.lost_single_syscalls = header.lost_single_syscalls.max(totals.lost_single_syscalls);
        if let Some(quota) = &self.quota {
            quota.describe(header);
        }
    }
}

/// What was last written of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    place: Option<Place>,
    count: u64,
    /// The processors of the thread, of a row of time on the CPU.
    allowed: Option<Allowed>,
}

/// Everything that is being recorded.
#[derive(Debug)]
pub struct Drain {
    directory: PathBuf,
    cost: Cost,
    sample_hz: u64,
    boot_id: [u8; 16],
    /// As of this round, once it was asked for.
    processors: Option<u64>,
    groups: ControlGroups,
    targets: HashMap<u32, Target>,
    samples: HashMap<u32, Samples>,
    causes: Causes,
    intervals: HashMap<u32, Intervals>,
    narrations: HashMap<u32, Narration>,
    long_turns: HashMap<u32, LongTurns>,
    written: Vec<Option<Written>>,
    /// The first file that could not be written, and the error.
    failed: Option<(PathBuf, io::Error)>,
}

/// The watcher that uses the eBPF program.
pub struct Traced {
    /// The eBPF program.
    pub program: Program,
    /// Writes the program's rows to files.
    pub drain: Drain,
}

impl Watcher for Traced {
    fn give_up_rights(&mut self) -> io::Result<()> {
        privilege::give_up(|| self.program.can_use_maps())
    }

    fn round(&mut self) -> Found {
        self.drain.round(&mut self.program)
    }

    fn stop(&mut self) {
        self.drain.stop();
    }

    fn failure(&self) -> Option<&(PathBuf, io::Error)> {
        self.drain.failed.as_ref()
    }

    fn left_out(&self) -> Vec<(u64, &'static str)> {
        let totals = self.program.totals();
        vec![
            (totals.refused, "processes of another user (or another version of chase)"),
            (totals.dropped, "set-id images"),
            (totals.lost_processes, "processes for want of room"),
            (totals.lost_threads, "threads for want of room"),
            (totals.lost_calls, "calls for want of room"),
            (totals.lost_waits, "waits for want of room"),
            (totals.lost_samples, "samples for want of room"),
            (totals.lost_wakers, "causes of waits for want of room"),
            (totals.lost_intervals, "long waits for want of room"),
            (totals.lost_turns, "waits that end a turn of an event loop for want of room"),
            (totals.lost_long_turns, "single turns of event loops for want of room"),
            (totals.lost_preempted, "long times without a processor for want of room"),
            (totals.lost_single_syscalls, "system calls of the narration for want of room"),
        ]
    }
}

impl Drain {
    /// Begins without processes. Files of processes without a recording are created in `directory`. `sample_hz` is
    /// the number of samples per second and CPU; 0 if none are taken.
    #[must_use]
    pub fn new(directory: PathBuf, cost: Cost, sample_hz: u64) -> Self {
        Self {
            directory,
            cost,
            sample_hz,
            boot_id: boot_id(),
            processors: None,
            groups: ControlGroups::default(),
            targets: HashMap::new(),
            samples: HashMap::new(),
            causes: Causes::default(),
            intervals: HashMap::new(),
            narrations: HashMap::new(),
            long_turns: HashMap::new(),
            written: Vec::new(),
            failed: None,
        }
    }

    /// Writes what has changed, and closes the files of processes that have ended.
    pub fn round(&mut self, program: &mut Program) -> Found {
        // The processes are read before the rows: of a process that has ended by now, no row changes any more.
        let processes = program.totals().processes as u32;
        let all: Vec<Process> =
            (0..processes).map(|i| program.processes.read(i as usize)).collect();
        // The turns are read before the samples: all that were taken in these are there then.
        let mut turns = Vec::new();
        while let Some(turn) = program.next_turn() {
            turns.push(turn);
        }
        while let Some(sample) = program.next_sample() {
            self.samples.entry(sample.process).or_default().add(&sample);
        }
        for turn in turns {
            self.samples.entry(turn.process).or_default().add_turn(&turn);
            self.long_turns.entry(turn.process).or_default().add(&turn);
        }
        while let Some(interval) = program.next_interval() {
            if interval.wait as usize == WAITS {
                let process = interval.woken_ns as u32;
                self.intervals.entry(process).or_default().add_preempted(&interval);
                continue;
            }
            let wait = program.waits.read(interval.wait as usize);
            self.intervals.entry(wait.key.process).or_default().add(&interval, &wait);
        }
        while let Some(call) = program.next_single_syscall() {
            self.narrations.entry(call.process).or_default().add(&call);
        }
        self.write_rows(program, &all);
        self.write_samples(program, &all);
        self.write_causes(program, &all);
        self.write_narrations(program, &all);
        self.write_long_turns(program, &all);
        self.flush(&all);
        let mut found = Found { live: 0, ended: 0 };
        for (number, process) in (0..).zip(&all) {
            if process.state == PROCESS_FREE {
                continue;
            }
            if process.live > 0 {
                found.live += 1;
                continue;
            }
            found.ended += 1;
            self.finish(program, number, process);
        }
        found
    }

    fn write_rows(&mut self, program: &Program, processes: &[Process]) {
        let rows = program.totals().rows as usize;
        self.written.resize(self.written.len().max(rows), None);
        for number in 0..rows {
            let row = program.rows.read(number);
            // The count is set first when a row is filled in.
            if row.count == 0 {
                continue;
            }
            // For a process that has ended, all rows are written: a row read in the middle of its last change has the
            // new count, but not yet the rest.
            let live = processes.get(row.process as usize).is_some_and(|process| process.live > 0);
            if live && self.written[number].is_some_and(|written| written.count == row.count) {
                continue;
            }
            self.write_row(number, &row, processes, program);
        }
    }

    fn write_row(&mut self, number: usize, row: &Row, processes: &[Process], program: &Program) {
        if !processes.get(row.process as usize).is_some_and(has_name) {
            return;
        }
        let written = self.written[number];
        let Written { mut place, mut allowed, .. } = written.unwrap_or_default();
        if row.syscall == ON_CPU && processes[row.process as usize].live > 0 {
            self.make_target(row.process, processes);
            let target = self.targets.get(&row.process).filter(|it| it.is_of_same_numbers);
            allowed = target.and_then(|_| Allowed::of(row.tid)).or(allowed);
        }
        self.write_with(row.process, program, processes, |file| match place {
            Some(at) => file.update(at, row, allowed),
            None => file.add(row, allowed).map(|at| place = Some(at)),
        });
        if written.is_none()
            && let Some(target) = self.targets.get_mut(&row.process)
        {
            target.rows.push(number as u32);
        }
        self.written[number] = Some(Written { place, count: row.count, allowed });
    }

    fn make_target(&mut self, number: u32, processes: &[Process]) {
        if self.targets.contains_key(&number) {
            return;
        }
        let process = &processes[number as usize];
        let path = path_of(process, &self.directory);
        let processors = self
            .processors
            .get_or_insert_with(|| online_cpus().map_or(0, |cpus| cpus.len() as u64));
        let header = SyscallsHeader {
            sample_hz: self.sample_hz,
            boot_id: self.boot_id,
            processors: *processors,
            ..header_of(process, self.cost)
        };
        let result = SyscallsFile::create(&path, header);
        let file = result.map_err(|error| self.failed.get_or_insert((path, error))).ok();
        let known_as = number_of(process).ok();
        let quota = known_as.and_then(|known_as| self.groups.quota_of(known_as));
        let is_of_same_numbers = known_as == Some(process.own_pid);
        let rows = Vec::new();
        let target = Target { file, rows, quota, is_of_same_numbers, is_refreshed: false };
        self.targets.insert(number, target);
    }

    fn write_samples(&mut self, program: &Program, processes: &[Process]) {
        let now = now_ns(libc::CLOCK_MONOTONIC);
        let mut all = std::mem::take(&mut self.samples);
        for (&number, samples) in &mut all {
            let Some(process) = processes.get(number as usize) else { continue };
            // Only possible while the process lives.
            samples.look_up(process, now);
            samples.look_for_names(process, now);
            self.write_with(number, program, processes, |file| samples.write(file));
        }
        self.samples = all;
    }

    fn write_causes(&mut self, program: &Program, processes: &[Process]) {
        let mut causes = std::mem::take(&mut self.causes);
        for (number, changed) in causes.changed(program, processes) {
            self.write_with(number, program, processes, |file| {
                causes.write(&changed, program, file)
            });
        }
        let mut all = std::mem::take(&mut self.intervals);
        for (&number, intervals) in all.iter_mut().filter(|(_, intervals)| !intervals.is_empty()) {
            if (number as usize) < processes.len() {
                self.write_with(number, program, processes, |file| {
                    intervals.write(file, |wait| causes.number(wait))
                });
            }
        }
        self.intervals = all;
        self.causes = causes;
    }

    fn write_narrations(&mut self, program: &Program, processes: &[Process]) {
        let mut all = std::mem::take(&mut self.narrations);
        for (&number, narration) in all.iter_mut().filter(|(_, narration)| !narration.is_empty()) {
            // They are kept until it is known where their file is.
            if processes.get(number as usize).is_some_and(has_name) {
                self.write_with(number, program, processes, |file| narration.write(file));
            }
        }
        self.narrations = all;
    }

    fn write_long_turns(&mut self, program: &Program, processes: &[Process]) {
        let mut all = std::mem::take(&mut self.long_turns);
        for (&number, turns) in all.iter_mut().filter(|(_, turns)| !turns.is_empty()) {
            if processes.get(number as usize).is_some_and(has_name) {
                self.write_with(number, program, processes, |file| turns.write(file));
            }
        }
        self.long_turns = all;
    }

    /// Writes to the file of a process with `write`, if there is a file. After an error, the file is marked as
    /// stopped and left as it is.
    fn write_with(
        &mut self,
        number: u32,
        program: &Program,
        processes: &[Process],
        write: impl FnOnce(&mut SyscallsFile) -> io::Result<()>,
    ) {
        let process = &processes[number as usize];
        if !has_name(process) {
            return;
        }
        self.make_target(number, processes);
        let Some(target) = self.targets.get_mut(&number) else { return };
        if !target.is_refreshed {
            target.refresh(&program.totals());
        }
        let Some(file) = &mut target.file else { return };
        if let Err(error) = write(file) {
            file.stop();
            target.file = None;
            self.failed.get_or_insert((path_of(process, &self.directory), error));
        }
    }

    /// Ends a round: all that was written gets into the files.
    fn flush(&mut self, processes: &[Process]) {
        self.processors = None;
        self.groups.forget();
        for (&number, target) in &mut self.targets {
            target.is_refreshed = false;
            let Some(file) = &mut target.file else { continue };
            if let Err(error) = file.flush() {
                file.stop();
                target.file = None;
                let path = path_of(&processes[number as usize], &self.directory);
                self.failed.get_or_insert((path, error));
            }
        }
    }

    /// Completes the file of a process that has ended, and frees its rows.
    fn finish(&mut self, program: &mut Program, number: u32, process: &Process) {
        self.causes.finish(number, program);
        self.intervals.remove(&number);
        self.narrations.remove(&number);
        self.long_turns.remove(&number);
        let names = self.samples.remove(&number).and_then(Samples::names);
        if let Some(names) = names
            && process.state == PROCESS_GREETED
        {
            let path = path_of(process, &self.directory).with_extension("");
            if let Err(error) = names.keep(process, &path, now_ns(libc::CLOCK_MONOTONIC)) {
                self.failed.get_or_insert((path, error));
            }
        }
        if let Some(mut target) = self.targets.remove(&number) {
            target.refresh(&program.totals());
            if let Some(file) = &mut target.file {
                file.header.state = STATE_COMPLETE;
                file.header.ended_ns = process.ended_ns;
                if let Err(error) = file.write_header() {
                    self.failed.get_or_insert((path_of(process, &self.directory), error));
                }
            }
            for row in target.rows {
                self.written[row as usize] = None;
                // A row that can't be freed is lost, and counted when there are no more.
                let _ = program.free_row(row);
            }
        } else {
            // Nothing of it was to be written. The next process with this number must not find its rows.
            for row in 0..program.totals().rows as u32 {
                let Row { process, count, .. } = program.rows.read(row as usize);
                if process == number && count > 0 {
                    let _ = program.free_row(row);
                }
            }
        }
        let _ = program.free_process(number);
    }

    /// Frees everything of processes that have ended, without writing it.
    pub fn forget(&mut self, program: &mut Program) {
        while program.next_sample().is_some() {}
        while program.next_interval().is_some() {}
        while program.next_turn().is_some() {}
        while program.next_single_syscall().is_some() {}
        for row in 0..program.totals().rows as u32 {
            let _ = program.free_row(row);
        }
        for wait in 0..program.totals().waits as u32 {
            let _ = program.free_wait(wait);
        }
        for number in 0..program.totals().processes as u32 {
            let _ = program.free_process(number);
        }
    }

    /// Marks the files of processes that still live as incomplete.
    pub fn stop(&mut self) {
        for target in self.targets.values_mut() {
            if let Some(file) = &mut target.file {
                file.stop();
            }
        }
    }
}

/// Whether what was observed of a process can be written: the name of its recording comes with the hello; an empty
/// name asks that nothing is written. (A process with a free entry began after the entries were read.)
fn has_name(process: &Process) -> bool {
    if process.state == PROCESS_GREETED && until_nul(&process.path).is_empty() {
        return false;
    }
    process.state != PROCESS_FREE && (process.state == PROCESS_GREETED || process.live == 0)
}

fn header_of(process: &Process, cost: Cost) -> SyscallsHeader {
    SyscallsHeader {
        pid: process.own_pid,
        parent_pid: process.parent_pid,
        began_ns: process.began_ns,
        began_realtime_ns: realtime_of(process.began_ns),
        cost_inside_ns: cost.inside_ns,
        cost_outside_ns: cost.outside_ns,
        name: process.name,
        ..SyscallsHeader::zeroed()
    }
}

pub(crate) fn boot_id() -> [u8; 16] {
    boot::parse(&fs::read(OsStr::from_bytes(boot::FILE.to_bytes())).unwrap_or_default())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}

/// Returns the path of a process's file: beside the recording, or, if there is none, in the directory of the run. The
/// path comes from the traced process, so it is checked to lead to its recording.
pub(crate) fn path_of(process: &Process, directory: &Path) -> PathBuf {
    let recording = Path::new(OsStr::from_bytes(until_nul(&process.path)));
    if process.state == PROCESS_GREETED && is_recording(recording, process.own_pid) {
        let mut path = recording.as_os_str().to_owned();
        path.push(".");
        path.push(EXTENSION);
        return path.into();
    }
    let name: Vec<u8> = until_nul(&process.name)
        .iter()
        .map(|&byte| if byte == b'/' { b'_' } else { byte })
        .collect();
    let mut file_name = OsStr::from_bytes(&name).to_owned();
    file_name.push(format!(".{}.{}.{EXTENSION}", process.own_pid, process.began_ns));
    directory.join(file_name)
}
