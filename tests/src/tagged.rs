//! System calls as the companion tagged them, read from the files themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_analyzer::syscall_name;
use chase_recorder::layout::{EXTENSION, OWN_CONTEXT_REF};
use chase_recorder::reader::{Recording as Reader, SyscallsFile};
use chase_recorder::session::{FILE_NAME, idle_since};
use chase_recorder::syscalls::{STATE_COMPLETE, SyscallsHeader, WAIT_VOLUNTARY};

use crate::compile::Build;
use crate::load::hold_together;
use crate::need;
use crate::trial::{Trial, libchase};

/// Lets one test of a program run at a time: what is measured would be disturbed, and the tables of a companion are
/// counted in megabytes.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The companion beside the library under test, if programs can be traced here; otherwise a note
/// that `what` is skipped.
///
/// # Panics
///
/// If the companion was not built.
#[must_use]
pub fn companion(what: &str) -> Option<PathBuf> {
    let path = libchase().with_file_name("chase-companion");
    assert!(path.is_file(), "{} is missing: cargo build --release", path.display());
    if !need::root(what) {
        return None;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        need::skip(what, "the kernel has no BTF");
        return None;
    }
    let scratch = tempfile::TempDir::new().expect("create a scratch directory");
    let mut tried = std::process::Command::new(&path);
    let tried = tried.args(["--patience", "0", "--output"]).arg(scratch.path()).output();
    let tried = tried.expect("start the companion");
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if said.contains("no permission") {
        need::skip(what, "bpf(2) is not permitted");
        return None;
    }
    assert!(said.starts_with("ready"), "{said}");
    Some(path)
}

/// In which context something happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Where {
    /// Before the hello, or on a thread that has no record.
    Before,
    /// Chase's own.
    Own,
    /// In no library call.
    Outside,
    /// In a call of this API.
    Api(String),
}

/// One context's system calls of one name, or its waits (`"wait"`, `"preempted"`).
#[derive(Clone, Debug)]
pub struct Row {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The context.
    pub place: Where,
    /// Name of the system call.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Failed ones.
    pub errors: u64,
    /// Restarted ones.
    pub restarts: u64,
    /// Their time.
    pub total_ns: u64,
    /// The part of it off the CPU.
    pub off_cpu_ns: u64,
}

/// What the companion wrote in one directory.
#[derive(Debug)]
pub struct Tagged {
    /// All rows of all processes.
    pub rows: Vec<Row>,
    /// The header of each file.
    pub headers: Vec<SyscallsHeader>,
}

