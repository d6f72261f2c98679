//! What the figures don't contain.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use chase_recorder::layout::{
    OWN_CONTEXT_REF, SKIP_REASONS, STOP_CONFINED, STOP_CUT_OFF, STOP_LIMIT, STOP_NO_MEMORY,
    STOP_NO_SPACE, STOP_NONE,
};
use chase_recorder::reader::SyscallsFile;
use serde::Serialize;

use crate::clock::{Ns, Ticks};
use crate::image::Image;
use crate::image::SyscallsState;
use crate::latest;
use crate::syscalls::syscall;
use crate::unrecorded::file_of;

/// Errors of opening the recording's file, to make it longer: not for want of space.
const OUT_OF_REACH: [u32; 6] = [
    libc::EACCES as u32,
    libc::EPERM as u32,
    libc::ENOENT as u32,
    libc::ENOTDIR as u32,
    libc::ELOOP as u32,
    libc::ESTALE as u32,
];

/// Counts of what was not seen, over all selected processes. If a recording stopped, they are lower bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotSeen {
    /// Calls by threads without a record: starting, ending, or none could be made.
    pub calls_without_thread: u64,
    /// Calls for whose context the recording had no room.
    pub calls_without_space: u64,
    /// Calls that ran untimed because all frames were used: by deep nesting, or by calls abandoned on other stacks.
    pub calls_too_deep: u64,
    /// Other calls that were not recorded, as counted by their threads.
    pub lost_calls: u64,
    /// Threads without a record.
    pub threads: u64,
    /// Imports for which there were no more stubs.
    pub slots_without_stub: u64,
    /// Objects whose tables could not be read.
    pub objects: u64,
    /// `dlopen` calls whose new objects were patched only at the thread's next call.
    pub late_loads: u64,
    /// Contexts whose callers were not kept: their time also counts as their callers' self time.
    pub contexts_under_root: u64,
    /// Processes that copy slices of stacks away and back (greenlets): calls made by one slice while another is away
    /// may be attributed to the other, and calls that were away when frames ran out are untimed.
    pub processes_sliced: u64,
    /// An upper bound of the calls that may be missing or too many for processes whose end was not seen: those since
    /// the latest sample of each thread and slot. They were killed, ended by a system call of their own, or are
    /// running.
    pub latest_calls: u64,
    /// An upper bound of the calls that forks' children made before the forks were noticed: these were unannounced
    /// system calls.
    pub calls_since_fork: u64,
    /// Contexts whose arguments were not recorded, or only up to some point, for lack of room.
    pub contexts_without_arguments: u64,
    /// Single calls and marks of threads that have no room for any.
    pub events_without_space: u64,
    /// Events and marks of ended threads whose space was reused by later threads.
    pub events_of_ended: u64,
    /// Threads that were not to be recorded (`CHASE_THREADS`).
    pub threads_left_out: u64,
    /// Forks' children without a recording: none could be made, or another thread was in the midst of a change of what the hook
    /// keeps, or the process had confined itself. What they called is in no figure.
    pub forks: u64,
    /// Processes whose hottest functions were unhooked except for short windows, as older versions did to keep within
    /// a budget (`CHASE_BUDGET`): their other calls are in no figure.
    pub processes_in_windows: u64,
    /// Processes of which calls were only counted (`--timing count`), but for those of special functions. What is outside of the timed
    /// ones is in [`ThreadRow::unattributed_ns`](crate::ThreadRow::unattributed_ns).
    pub processes_counted: u64,
    /// Imports that were not hooked, by reason; most first.
    pub skipped: Vec<Skipped>,
    /// Recordings that stopped before the process did.
    pub stopped: Vec<Stopped>,
    /// Damaged parts of recordings.
    pub unreadable: Vec<Unreadable>,
    /// What is missing of system calls and waits, if they were observed.
    pub syscalls: SyscallsNotSeen,
}

