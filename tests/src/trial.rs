//! One program, run bare and under the hook.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::recorded::Recording;
use crate::release;
use crate::run::{Outcome, run};

type Normalise = Box<dyn Fn(&str) -> String>;
type Setup = Box<dyn Fn(&Path)>;

/// How to run a program. Each run starts in the same, fresh working directory.
pub struct Trial {
    program: PathBuf,
    arguments: Vec<OsString>,
    inside: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    hooked_environment: Vec<(OsString, OsString)>,
    preload_before: Vec<PathBuf>,
    preload_after: Vec<PathBuf>,
    stdin: Option<PathBuf>,
    limit: Duration,
    normalise: Option<Normalise>,
    setup: Option<Setup>,
    scratch: TempDir,
}

impl Trial {
    /// Runs `program` without arguments, with an empty standard input.
    ///
    /// # Panics
    ///
    /// If no scratch directory can be made.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Trial {
        let scratch = tempfile::Builder::new().prefix("chase-test-").tempdir();
        let scratch = scratch.expect("create a scratch directory");
        open_to_all(scratch.path());
        Trial {
            program: program.into(),
            arguments: Vec::new(),
            inside: Vec::new(),
            environment: Vec::new(),
            hooked_environment: Vec::new(),
            preload_before: Vec::new(),
            preload_after: Vec::new(),
            stdin: None,
            limit: Duration::from_secs(60),
            normalise: None,
            setup: None,
            scratch,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Trial {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Trial {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// One more environment variable, in both runs.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Trial {
        self.environment.push((key.into(), value.as_ref().to_owned()));
        self
    }

    /// One more environment variable, under the hook only.
    #[must_use]
    pub fn hooked_env(mut self, key: &str, value: impl AsRef<OsStr>) -> Trial {
        self.hooked_environment.push((key.into(), value.as_ref().to_owned()));
        self
    }

    /// Starts the program by a shell script, which finds it and its arguments in `"$@"`. The
    /// shell itself is not hooked.
    #[must_use]
    pub fn inside_shell(self, script: &str) -> Trial {
        self.inside(&["sh", "-c", script, "sh"])
    }

    /// Starts the program by another command, which is not hooked.
    #[must_use]
    pub fn inside(mut self, command: &[&str]) -> Trial {
        self.inside.extend(command.iter().map(Into::into));
        self
    }

    /// Preloads another library too, before the hook.
    #[must_use]
    pub fn preload_before(mut self, library: &Path) -> Trial {
        self.preload_before.push(library.to_owned());
        self
    }

    /// Preloads another library too, after the hook.
    #[must_use]
    pub fn preload_after(mut self, library: &Path) -> Trial {
        self.preload_after.push(library.to_owned());
        self
    }

    /// Reads standard input from a file.
    #[must_use]
    pub fn stdin(mut self, file: &Path) -> Trial {
        self.stdin = Some(file.to_owned());
        self
    }

    /// A run that takes longer is killed and is a failure; one minute by default.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Trial {
        self.limit = limit;
        self
    }

    /// Applied to both outputs before they are compared, to remove what differs between any two
    /// runs.
    #[must_use]
    pub fn normalise(mut self, with: impl Fn(&str) -> String + 'static) -> Trial {
        self.normalise = Some(Box::new(with));
        self
    }

    /// Called with the working directory before each run.
    #[must_use]
    pub fn setup(mut self, with: impl Fn(&Path) + 'static) -> Trial {
        self.setup = Some(Box::new(with));
        self
    }

    /// The working directory, as the latest run left it.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    /// The directory of the recordings.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.scratch.path().join("recording")
    }

