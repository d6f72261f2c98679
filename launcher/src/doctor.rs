//! `chase doctor`: what works on this machine. It tries things, rather than to guess from versions.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use chase_format::session::SAMPLES;
use tempfile::TempDir;

use crate::config_file::ConfigFile;
use crate::{parts, print};

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// What is recorded to see that recording works: it is on every system, and ends at once.
const TRIAL: &str = "/bin/true";

/// Says what works. Exit status 1 if nothing can be recorded.
pub(crate) fn doctor() -> anyhow::Result<i32> {
    let library = library();
    let works = library.is_ok();
    let mut rows = vec![system(), library.map_or_else(|why| ("no", why), |text| ("ok", text))];
    rows.extend(companion());
    rows.extend([report(), clock(), place()]);
    rows.extend(ConfigFile::find().err().map(|error| ("no", format!("settings: {error:#}"))));
    let mut out = String::new();
    for (mark, text) in rows {
        out.push_str(&format!("  {mark:4} {text}\n"));
    }
    out.push_str(match works {
        true => "\nRecord something: chase record ./app\n",
        false => "\nNothing can be recorded here yet.\n",
    });
    print(&out)?;
    Ok(i32::from(!works))
}

fn system() -> (&'static str, String) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // (That of programs; this one may have a C library of its own.)
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let glibc = said.as_deref().map(str::trim).filter(|said| said.starts_with("glibc "));
    ("ok", format!("Linux {}, {}, x86-64", release.trim(), glibc.unwrap_or("glibc")))
}

/// A directory to try things in, in the first place that takes one.
fn scratch() -> anyhow::Result<TempDir> {
    let places = [std::env::temp_dir(), ".".into(), "/tmp".into(), "/dev/shm".into()];
    scratch_in(&places)
}

fn scratch_in(places: &[PathBuf]) -> anyhow::Result<TempDir> {
    let mut whys = Vec::new();
    for place in places {
        let made = std::path::absolute(place)
            .and_then(|place| tempfile::Builder::new().prefix(".chase").tempdir_in(place));
        match made {
            Ok(scratch) => return Ok(scratch),
            // (What tempfile says has the path, too.)
            Err(error) => whys.push(error.to_string()),
        }
    }
    anyhow::bail!("it could not be tried, as no directory takes files: {}", whys.join("; "))
}

/// Records a program that does nothing.
fn library() -> Result<String, String> {
    let library = parts::library().map_err(|error| format!("{error:#}"))?;
    let shown = library.display();
    let tried = || -> anyhow::Result<bool> {
        let scratch = scratch()?;
        let mut command = Command::new(TRIAL);
        command.env("LD_PRELOAD", &library).env("CHASE_OUTPUT", scratch.path());
        command.env("CHASE_SYSCALLS", "off").env("CHASE_VERBOSE", "1").env_remove("CHASE_FOLLOW");
        let output = command.output().context(TRIAL)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let any = fs::read_dir(scratch.path())?.flatten().count() > 0;
        anyhow::ensure!(any || said.is_empty(), "{}", said.trim());
        Ok(any)
    };
    match tried() {
        Ok(true) => Ok(format!("{shown} records")),
        Ok(false) => Err(format!(
            "{shown} was not loaded into {TRIAL}, or wrote nothing: is preloading forbidden here?"
        )),
        Err(error) => Err(format!("{shown}: {error:#}")),
    }
}

const ALL: &str = "system calls, waits and samples of what runs";