/// What was not seen of system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyscallsNotSeen {
    /// System calls for which there was no room.
    pub lost_calls: u64,
    /// Times off the CPU for which there was no room; then waits are estimated by name.
    pub lost_waits: u64,
    /// Waits for whose causes there was no room: their times are known, but not what they were for.
    pub lost_causes: u64,
    /// Processes that could not be traced.
    pub lost_processes: u64,
    /// Threads that could not be traced.
    pub lost_threads: u64,
    /// Threads of recorded processes that have no record, since they made no library call, and ran for a millisecond or more.
    pub silent_threads: u64,
    /// How long these ran.
    pub silent_threads_ns: Ns,
    /// Set-user-id and set-group-id images, which are not traced.
    pub dropped_images: u64,
    /// System calls that never returned because their thread ended in them, except for exits.
    pub unfinished: u64,
    /// Processes whose library calls were recorded but not their system calls, while those of other processes of the
    /// run were.
    pub processes_without: Vec<usize>,
    /// Processes whose tracing stopped before their end.
    pub stopped: Vec<SyscallsStopped>,
}

/// A process whose tracing stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyscallsStopped {
    /// Process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// Why: the companion stopped; or it is still working, or was killed.
    pub state: SyscallsState,
    /// Up to when it was traced, relative to the start of the process.
    pub after_ns: Ns,
}

/// Imports that were not hooked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The reason.
    pub reason: &'static str,
    /// The number of imports.
    pub imports: u64,
}

/// A recording that stopped early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// Process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// The reason.
    pub reason: &'static str,
    /// The system's error number, or 0.
    pub errno: u32,
    /// When, relative to the start of the process.
    pub after_ns: Ns,
}

/// A damaged part of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The file. In JSON, bytes that are not UTF-8 are U+FFFD.
    #[serde(serialize_with = "crate::rows::lossy")]
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

impl NotSeen {
    pub(crate) fn add_image(&mut self, process: usize, image: &Image) {
        let header = image.recording.header();
        let unseen = &header.unseen;
        for (sum, count) in [
            (&mut self.calls_without_thread, unseen.calls_without_thread),
            (&mut self.calls_without_space, unseen.calls_without_space),
            (&mut self.calls_too_deep, unseen.calls_too_deep),
            (&mut self.threads, unseen.threads),
            (&mut self.slots_without_stub, unseen.slots_without_stub),
            (&mut self.objects, unseen.objects),
            (&mut self.late_loads, unseen.late_loads),
            (&mut self.contexts_under_root, unseen.contexts_under_root),
            (&mut self.processes_sliced, unseen.stacks_sliced),
            (&mut self.calls_since_fork, unseen.calls_since_fork),
            (&mut self.contexts_without_arguments, unseen.contexts_without_arguments),
            (&mut self.events_without_space, unseen.events_without_space),
            (&mut self.events_of_ended, unseen.events_of_ended),
            (&mut self.threads_left_out, unseen.threads_left_out),
            (&mut self.forks, unseen.forks),
        ] {
            *sum = sum.saturating_add(count);
        }
        self.add_latest(image);
        self.add_skipped(image);
        self.processes_in_windows += u64::from(image.recording.has_windows());
        self.processes_counted += u64::from(image.only_counts());
        if header.stop_reason != STOP_NONE {
            let start = image.clock.monotonic(image.start());
            let stop = image.clock.monotonic(Ticks(header.stop_ticks));
            self.stopped.push(Stopped {
                process,
                reason: match header.stop_reason {
                    // The file is opened anew to grow.
                    STOP_NO_SPACE if OUT_OF_REACH.contains(&header.stop_errno) => {
                        "its file could not be opened again to grow"
                    }
                    STOP_NO_SPACE => "no more space on the disk",
                    STOP_LIMIT => "size limit of a recording reached (--max-size)",
                    STOP_NO_MEMORY => "no more memory could be mapped",
                    STOP_CONFINED => "system calls were confined (seccomp)",
                    STOP_CUT_OFF => "cut off: the program mapped other memory over the recording",
                    _ => "reason unknown to this version",
                },
                errno: if header.stop_reason == STOP_LIMIT { 0 } else { header.stop_errno },
                after_ns: Ns(stop.0.saturating_sub(start.0)),
            });
        }
        self.syscalls.add_image(process, image);
        self.unreadable.extend(image.syscalls.iter().flat_map(|file| file.problems()).map(
            |problem| Unreadable {
                path: if image.is_recorded { file_of(&image.path) } else { image.path.clone() },
                problem: problem.to_string(),
            },
        ));
        self.unreadable.extend(
            image.recording.problems().iter().map(|problem| Unreadable {
                path: image.path.clone(),
                problem: problem.to_string(),
            }),
        );
    }

