//! Programs from source files, compiled on demand and kept until a source changes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::release;

/// What sources include.
const HEADERS: [&str; 12] = [
    "trap.h",
    "contexts.h",
    "spin.h",
    "vectors.h",
    "versions.map",
    "known/known.h",
    "known/known.rs",
    "torture/calls.h",
    "torture/coroutines.h",
    "torture/nested.h",
    "torture/state.h",
    "torture/tasks.h",
];
/// The same of the planted ones.
const PLANTED_HEADERS: [&str; 3] = ["planted.h", "proxy.h", "sockets.h"];

/// A program or a library to be made from one file in `programs/`.
#[derive(Clone)]
pub struct Build {
    source: PathBuf,
    output: String,
    tool: String,
    flags: Vec<String>,
    libraries: Vec<PathBuf>,
    shared: bool,
    plain: bool,
}

impl Build {
    /// A program, by the file name of its source; linked with `libtrap.so`.
    #[must_use]
    pub fn program(source: &str) -> Build {
        let (stem, extension) = source.split_once('.').expect("a source file has an extension");
        let tool = match extension {
            "cpp" => "g++",
            "rs" => "rustc",
            _ => "gcc",
        };
        Build {
            source: programs().join(source),
            output: stem.to_owned(),
            tool: tool.to_owned(),
            flags: Vec::new(),
            libraries: Vec::new(),
            shared: false,
            plain: false,
        }
    }

    /// A program with a planted problem, by the name of its file in `planted/`.
    #[must_use]
    pub fn planted(source: &str) -> Build {
        Build { source: planted().join(source), plain: true, ..Build::program(source) }
    }

    /// A shared library; its name and soname are the source's, with `.so` for an extension.
    #[must_use]
    pub fn library(source: &str) -> Build {
        let mut build = Build::program(source);
        build.output.push_str(".so");
        build.shared = true;
        build.plain = true;
        build
    }

    /// Another file name, and soname, for what is built.
    #[must_use]
    pub fn named(mut self, output: &str) -> Build {
        output.clone_into(&mut self.output);
        self
    }

    /// Another compiler.
    #[must_use]
    pub fn tool(mut self, tool: &str) -> Build {
        tool.clone_into(&mut self.tool);
        self
    }

    /// More flags, separated by blanks.
    #[must_use]
    pub fn flags(mut self, flags: &str) -> Build {
        self.flags.extend(flags.split_whitespace().map(str::to_owned));
        self
    }

    /// Links a library that was built before.
    #[must_use]
    pub fn with(mut self, library: &Path) -> Build {
        self.libraries.push(library.to_owned());
        self
    }

    /// Leaves `libtrap.so` out.
    #[must_use]
    pub fn without_libtrap(mut self) -> Build {
        self.plain = true;
        self
    }

    /// Compiles, if no current result is there, and returns the path of the result. Tests in
    /// other threads and processes may ask for the same.
    ///
    /// # Panics
    ///
    /// If the compiler does not accept the source; the message holds its output.
    #[must_use]
    pub fn build(mut self) -> PathBuf {
        if !self.plain {
            self.libraries.push(libtrap());
        }
        let directory = build_root().join(self.key());
        fs::create_dir_all(&directory).expect("create the directory of built programs");
        let lock = File::create(directory.join(".lock")).expect("create a lock file");
        lock.lock().expect("lock a built program");

        let output = directory.join(&self.output);
        if self.is_stale(&output) {
            // Compiled beside it and renamed: a program that still runs keeps its own file.
            let fresh = directory.join(format!("{}.new", self.output));
            self.compile(&fresh);
            fs::rename(&fresh, &output).expect("put a built program in its place");
        }
        output
    }

    fn compile(&self, output: &Path) {
        // What rustc makes runs where the C library is at least as new as here.
        let mut command = match release::root().filter(|_| self.tool != "rustc") {
            Some(root) => {
                let mut command = Command::new("chroot");
                command.arg(root).arg(&self.tool);
                command
            }
            None => Command::new(&self.tool),
        };
        command.args(self.arguments()).arg("-o").arg(output).env_remove("LD_PRELOAD");
        let result = command
            .output()
            .unwrap_or_else(|error| panic!("can't run the compiler {}: {error}", self.tool));
        assert!(
            result.status.success(),
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&result.stderr)
        );
    }

    fn arguments(&self) -> Vec<OsString> {
        let rust = self.tool == "rustc";
        let mut arguments: Vec<OsString> = Vec::new();
        if rust {
            arguments.extend(["--edition=2024", "-g"].map(Into::into));
        } else {
            // Without -fno-builtin the compiler replaces calls that a test wants to count.
            let always = ["-g", "-O1", "-Wall", "-Wextra", "-pthread", "-fno-builtin"];
            arguments.extend(always.map(Into::into));
            arguments.push(format!("-I{}", programs().display()).into());
        }
        if self.shared {
            arguments.extend(["-shared", "-fPIC"].map(Into::into));
            arguments.push(format!("-Wl,-soname,{}", self.output).into());
        }
        // Libraries named in the flags must come after the source.
        arguments.push(self.source.clone().into());
        arguments.extend(self.flags.iter().map(Into::into));
        for library in &self.libraries {
            let directory = library.parent().expect("a library is in a directory");
            let link_args = [library.clone(), format!("-Wl,-rpath,{}", directory.display()).into()];
            for argument in link_args {
                if rust {
                    arguments.push(format!("-Clink-arg={}", argument.display()).into());
                } else {
                    arguments.push(argument.into());
                }
            }
        }
        if release::root().is_some() && !rust {
            // Apart from the C library until glibc 2.34.
            arguments.extend(["-Wl,--as-needed", "-ldl", "-lrt"].map(Into::into));
        }
        arguments
    }

    /// One directory for each way to build.
    fn key(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.tool, &self.output, self.arguments(), release::root()).hash(&mut hasher);
        format!("{}-{:08x}", self.output, hasher.finish() as u32)
    }

    fn is_stale(&self, output: &Path) -> bool {
        let Some(built) = modified(output) else { return true };
        let headers = HEADERS.map(|name| programs().join(name));
        let headers = headers.into_iter().chain(PLANTED_HEADERS.map(|name| planted().join(name)));
        let headers: Vec<PathBuf> = headers.collect();
        let mut inputs = [&self.source].into_iter().chain(&headers).chain(&self.libraries);
        inputs.any(|input| modified(input).is_none_or(|changed| changed > built))
    }
}

/// The library of known functions that the programs call.
#[must_use]
pub fn libtrap() -> PathBuf {
    Build::library("libtrap.c").flags("-fexceptions").build()
}

/// A library of so many functions, which it calls through entries that are bound at their first
/// calls. From some thousands on, preloading it makes the hook look all names up in an index.
#[must_use]
pub fn libcrowd(functions: u32) -> PathBuf {
    let flags = format!("-DFUNCTIONS={functions} -Wl,-z,lazy");
    Build::library("libcrowd.S").flags(&flags).build()
}

/// Where the sources are.
#[must_use]
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// Where the sources of programs with planted problems are.
#[must_use]
pub fn planted() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("planted")
}

/// The workspace's target directory.
#[must_use]
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target"),
    }
}

fn build_root() -> PathBuf {
    target().join("trap-programs")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