/// Whether system calls, waits and samples can be recorded: by starting the companion.
pub(crate) fn companion() -> Vec<(&'static str, String)> {
    let program = match parts::companion() {
        Ok(program) => program,
        Err(error) => return vec![("no", format!("{ALL}: {error:#}"))],
    };
    let tried = || -> anyhow::Result<String> {
        let scratch = scratch()?;
        let mut command = Command::new(&program);
        command.args(["--patience", "0", "--output"]).arg(scratch.path());
        let output = command.env_remove("CHASE_SAMPLE").stdin(Stdio::null()).output()?;
        Ok(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    match tried() {
        Ok(said) => explained(&said, &program),
        Err(error) => vec![("no", format!("{ALL}: {error:#}"))],
    }
}

/// What a companion says at its start, for people.
fn explained(said: &str, program: &Path) -> Vec<(&'static str, String)> {
    const WATCHED: &str = "system calls, waits, and samples of the kernel";
    let by = program.display();
    let no = |why: &str| {
        let advice = match Path::new(BTF).exists() {
            false => format!("the kernel has no {BTF}"),
            true => format!("be root, or: setcap cap_bpf,cap_perfmon+ep {by}"),
        };
        ("no", format!("{WATCHED}: {why}\n       {advice}. Calls are timed all the same."))
    };
    if let Some(also) = said.strip_prefix("ready") {
        let also = also.trim().lines().next().map_or(String::new(), |line| format!(" ({line})"));
        return vec![("ok", format!("{ALL}, by {by}{also}"))];
    }
    if let Some(why) = said.strip_prefix(SAMPLES) {
        let samples = "samples of what programs run, but for the kernel: without privilege";
        return vec![no(why), ("ok", samples.to_owned())];
    }
    let why = said.trim_start_matches("chase: syscalls are not recorded: ");
    match why.split_once("; nor are samples taken: ") {
        Some((why, no_samples)) => {
            vec![no(why), ("no", format!("samples of what runs: {no_samples}"))]
        }
        None => vec![no(why)],
    }
}

fn report() -> (&'static str, String) {
    match parts::report() {
        Ok(path) => ("ok", format!("{} shows recordings", path.display())),
        Err(error) => ("no", format!("{error:#}: recordings can be shown on another machine")),
    }
}

/// The hook reads the processor's time stamp counter where it runs evenly.
fn clock() -> (&'static str, String) {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|found| found == flag);
    match has("constant_tsc") && has("nonstop_tsc") {
        true => ("ok", "the processor's time stamp counter runs evenly".to_owned()),
        false => (
            "note",
            "the processor's time stamp counter may not run evenly: times may be of a slower clock"
                .to_owned(),
        ),
    }
}

/// File systems that write elsewhere each time, by their numbers in `statfs`, and by name.
const WRITE_ELSEWHERE: [(i64, &str); 3] =
    [(0x9123_683e, "btrfs"), (0x2fc1_2fc1, "ZFS"), (0xca45_1a4e, "bcachefs")];

/// The file system of this directory, if it writes elsewhere each time: then there may be no space for what has its place already.
fn writes_elsewhere() -> Option<&'static str> {
    // SAFETY: all-zero is a valid `statfs`, and the path is a C string.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes no more than a `statfs`.
    let is_told = unsafe { libc::statfs(c".".as_ptr(), &raw mut told) } == 0;
    let known = WRITE_ELSEWHERE.iter().find(|(number, _)| *number == told.f_type);
    known.filter(|_| is_told).map(|(_, name)| *name)
}

/// Whether recordings can be written here.
fn place() -> (&'static str, String) {
    // (A recording begins with some hundred kilobytes.)
    let tried = tempfile::Builder::new().prefix(".chase").tempfile_in(".");
    let tried = tried.and_then(|mut file| file.write_all(&[0; 512 << 10]));
    match (tried, writes_elsewhere()) {
        (Ok(_), None) => ("ok", "this directory can take recordings (chase.data)".to_owned()),
        (Ok(_), Some(name)) => (
            "note",
            format!(
                "this directory can take recordings (chase.data), and is on {name}. If no space is left there,\n       \
                 the kernel may end a program that is being recorded; to choose another: chase record -o DIR"
            ),
        ),
        (Err(error), _) => (
            "no",
            format!(
                "no recordings in this directory: {error}\n       choose another: chase record -o DIR"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{explained, scratch_in};

    #[test]
    fn things_are_tried_where_there_is_a_place() {
        let place = tempfile::TempDir::new().expect("a directory");
        let found = scratch_in(&["/proc".into(), "/nonexistent".into(), place.path().to_owned()]);
        assert!(found.expect("a directory").path().starts_with(place.path()));
        let why = scratch_in(&["/proc".into(), "/nonexistent".into()]).expect_err("none");
        let why = why.to_string();
        assert!(why.contains("/proc/") && why.contains("/nonexistent/"), "{why}");
    }

    #[test]
    fn what_works_and_what_does_not_are_rows_of_their_own() {
        let marks = |said: &str| -> Vec<&str> {
            explained(said, Path::new("chase-companion"))
                .into_iter()
                .map(|(mark, _)| mark)
                .collect()
        };
        assert_eq!(marks("ready"), ["ok"]);
        assert_eq!(marks("samples no permission"), ["no", "ok"]);
        let both =
            "chase: syscalls are not recorded: no permission; nor are samples taken: level 3";
        assert_eq!(marks(both), ["no", "no"]);
        assert_eq!(marks("chase: syscalls are not recorded: no BTF"), ["no"]);
    }
}