impl Tagged {
    /// Reads the files as they are.
    ///
    /// # Panics
    ///
    /// If they can't be read.
    #[must_use]
    pub fn read(directory: &Path) -> Self {
        let mut this = Self { rows: Vec::new(), headers: Vec::new() };
        for entry in fs::read_dir(directory).expect("the directory of recordings") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "syscalls") {
                this.add(&path);
            }
        }
        this
    }

    /// The same, when the companion has finished.
    ///
    /// # Panics
    ///
    /// As [`Tagged::read`], when it does not finish, and if figures contradict each other.
    #[must_use]
    pub fn finished(directory: &Path) -> Self {
        let start = Instant::now();
        let (path, mut looks) = (directory.join(FILE_NAME), BTreeSet::new());
        loop {
            // As long as the companion listens it keeps the lock. It stays for a while when it has nothing left to do.
            let session = fs::File::open(&path).expect("a session");
            let is_free = session.try_lock_shared().is_ok();
            drop(session);
            looks.extend(idle_since(&fs::read(&path).expect("readable")));
            // The first may have begun before the last process ended, and the second before this began.
            if is_free || looks.len() > 2 {
                // Its last look.
                sleep(Duration::from_millis(if is_free { 100 } else { 0 }));
                let this = Self::read(directory);
                if this.headers.iter().all(|header| header.state == STATE_COMPLETE) {
                    hold_together(directory);
                    return this;
                }
            }
            assert!(start.elapsed() < Duration::from_secs(20), "the companion does not finish");
            sleep(Duration::from_millis(50));
        }
    }

    fn add(&mut self, path: &Path) {
        let file = SyscallsFile::parse(fs::read(path).expect("readable")).expect("parses");
        let mut places = HashMap::from([(0, Where::Before), (OWN_CONTEXT_REF, Where::Own)]);
        let recording = path.with_extension("");
        if recording.extension().is_some_and(|extension| extension == EXTENSION) {
            let bytes = fs::read(&recording).expect("a recording beside its system calls");
            let reader = Reader::parse(bytes).expect("parses");
            for thread in reader.threads() {
                places.insert(thread.record().root_ref, Where::Outside);
                for context in thread.contexts() {
                    let slot = reader.slot(context.slot()).expect("a slot");
                    places.insert(context.reference, Where::Api(slot.name().into_owned()));
                }
            }
        }
        let place = |reference| {
            places.get(&reference).unwrap_or_else(|| panic!("no context {reference}")).clone()
        };
        let pid = file.header().pid;
        self.headers.push(*file.header());
        self.rows.extend(file.syscalls().map(|row| Row {
            pid,
            tid: row.tid,
            place: place(row.context_ref),
            name: syscall_name(row.number).into_owned(),
            calls: row.calls,
            errors: row.errors,
            restarts: row.restarts,
            total_ns: row.total_ns,
            off_cpu_ns: row.off_cpu_ns,
        }));
        self.rows.extend(file.waits().map(|row| Row {
            pid,
            tid: row.tid,
            place: place(row.context_ref),
            name: if row.kind == WAIT_VOLUNTARY { "wait" } else { "preempted" }.to_owned(),
            calls: row.waits,
            errors: 0,
            restarts: 0,
            total_ns: row.total_ns,
            off_cpu_ns: row.total_ns,
        }));
    }

    /// The rows of one API and one name.
    pub fn of<'t>(&'t self, api: &'t str, name: &'t str) -> impl Iterator<Item = &'t Row> {
        let wanted = move |row: &&Row| {
            row.name == name && matches!(&row.place, Where::Api(found) if found == api)
        };
        self.rows.iter().filter(wanted)
    }

    /// Calls of one name in one API.
    #[must_use]
    pub fn calls(&self, api: &str, name: &str) -> u64 {
        self.of(api, name).map(|row| row.calls).sum()
    }

    /// Calls by name, of rows that `wanted` says so of.
    pub fn by_name(&self, wanted: impl Fn(&Row) -> bool) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.name != "wait" && row.name != "preempted") {
            if wanted(row) && row.calls > 0 {
                *sums.entry(row.name.clone()).or_default() += row.calls;
            }
        }
        sums
    }

    /// Whether nothing was left out.
    ///
    /// # Panics
    ///
    /// If something was.
    pub fn assert_nothing_lost(&self) {
        for header in &self.headers {
            let lost =
                (header.lost_calls, header.lost_waits, header.lost_processes, header.lost_threads);
            assert_eq!(lost, (0, 0, 0, 0));
        }
    }
}

/// Records all calls of a program of 65 threads, whose pairs wait for each other, with their times; and what a companion sees of
/// them. Returns whether there is one. `what` is missing otherwise.
pub fn pairs_with_all_events(what: &str) -> (Trial, bool) {
    let has_companion = companion(what).is_some();
    let program = Build::program("pairs.c").without_libtrap().flags("-pthread").build();
    let mut trial = Trial::new(program)
        .hooked_env("CHASE_EVENTS", "all,64MB")
        .hooked_env("CHASE_TIMING", "all");
    if has_companion {
        trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    }
    assert!(trial.hooked().status.success());
    if has_companion {
        Tagged::finished(&trial.output()).assert_nothing_lost();
    }
    (trial, has_companion)
}
