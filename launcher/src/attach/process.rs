//! The process that is attached to: what keeps it from being recorded, and its threads.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::companion::Owner;
use crate::elf::{self, Kind};

/// A process that runs.
pub(super) struct Process {
    pub(super) pid: i32,
    /// Its name, as the kernel shows it.
    pub(super) name: String,
    /// Whom its files belong to.
    pub(super) owner: Owner,
    /// Its number as it sees it itself, which differs in a container, and is in the names of its recordings.
    pub(super) own_pid: i32,
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("").trim()
}

/// The numbers of a process's threads.
fn threads_of(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl Process {
    /// # Errors
    /// If it can't be recorded, with the reason and what to do.
    pub(super) fn find(pid: i32) -> anyhow::Result<Self> {
        ensure!(pid as u32 != std::process::id(), "that is chase itself");
        let status = fs::read(format!("/proc/{pid}/status"));
        let Ok(status) = status.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()) else {
            bail!("there is no process {pid}");
        };
        let group_leader: i32 = field(&status, "Tgid").parse().unwrap_or(pid);
        ensure!(group_leader == pid, "{pid} is a thread of process {group_leader}: attach to that");
        let name = field(&status, "Name").to_owned();
        let state = field(&status, "State");
        ensure!(
            !state.starts_with('Z') || threads_of(pid).len() < 2,
            "the first thread of process {pid} ({name}) has ended while others run: nothing can be put into such a process; \
             record it from its start, with chase record"
        );
        ensure!(!state.starts_with('Z'), "process {pid} ({name}) has ended");
        ensure!(
            !state.starts_with(['T', 't']),
            "process {pid} ({name}) is stopped: let it go on first (kill -CONT {pid})"
        );
        let tracer: i32 = field(&status, "TracerPid").parse().unwrap_or(0);
        ensure!(
            tracer == 0,
            "process {pid} ({name}) is traced by process {tracer} ({}): only one can",
            name_of(tracer)
        );
        let id =
            |name| field(&status, name).split_whitespace().nth(1).and_then(|id| id.parse().ok());
        let owner = Owner { user: id("Uid").unwrap_or(0), group: id("Gid").unwrap_or(0) };
        let own_pid = field(&status, "NSpid").split_whitespace().last();
        let own_pid = own_pid.and_then(|own| own.parse().ok()).unwrap_or(pid);
        let this = Self { pid, name, owner, own_pid };
        this.check_rights()?;
        this.check_filters()?;
        this.check_executable()?;
        Ok(this)
    }

    fn check_rights(&self) -> anyhow::Result<()> {
        let Self { pid, name, owner: Owner { user, .. }, .. } = self;
        if fs::read_link(format!("/proc/{pid}/exe")).is_ok() {
            return Ok(());
        }
        // SAFETY: it only asks for a number.
        let own = unsafe { libc::geteuid() };
        ensure!(
            own != 0,
            "process {pid} ({name}) is the kernel's, or in a container that is closed to this one"
        );
        ensure!(
            own == *user,
            "process {pid} ({name}) belongs to user {user}: attach as that user, or as root"
        );
        bail!(
            "process {pid} ({name}) may not be looked into (it has more privileges, or has asked for that): attach as root"
        );
    }

    /// Only root may see what filters do. (Those that it may see are looked at once the threads have stopped.)
    fn check_filters(&self) -> anyhow::Result<()> {
        // SAFETY: it only asks for a number.
        let is_root = unsafe { libc::geteuid() } == 0;
        let is_free = is_root || !self.threads().into_iter().any(|tid| self.is_filtered(tid));
        let Self { pid, name, .. } = self;
        ensure!(
            is_free,
            "process {pid} ({name}) can't be recorded: {}, or, if the filter is a container's, attach as root",
            Self::why_filtered("only root may see how")
        );
        Ok(())
    }

    /// Whether a thread, which may have filters of its own, runs under one of system calls.
    pub(super) fn is_filtered(&self, tid: i32) -> bool {
        let status = fs::read(format!("/proc/{}/task/{tid}/status", self.pid)).unwrap_or_default();
        // (It is empty if the thread has ended.)
        !["0", ""].contains(&field(&String::from_utf8_lossy(&status), "Seccomp"))
    }

    pub(super) fn why_filtered(why: &str) -> String {
        format!(
            "it runs under a filter of system calls (seccomp), which might end it ({why}): \
             record it from its start, with chase record"
        )
    }

    fn check_executable(&self) -> anyhow::Result<()> {
        let Self { pid, name, .. } = self;
        let path = PathBuf::from(format!("/proc/{pid}/exe"));
        let program = match elf::read(&path)? {
            Kind::Program(program) => program,
            Kind::Script(_) => bail!("process {pid} ({name}) is not an ELF program"),
            Kind::Other(why) => bail!("nothing of process {pid} ({name}) can be recorded: {why}"),
        };
        let Some(interpreter) = &program.interpreter else {
            bail!("nothing of process {pid} ({name}) can be recorded: it is statically linked");
        };
        ensure!(
            !interpreter.to_string_lossy().contains("ld-musl"),
            "nothing of process {pid} ({name}) can be recorded: it is for musl, not glibc"
        );
        Ok(())
    }

    /// Why the kernel does not let this process trace it.
    pub(super) fn why_not_traced(&self) -> String {
        if !self.is_there() {
            return self.why_ended();
        }
        let Self { pid, name, owner: Owner { user, .. }, .. } = self;
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        // SAFETY: it only asks for a number.
        let own = unsafe { libc::geteuid() };
        match scope.trim() {
            "3" => "this machine forbids attaching altogether (kernel.yama.ptrace_scope is 3 until it is booted again)".to_owned(),
            "1" | "2" if own != 0 => format!(
                "this machine allows attaching only to root (kernel.yama.ptrace_scope is {}): use sudo, or record {name} from its start",
                scope.trim()
            ),
            _ if own != *user && own != 0 => format!("process {pid} ({name}) belongs to user {user}: attach as that user, or as root"),
            _ => format!("the kernel does not allow to trace process {pid} ({name}): it is privileged, or this container may not trace (CAP_SYS_PTRACE)"),
        }
    }

    pub(super) fn why_ended(&self) -> String {
        format!("process {} ({}) has ended", self.pid, self.name)
    }

    /// Its threads now.
    pub(super) fn threads(&self) -> Vec<i32> {
        threads_of(self.pid)
    }

    /// Whether a thread waits for a child that has its memory (`vfork`), where it can't be stopped.
    pub(super) fn waits_for_child(&self, tid: i32) -> bool {
        let doing =
            fs::read_to_string(format!("/proc/{}/task/{tid}/wchan", self.pid)).unwrap_or_default();
        doing.contains("wait_for_vfork_done") || doing.contains("kernel_clone")
    }

    pub(super) fn is_there(&self) -> bool {
        is_there(self.pid)
    }

    /// Makes sure that a directory is the same for it and for us, and that it may write there.
    pub(super) fn give_directory(&self, path: &Path, is_new: bool) -> anyhow::Result<()> {
        let seen = PathBuf::from(format!("/proc/{}/root{}", self.pid, path.display()));
        let (own, its) = (fs::metadata(path), fs::metadata(&seen));
        ensure!(self.is_there(), self.why_ended());
        let is_same = matches!((&own, &its), (Ok(own), Ok(its)) if own.dev() == its.dev() && own.ino() == its.ino());
        ensure!(
            is_same,
            "process {} ({}) sees other files than this shell: it is in a container or a chroot. Attach from inside, or \
             choose a directory that both see (-o)",
            self.pid,
            self.name
        );
        if is_new {
            std::os::unix::fs::chown(path, Some(self.owner.user), Some(self.owner.group))
                .with_context(|| format!("can't give {} to its user", path.display()))
                .or_else(|error| {
                    if own.is_ok_and(|own| own.uid() == self.owner.user) {
                        Ok(())
                    } else {
                        Err(error)
                    }
                })?;
        }
        Ok(())
    }
}

