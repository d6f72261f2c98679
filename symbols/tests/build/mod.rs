//! Small programs, built by the compilers that are there.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use chase_symbols::{CodeLocation, DebugDirs, ObjectKey, SymbolError, Symbolizer};
use object::{Object, ObjectSymbol};
use tempfile::TempDir;

/// An inlined function, a local and an exported one, each on a line that tests know.
pub(crate) const C_SOURCE: &str = "\
volatile int sink;
static inline __attribute__((always_inline)) void inlined(int x) {
    sink = x * 3;
}
static __attribute__((noinline)) void local(int x) { sink = x;
    inlined(x);
}
void exported(int x) { sink = x + 1;
    local(x);
}
int main(void) {
    exported(1);
}
";
pub(crate) const LOCAL_LINE: u32 = 5;
pub(crate) const EXPORTED_LINE: u32 = 8;

/// A directory of its own for each test.
pub(crate) struct Workshop {
    pub(crate) dir: TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().expect("a directory for the test") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a source file.
    pub(crate) fn source(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("source written");
        self.path(name)
    }

    /// Compiles [`C_SOURCE`] with debug information and the given options.
    pub(crate) fn c_program(&self, name: &str, options: &[&str]) -> PathBuf {
        let source = self.source("program.c", C_SOURCE);
        let output = self.path(name);
        let paths: [&OsStr; 3] = [source.as_ref(), "-o".as_ref(), output.as_ref()];
        run(Command::new("gcc").args(["-g", "-O1", "-Wl,--build-id"]).args(options).args(paths));
        output
    }

    /// Moves the debug information of `program` to `debug`, and links the two.
    pub(crate) fn split(&self, program: &Path, debug: &Path) {
        run(Command::new("objcopy").arg("--only-keep-debug").args([program, debug]));
        run(Command::new("strip").arg(program));
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run(Command::new("objcopy").arg(link).arg(program));
    }
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Says why and returns false where `tool` isn't there.
pub(crate) fn there_is(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        // Not by `eprintln`, which is heard only where a test fails.
        let _ = writeln!(std::io::stderr(), "skipped: {tool} is not installed");
    }
    there
}

/// Address of the first function whose symbol contains `part`.
pub(crate) fn svma_of(program: &Path, part: &str) -> u64 {
    let bytes = std::fs::read(program).expect("program read");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    let found = symbols.find(|symbol| {
        symbol.is_definition() && symbol.name().is_ok_and(|name| name.contains(part))
    });
    found.unwrap_or_else(|| panic!("no {part} in {}", program.display())).address()
}

/// What a recording would say of `program`.
pub(crate) fn key_of(program: &Path) -> ObjectKey {
    let bytes = std::fs::read(program).expect("program read");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let build_id = file.build_id().expect("notes").unwrap_or_default().to_vec();
    ObjectKey { path: program.to_owned(), build_id, recorded: None }
}

pub(crate) fn symbolizer(user: &[&Path]) -> Symbolizer {
    let user = user.iter().map(|dir| dir.to_path_buf()).collect();
    Symbolizer::new(DebugDirs { user, system: Vec::new() })
}

/// Function, file name and line of the outermost function at `svma`.
pub(crate) fn place(found: Result<Option<CodeLocation>, SymbolError>) -> (String, String, u32) {
    let found = found.expect("symbols").expect("a function there");
    let frame = found.outermost().expect("a frame").clone();
    let file = frame.file.unwrap_or_default();
    let file = Path::new(&file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    (frame.function.unwrap_or_default(), file, frame.line.unwrap_or(0))
}

pub(crate) fn expected(function: &str, file: &str, line: u32) -> (String, String, u32) {
    (function.to_owned(), file.to_owned(), line)
}