    fn add_latest(&mut self, image: &Image) {
        let threads = image.recording.threads();
        let bounds =
            threads.flat_map(|thread| latest::uncredited(image, thread)).map(|it| it.bound);
        self.latest_calls = bounds.fold(self.latest_calls, u64::saturating_add);
    }

    fn add_skipped(&mut self, image: &Image) {
        // An object that was loaded several times has the same imports each time.
        let objects: HashMap<u32, _> =
            image.recording.objects().map(|o| (o.record().id, o.record().skipped)).collect();
        for counts in objects.values() {
            for (reason, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
                let reason = SKIP_REASONS.get(reason).copied().unwrap_or("another reason");
                match self.skipped.iter_mut().find(|skipped| skipped.reason == reason) {
                    Some(skipped) => skipped.imports += u64::from(count),
                    None => self.skipped.push(Skipped { reason, imports: count.into() }),
                }
            }
        }
        self.skipped.sort_by_key(|skipped| (std::cmp::Reverse(skipped.imports), skipped.reason));
    }
}

impl SyscallsNotSeen {
    fn add_image(&mut self, process: usize, image: &Image) {
        let traced = image.syscalls.as_ref().filter(|file| file.header().user_only == 0);
        let Some(file) = traced else {
            self.processes_without.push(process);
            return;
        };
        self.add_silent_threads(image, file);
        let header = file.header();
        // The companion counts over all processes, so its latest count is the largest.
        for (most, count) in [
            (&mut self.lost_calls, header.lost_calls),
            (&mut self.lost_waits, header.lost_waits),
            (&mut self.lost_causes, header.lost_causes),
            (&mut self.lost_processes, header.lost_processes),
            (&mut self.lost_threads, header.lost_threads),
            (&mut self.dropped_images, header.dropped_images),
        ] {
            *most = count.max(*most);
        }
        let of_program = file.syscalls().filter(|row| row.context_ref != OWN_CONTEXT_REF);
        for row in of_program.filter(|row| row.unfinished > 0) {
            let is_exit = syscall(row.number).is_some_and(|call| call.name.starts_with("exit"));
            self.unfinished =
                self.unfinished.saturating_add(if is_exit { 0 } else { row.unfinished });
        }
        let state = image.syscalls_state();
        if state != SyscallsState::Complete {
            let start = image.clock.monotonic(image.start());
            let after_ns = Ns(header.written_ns.saturating_sub(start.0));
            self.stopped.push(SyscallsStopped { process, state, after_ns });
        }
    }

    /// (Where chase came later, or some threads were not wanted, it is known that not all have a record.)
    fn add_silent_threads(&mut self, image: &Image, file: &SyscallsFile<'_>) {
        const WORTH_NS: u64 = 1_000_000;
        let is_chosen = image.recording.header().unseen.threads_left_out > 0;
        if !image.is_recorded || image.began_late() || is_chosen {
            return;
        }
        let recorded: HashSet<u32> =
            image.recording.threads().map(|thread| thread.record().tid).collect();
        let mut silent: HashMap<u32, u64> = HashMap::new();
        for row in file.on_cpu().filter(|row| !recorded.contains(&row.tid)) {
            let ns = silent.entry(row.tid).or_default();
            *ns = ns.saturating_add(row.on_cpu_ns);
        }
        for ns in silent.into_values().filter(|&ns| ns >= WORTH_NS) {
            self.silent_threads += 1;
            self.silent_threads_ns.0 = self.silent_threads_ns.0.saturating_add(ns);
        }
    }

    /// If nothing was observed, nothing is missing.
    pub(crate) fn finish(&mut self, anything: bool) {
        if !anything {
            self.processes_without.clear();
        }
    }
}
