//! What is looked at: a process, a recording, or the newest run of a directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chase_analyzer::recorder::layout::EXTENSION;
use chase_analyzer::{Member, Run, scan};

use crate::report::default_path;

/// Where the recordings are, and which run of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A file, or a directory.
    path: PathBuf,
    /// The recording of the process that was asked for, or its number.
    wanted: Option<Wanted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    File(PathBuf),
    Pid(u32),
}

impl Target {
    /// What `what` means: a number that is no file is a process.
    ///
    /// # Errors
    /// If the process is not recorded.
    pub(super) fn find(what: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = what else { return Ok(Self { path: default_path(), wanted: None }) };
        match path.to_str().and_then(|text| text.parse().ok()) {
            Some(pid) if !path.exists() => of_process(pid),
            _ => Ok(Self { path: path.to_owned(), wanted: None }),
        }
    }

    /// The run, as it is now. Of a process that another one of the run has started, only that.
    ///
    /// # Errors
    /// If there is nothing that can be read.
    pub(super) fn run(&self) -> anyhow::Result<(Run, Option<u32>)> {
        let catalog = scan(&self.path)?;
        let is_it = |member: &Member| match &self.wanted {
            Some(Wanted::File(path)) => same_file(path, &member.path),
            Some(Wanted::Pid(pid)) => member.header.pid == *pid,
            None => true,
        };
        let run = catalog.runs.into_iter().find(|run| run.members.iter().any(is_it));
        let run =
            run.with_context(|| format!("the recording is gone from {}", self.path.display()))?;
        let member = run.members.iter().find(|member| is_it(member));
        let pid = member.map(|member| member.header.pid);
        let is_root = self.wanted.is_none() || pid == Some(run.root().header.pid);
        Ok((run, pid.filter(|_| !is_root)))
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    one.file_name() == other.file_name()
}

/// A process tells by its mappings where its recording is.
fn of_process(pid: u32) -> anyhow::Result<Target> {
    let maps = match fs::read_to_string(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps,
        Err(error) if error.kind() == ErrorKind::NotFound => return ended(pid),
        // The directory is a guess then.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return recorded(pid)?.with_context(|| {
                // SAFETY: it only asks for a number.
                match unsafe { libc::geteuid() } {
                    0 => format!(
                        "the kernel lets nobody look at process {pid}: name its recording instead"
                    ),
                    _ => format!(
                        "process {pid} is another user's: name its recording instead, or be root"
                    ),
                }
            });
        }
        Err(error) => return Err(error).with_context(|| format!("can't look at process {pid}")),
    };
    if let Some(path) = recording_in(&maps) {
        // What it is called there may be called otherwise here, from within a container.
        let seen = Path::new("/proc").join(pid.to_string()).join("root");
        let path = match path.exists() {
            true => path,
            false => seen.join(path.strip_prefix("/").unwrap_or(&path)),
        };
        if !path.exists() {
            bail!("the recording of process {pid}, {}, was deleted", path.display());
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        return Ok(Target { path: directory.to_owned(), wanted: Some(Wanted::File(path)) });
    }
    // A zombie has no mappings, and a process that chase has left has a recording all the same.
    recorded(pid)?.with_context(|| {
        format!(
            "process {pid} is not being recorded: `chase attach {pid}` records it, and beside that \
             `chase top {pid}` shows it"
        )
    })
}

/// The latest recording that a process has mapped.
fn recording_in(maps: &str) -> Option<PathBuf> {
    let path = |line: &str| {
        // Five fields are before the path, which may have blanks in it.
        let path = line.splitn(6, ' ').nth(5)?.trim_start();
        let path = PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path));
        path.extension().is_some_and(|found| found == EXTENSION).then_some(path)
    };
    maps.lines()
        .filter_map(path)
        .max_by_key(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

/// A process that is gone.
fn ended(pid: u32) -> anyhow::Result<Target> {
    let directory = default_path();
    recorded(pid)?.with_context(|| {
        format!("there is no process {pid}, and no recording of one in {}", directory.display())
    })
}

/// The recording of a process in the usual directory, if there is one.
fn recorded(pid: u32) -> anyhow::Result<Option<Target>> {
    let path = default_path();
    if !path.exists() {
        return Ok(None);
    }
    let Ok(catalog) = scan(&path) else { return Ok(None) };
    let mut members = catalog.runs.iter().flat_map(|run| &run.members);
    let is_there = members.any(|member| member.header.pid == pid);
    Ok(is_there.then_some(Target { path, wanted: Some(Wanted::Pid(pid)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_name_the_recording() {
        let maps = "\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 12   /bin/app
7f0000000000-7f0000001000 rw-s 00000000 08:01 13   /home/me/my data/app.4711.chase
7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0    [stack]
";
        assert_eq!(recording_in(maps), Some("/home/me/my data/app.4711.chase".into()));
        assert_eq!(recording_in("55d0-55d1 r--p 0 08:01 12   /bin/purchase\n"), None);
    }
}