    /// A file that the program of the latest run wrote.
    ///
    /// # Panics
    ///
    /// If it is not there.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name))
            .unwrap_or_else(|error| panic!("the program left no file {name}: {error}"))
    }

    /// The numbers that the program of the latest run told by `trap_tell`; several of one name
    /// are added.
    ///
    /// # Panics
    ///
    /// If it told none.
    #[must_use]
    pub fn told(&self, name: &str) -> HashMap<String, u64> {
        let mut told = HashMap::new();
        for line in self.read(name).lines() {
            let (what, count) = line.split_once(' ').expect("a name and a number");
            let count: u64 = count.parse().expect("a number");
            *told.entry(what.to_owned()).or_default() += count;
        }
        told
    }

    /// The bare run.
    #[must_use]
    pub fn bare(&self) -> Outcome {
        self.run(&[])
    }

    /// The run under the hook, into an empty directory.
    #[must_use]
    pub fn hooked(&self) -> Outcome {
        self.prepare_output();
        self.run(&self.hooked_variables())
    }

    fn prepare_output(&self) {
        let _ = fs::remove_dir_all(self.output());
        fs::create_dir(self.output()).expect("create the directory of recordings");
        open_to_all(&self.output());
    }

    fn hooked_variables(&self) -> Vec<(OsString, OsString)> {
        let hook = libchase();
        let before = self.preload_before.iter().map(|library| library.as_os_str());
        let after = self.preload_after.iter().map(|library| library.as_os_str());
        let preload: Vec<&OsStr> = before.chain([hook.as_os_str()]).chain(after).collect();
        let mut variables = vec![
            (OsString::from("LD_PRELOAD"), preload.join(OsStr::new(":"))),
            (OsString::from("CHASE_OUTPUT"), self.output().into()),
            // A companion that happens to lie beside the library is another test's subject.
            (OsString::from("CHASE_SYSCALLS"), OsString::from("off")),
        ];
        variables.extend(self.hooked_environment.iter().cloned());
        variables
    }

    /// The hooked run as a command, for tests that do not wait for its end. Its process is the program's, where nothing else starts it.
    #[must_use]
    pub fn hooked_command(&self) -> Command {
        self.prepare_output();
        let mut command = self.command(&self.hooked_variables());
        self.prepare_work();
        command.current_dir(self.work());
        command
    }

    /// Both runs. They must agree in standard output, standard error and exit status.
    ///
    /// # Panics
    ///
    /// If they differ, or if a recording can't be read.
    #[must_use]
    pub fn compare(&self) -> Recording {
        self.compare_outcomes();
        Recording::load(&self.output())
    }

    /// As [`Trial::compare`], for recordings in a directory below the working directory.
    ///
    /// # Panics
    ///
    /// If the two runs differ, or if a recording can't be read.
    #[must_use]
    pub fn compare_at(&self, directory: &str) -> Recording {
        self.compare_outcomes();
        Recording::load(&self.work().join(directory))
    }

    /// As [`Trial::compare`], for programs that leave no recording. Returns the hooked outcome.
    ///
    /// # Panics
    ///
    /// If the two runs differ.
    pub fn compare_outcomes(&self) -> Outcome {
        let bare = self.bare();
        let hooked = self.hooked();
        let name = self.program.display();
        let [expected, found] = [&bare, &hooked].map(|outcome| self.described(outcome));
        assert!(
            expected == found,
            "{name} differs under the hook\n--- bare\n{expected}\n--- hooked\n{found}\n---"
        );
        hooked
    }

    fn described(&self, outcome: &Outcome) -> String {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.normalise.as_ref().map_or(text.clone(), |normalise| normalise(&text))
        };
        let (stdout, stderr) = (text(&outcome.stdout), text(&outcome.stderr));
        format!("{}\nstdout:\n{stdout}\nstderr:\n{stderr}", outcome.status)
    }

    fn run(&self, variables: &[(OsString, OsString)]) -> Outcome {
        self.prepare_work();
        let mut command = self.command(variables);
        command.current_dir(self.work()).stdin(match &self.stdin {
            Some(file) => File::open(file).expect("open the input").into(),
            None => Stdio::null(),
        });
        run(command, self.scratch.path(), self.limit)
    }

    fn prepare_work(&self) {
        let work = self.work();
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).expect("create a working directory");
        open_to_all(&work);
        if let Some(setup) = &self.setup {
            setup(&work);
        }
    }

    fn command(&self, variables: &[(OsString, OsString)]) -> Command {
        let mut command;
        let inside = [release::entry(&self.work()), self.inside.clone()].concat();
        if let Some((first, rest)) = inside.split_first() {
            command = Command::new(first);
            command.args(rest).arg("env");
            for (key, value) in self.preloads_when_bare(variables).iter().chain(variables) {
                let mut assignment = key.clone();
                assignment.push("=");
                assignment.push(value);
                command.arg(assignment);
            }
            command.arg(&self.program);
        } else {
            command = Command::new(&self.program);
            command.envs(self.preloads_when_bare(variables));
            command.envs(variables.iter().map(|(key, value)| (key, value)));
        }
        command.args(&self.arguments);
        // What cargo sets for its tests is no part of a program's environment.
        command.env_remove("LD_LIBRARY_PATH").env("LC_ALL", "C.UTF-8");
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Libraries that a bare run preloads as well.
    fn preloads_when_bare(&self, variables: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let preload: Vec<&OsStr> =
            self.preload_before.iter().chain(&self.preload_after).map(|p| p.as_os_str()).collect();
        if !variables.is_empty() || preload.is_empty() {
            return Vec::new();
        }
        vec![("LD_PRELOAD".into(), preload.join(OsStr::new(":")))]
    }
}

/// The hook under test.
///
/// # Panics
///
/// If it was not built.
#[must_use]
pub fn libchase() -> PathBuf {
    let default =
        || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target/release/libchase.so");
    let path = std::env::var_os("CHASE_LIB").map_or_else(default, PathBuf::from);
    assert!(
        path.is_file(),
        "no hook at {}: run `cargo xtask test`, or set CHASE_LIB",
        path.display()
    );
    path
}

/// Programs that give up their privileges go on in these directories.
fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, Permissions::from_mode(0o777)).expect("open a directory to all");
}