/// Whether a process has not ended, nor is about to.
pub(super) fn is_there(pid: i32) -> bool {
    // (A name may be of any bytes.)
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let is_over = matches!(fields.next(), Some("Z" | "X"));
    // (The state, then the ids of its parent, group and session, its terminal, and the terminal's group.)
    let flags: u32 = fields.nth(5).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    !is_over && flags & EXITING == 0
}

fn name_of(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// `PF_EXITING`: it is about to end, and has perhaps given up its memory.
const EXITING: u32 = 4;

/// Signals that do nothing where nobody handles them.
const SILENT: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// Whether a signal waits for a thread, and is to do something there.
pub(super) fn has_pending_signal(pid: i32, tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let set = |name| u64::from_str_radix(field(&status, name), 16);
    let (Ok(own), Ok(shared), Ok(blocked)) = (set("SigPnd"), set("ShdPnd"), set("SigBlk")) else {
        return true;
    };
    let (ignored, handled) = (set("SigIgn").unwrap_or(0), set("SigCgt").unwrap_or(u64::MAX));
    let silent = SILENT.iter().fold(0, |silent, signal| silent | 1 << (signal - 1));
    (own | shared) & !blocked & !ignored & (handled | !silent) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that ends while it is looked into can't be traced either, for no reason of the kernel's.
    #[test]
    fn what_has_ended_is_not_called_privileged() -> anyhow::Result<()> {
        let mut child = std::process::Command::new("true").spawn()?;
        let pid = child.id() as i32;
        child.wait()?;
        let owner = Owner { user: 0, group: 0 };
        let ended = Process { pid, name: "true".to_owned(), owner, own_pid: pid };
        assert_eq!(ended.why_not_traced(), format!("process {pid} (true) has ended"));
        Ok(())
    }
}
