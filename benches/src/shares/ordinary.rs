//! Runs of a user without privilege: samples of user space, by perf and by a companion that may do no more.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Shares, perf, said};
use crate::bench::{Bench, Under, installed};
use crate::companion::Watched;

/// What a user may sample: their own processes' user space up to this value.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const MOST_PARANOID: i32 = 2;
/// A user who has no privilege, and no files.
const NOBODY: &str = "65534";

/// Somebody without privilege.
pub(super) struct Ordinary {
    /// What runs a command as that user; nothing if that is the user of this process.
    prefix: Vec<String>,
    /// A copy of the hook, beside one of the companion, that everybody may read.
    library: PathBuf,
}

impl Ordinary {
    /// # Errors
    /// Why there is no such user here, or samples are forbidden.
    pub(super) fn prepare(bench: &Bench) -> Result<Self> {
        let paranoid = fs::read_to_string(PARANOID).context(PARANOID)?;
        let paranoid: i32 = paranoid.trim().parse().context(PARANOID)?;
        if paranoid > MOST_PARANOID {
            bail!("kernel.perf_event_paranoid is {paranoid}, and must be {MOST_PARANOID} or less");
        }
        let mut prefix = Vec::new();
        // SAFETY: it only asks for a number.
        if unsafe { libc::geteuid() } == 0 {
            ensure!(installed("setpriv").is_some(), "setpriv is not installed");
            let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            prefix.push("setpriv".to_owned());
            prefix.extend(ids);
            prefix.push("--clear-groups".to_owned());
        }
        let directory = bench.open_directory("for-everybody")?;
        for name in ["libchase.so", "chase-companion"] {
            let copy = directory.join(name);
            fs::copy(bench.lib.with_file_name(name), &copy).context(name)?;
            fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        }
        Ok(Self { prefix, library: directory.join("libchase.so") })
    }

    /// As `perf record` has it.
    pub(super) fn perf(
        &self,
        bench: &Bench,
        directory: &Path,
        command: &[String],
    ) -> Result<Shares> {
        let place = self.place(bench, directory)?;
        let output = place.join("perf.data");
        let words = self.words(&place, perf::recorded(&output, perf::Of::UserSpace, command));
        let samples = perf::samples(bench, directory, &words, &output)?;
        Ok(perf::by_object(&samples, ""))
    }

    /// As chase has it.
    pub(super) fn chase(
        &self,
        bench: &Bench,
        directory: &Path,
        command: &[String],
    ) -> Result<Shares> {
        let output = self.place(bench, directory)?;
        let mut words = vec![
            "env".to_owned(),
            format!("LD_PRELOAD={}", self.library.display()),
            format!("CHASE_OUTPUT={}", output.display()),
        ];
        words.extend_from_slice(command);
        bench.run_in(directory, Under::Nothing, &self.words(&output, words))?;
        let watched = Watched::in_directory(&output)?;
        watched.await_rows()?;
        let shares = said::shares(bench, &output);
        watched.end()?;
        let _ = fs::remove_dir_all(&output);
        shares
    }

    /// The command as that user.
    fn words(&self, home: &Path, command: Vec<String>) -> Vec<String> {
        let home = format!("HOME={}", home.display());
        let all = self.prefix.iter().cloned().chain(["env".to_owned(), home]);
        all.chain(command).collect()
    }

    /// A directory of that user, who gets what is in the program's, too: other users' runs left files there.
    fn place(&self, bench: &Bench, directory: &Path) -> Result<PathBuf> {
        let place = bench.fresh();
        fs::create_dir(&place)?;
        if !self.prefix.is_empty() {
            let owner = format!("{NOBODY}:{NOBODY}");
            let mut chown = Command::new("chown");
            chown.args(["-R", &owner]).arg(&place).arg(directory);
            let status = chown.status().context("starting chown")?;
            ensure!(status.success(), "chown {owner} {}", directory.display());
        }
        Ok(place)
    }
}
