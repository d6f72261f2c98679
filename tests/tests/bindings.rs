//! Each hooked import must be bound to what the dynamic linker binds it to, by its own account:
//! `LD_DEBUG=bindings`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use chase_tests::compile::{libcrowd, programs};
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::release;
use chase_tests::trial::Trial;

/// Importer, symbol, version.
type Import = (String, String, String);

/// What ld.so printed in a bare run: an import may be bound more than once, if its object is
/// loaded more than once.
fn printed_bindings(work: &Path) -> BTreeMap<Import, BTreeSet<String>> {
    let mut bindings: BTreeMap<Import, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(work).expect("read the working directory") {
        let path = entry.expect("read the working directory").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("bound.") {
            let text = fs::read(&path).expect("read what ld.so printed");
            let text = String::from_utf8_lossy(&text).into_owned();
            for (import, provider) in text.lines().filter_map(binding) {
                bindings.entry(import).or_default().insert(provider);
            }
        }
    }
    bindings
}

/// `  123: binding file A [0] to B [0]: normal symbol `name' [VERSION]`
fn binding(line: &str) -> Option<(Import, String)> {
    let rest = line.split_once("binding file ")?.1;
    let (importer, rest) = rest.split_once(" [")?;
    let (provider, rest) = rest.split_once("] to ")?.1.split_once(" [")?;
    let (symbol, rest) = rest.split_once("symbol `")?.1.split_once('\'')?;
    let version = rest.split_once('[').map_or("", |(_, version)| version.trim_end_matches(']'));
    let import = (file(importer), symbol.to_owned(), version.to_owned());
    Some((import, file(provider)))
}

/// One name for each file, whatever links lead to it. A program that was started by its mere name
/// is called so by ld.so.
fn file(name: &str) -> String {
    let path = if name.contains('/') { None } else { need::find(name) };
    let path = path.unwrap_or_else(|| name.into());
    let there = fs::canonicalize(release::inside(path.clone()));
    let root = release::root().unwrap_or_default();
    let its = |there: &PathBuf| Some(Path::new("/").join(there.strip_prefix(&root).ok()?));
    there.ok().as_ref().and_then(its).unwrap_or(path).display().to_string()
}

fn check(name: &str, trial: impl Fn(PathBuf) -> Trial) {
    let Some(program) = need::tool(&format!("bindings of {name}"), name) else { return };
    let bare = trial(program.clone())
        .env("LD_BIND_NOW", "1")
        .env("LD_DEBUG", "bindings")
        .env("LD_DEBUG_OUTPUT", "bound");
    let _ = bare.bare();
    let printed = printed_bindings(&bare.work());
    assert!(printed.len() > 20, "ld.so printed next to nothing for {name}");

    let hooked = trial(program);
    let _ = hooked.hooked();
    let recording = Recording::load(&hooked.output());
    let mut held = 0;
    let mut wrong = Vec::new();
    for binding in recording.processes.iter().flat_map(|process| &process.bindings) {
        let import = (file(&binding.importer), binding.symbol.clone(), binding.version.clone());
        match printed.get(&import) {
            Some(providers) if providers.contains(&file(&binding.provider)) => held += 1,
            found => wrong.push(format!("{binding:?}, but ld.so: {found:?}")),
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of {held}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(held > 20, "{name}: only {held} imports are hooked");
}

fn real(file: &str) -> PathBuf {
    programs().join("real").join(file)
}

#[test]
fn of_interpreters() {
    check("python3", |p| Trial::new(p).arg(real("all.py")));
    check("perl", |p| Trial::new(p).arg(real("all.pl")));
    check("bash", |p| Trial::new(p).arg("-c").arg("echo $(seq 10 | sort -r)"));
    check("node", |p| Trial::new(p).args(["-e", "console.log(1)"]));
}

#[test]
fn of_tools() {
    check("sort", |p| Trial::new(p).arg(real("all.pl")));
    check("sqlite3", |p| Trial::new(p).args([":memory:", "select sqlite_version(), abs(-1)"]));
    check("git", |p| Trial::new(p).args(["init", "-q", "."]).env("HOME", "/nowhere"));
    check("xz", |p| Trial::new(p).arg("-kc").arg(real("all.js")));
    check("openssl", |p| Trial::new(p).args(["dgst", "-sha256"]).arg(real("all.js")));
    check("redis-server", |p| Trial::new(p).arg("--version"));
    check("gdb", |p| Trial::new(p).args(["-nx", "-batch", "-ex", "print 1"]));
}

#[test]
fn of_compilers() {
    let source = programs().join("plain.c");
    check("gcc", |p| Trial::new(p).args(["-O1", "-o", "plain"]).arg(&source));
    check("clang", |p| Trial::new(p).args(["-O1", "-o", "plain"]).arg(&source));
}

#[test]
fn among_very_many_imports() {
    let crowd = libcrowd(10_000);
    let crowded = |program: PathBuf| Trial::new(program).preload_after(&crowd);
    check("python3", |p| crowded(p).arg(real("all.py")));
    check("perl", |p| crowded(p).arg(real("all.pl")));
    check("sqlite3", |p| crowded(p).args([":memory:", "select sqlite_version(), abs(-1)"]));
    check("gdb", |p| crowded(p).args(["-nx", "-batch", "-ex", "print 1"]));
    let source = programs().join("plain.c");
    check("clang", |p| crowded(p).args(["-O1", "-o", "plain"]).arg(&source));
}
