//! A stand-in for a recorded program under the companion, and what was seen of it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use chase_companion::program::{Error, Program};
use chase_format::syscalls::{SyscallRow, SyscallsHeader, WaitRow};
use chase_recorder::reader::SyscallsFile;
use chase_tests::need;
use tempfile::TempDir;

pub(crate) const COMPANION: &str = env!("CARGO_BIN_EXE_chase-companion");

/// One test at a time: what they measure would disturb each other.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Whether the programs can be loaded here; says so if not.
pub(crate) fn possible() -> bool {
    // SAFETY: it only asks for a number.
    match Program::start(0, unsafe { libc::getuid() }) {
        Ok(_) => true,
        Err(error @ (Error::NoBtf | Error::NotPermitted)) => {
            need::skip("a run under the companion", &error.to_string());
            false
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) struct Run {
    pub(crate) directory: TempDir,
    pub(crate) target: PathBuf,
}

impl Run {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let target = directory.path().join("target");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/target.c");
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&target).arg(source);
        assert!(compile.status().expect("cc").success());
        Self { directory, target }
    }

    pub(crate) fn recording(&self) -> PathBuf {
        self.directory.path().join("target.chase")
    }

    pub(crate) fn companion(&self, mode: &[&str]) -> Command {
        let mut command = Command::new(COMPANION);
        command.arg("--output").arg(self.directory.path()).arg("--");
        command.arg(&self.target).arg(self.recording()).args(mode);
        command
    }

    pub(crate) fn run(&self, mode: &[&str]) -> Output {
        let output = self.companion(mode).output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        output
    }

    pub(crate) fn main_file(&self) -> Seen {
        Seen::read(&self.directory.path().join("target.chase.syscalls"))
    }

    pub(crate) fn all_files(&self) -> Vec<Seen> {
        let entries = fs::read_dir(self.directory.path()).expect("readable");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let files =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "syscalls"));
        files.map(|path| Seen::read(&path)).collect()
    }
}

pub(crate) struct Seen {
    pub(crate) header: SyscallsHeader,
    pub(crate) syscalls: Vec<SyscallRow>,
    pub(crate) waits: Vec<WaitRow>,
}

impl Seen {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = SyscallsFile::parse(bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(file.problems(), []);
        let (syscalls, waits) = (file.syscalls().collect(), file.waits().collect());
        Self { header: *file.header(), syscalls, waits }
    }

    pub(crate) fn rows(&self, context: u32, number: i64) -> Vec<&SyscallRow> {
        let fits =
            |row: &&SyscallRow| row.context_ref == context && i64::from(row.number) == number;
        self.syscalls.iter().filter(fits).collect()
    }

    pub(crate) fn row(&self, context: u32, number: i64) -> &SyscallRow {
        let rows = self.rows(context, number);
        assert_eq!(rows.len(), 1, "rows of syscall {number} in context {context}");
        rows[0]
    }

    /// Calls of this number in all contexts.
    pub(crate) fn calls(&self, number: i64) -> u64 {
        let rows = self.syscalls.iter().filter(|row| i64::from(row.number) == number);
        rows.map(|row| row.calls).sum()
    }

    pub(crate) fn waited_ns(&self, context: u32, kind: u32) -> u64 {
        let fits = |row: &&WaitRow| row.context_ref == context && row.kind == kind;
        self.waits.iter().filter(fits).map(|row| row.total_ns).sum()
    }
}
