//! Programs in other languages, started bare and with each timing.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::compile::programs;
use crate::trial::Trial;

/// A file of `programs/foreign`.
#[must_use]
pub fn source(name: &str) -> PathBuf {
    programs().join("foreign").join(name)
}

/// A program started bare and with each timing. Some process of it must have called each of `apis`.
///
/// # Panics
///
/// If it does something else under the hook, or made no such call.
pub fn same(mut trial: Trial, apis: &[(&str, &str)]) {
    for timing in ["adaptive", "all"] {
        trial = trial.hooked_env("CHASE_TIMING", timing);
        let recording = trial.compare();
        for (provider, api) in apis {
            let calls: u64 = recording.processes.iter().map(|p| p.calls(provider, api)).sum();
            let called = recording.processes.iter().flat_map(|p| &p.apis);
            let others: Vec<_> = called
                .filter(|a| a.calls > 0 && a.provider.starts_with(provider))
                .map(|a| &a.name)
                .collect();
            assert!(calls > 0, "{timing}: no call to {api} of {provider}, but to {others:?}");
        }
    }
}

/// What a shell script makes in a directory of its own from the files in `$from`.
///
/// # Panics
///
/// If it fails.
#[must_use]
pub fn made(script: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("make a directory");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", script]).env("from", source("")).env_remove("LD_LIBRARY_PATH");
    let output = shell.current_dir(directory.path()).output().expect("start a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    directory
}
