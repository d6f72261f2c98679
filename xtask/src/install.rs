//! `cargo xtask install` and `cargo xtask package`: chase as files below a prefix, as a tarball that runs from anywhere, and
//! as a Debian package.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Outcome, cargo, root, run, say};

const PROGRAMS: [&str; 3] = ["chase", "chase-report", "chase-companion"];
/// What they are built from.
const PACKAGES: [&str; 3] = ["chase-launcher", "chase-cli", "chase-companion"];
const TARGET: &str = "x86_64-unknown-linux-gnu";
const LIBRARY: &str = "libchase.so";
/// The oldest C library whose programs are tried (`cargo xtask releases`). The programs have one of their own.
const OLDEST_GLIBC: &str = "2.31";
/// For programs that mark moments.
const HEADER: &str = "hook/include/chase.h";
/// What the companion needs, to be used by everybody.
const CAPABILITIES: &str = "cap_bpf,cap_perfmon+ep";
/// Not `chase`: Debian has another program of that name.
pub(crate) const PACKAGE: &str = "chase-profiler";

/// Installs below `prefix`.
pub(crate) fn install(prefix: &Path) -> Outcome {
    let prefix = &std::path::absolute(prefix).map_err(|error| error.to_string())?;
    say("Building chase (release)");
    let all: Vec<&str> = PACKAGES.into_iter().chain(["chase-hook"]).collect();
    let built = compile(&root(), &root().join("target"), &all, &[])?;
    say(&format!("Installing below {}", prefix.display()));
    lay_out(&built, prefix, Path::new("lib"))?;
    let companion = prefix.join("bin/chase-companion");
    let may =
        Command::new("setcap").arg(CAPABILITIES).arg(&companion).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        say(&format!(
            "For system calls, waits and samples without root: setcap {CAPABILITIES} {}",
            companion.display()
        ));
    }
    println!("\n{}/bin/chase doctor says what works here.", prefix.display());
    Ok(())
}

/// Makes the tarball and the Debian package in `target/package`, of the programs in `built`, or of new ones.
pub(crate) fn package(built: Option<&Path>) -> Outcome {
    let place = root().join("target/package");
    let built = match built {
        Some(built) => {
            built.canonicalize().map_err(|error| format!("{}: {error}", built.display()))?
        }
        None => build_anywhere(&root(), &place.join("build"))?,
    };
    pack(&built, &place).map(drop)
}

/// Makes both packages, and then makes them anew of the commit, in other directories: they must be the same bytes.
pub(crate) fn package_twice() -> Outcome {
    if git(&["status", "--porcelain", "--untracked-files=no"])
        .is_none_or(|changed| !changed.is_empty())
    {
        return Err(
            "--twice builds a commit, and files differ from it: commit them first".to_owned()
        );
    }
    let place = root().join("target/package");
    let first = pack(&build_anywhere(&root(), &place.join("build"))?, &place)?;
    let again = place.join("again");
    let source = again.join("source");
    let _ = fs::remove_dir_all(&source);
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    say("Building the same commit elsewhere");
    let archive = again.join("source.tar");
    run(Command::new("git").args(["archive", "-o"]).arg(&archive).arg("HEAD").current_dir(root()))?;
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
    let second = pack(&build_anywhere(&source, &again.join("build"))?, &again)?;
    for (one, other) in first.iter().zip(&second) {
        // It says which byte is the first that differs.
        run(Command::new("cmp").args([one, other]))?;
    }
    println!("Both packages are the same bytes.");
    Ok(())
}

/// Makes the tarball and the Debian package in `place`; gives their paths.
fn pack(built: &Path, place: &Path) -> Result<[PathBuf; 2], String> {
    for program in PROGRAMS.map(|program| built.join(program)) {
        if is_dynamic(&program)? {
            let shown = program.display();
            return Err(format!(
                "{shown} runs with this machine's C library only: without --built, others are made"
            ));
        }
    }
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let name = format!("chase-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    Ok([tarball(built, place, &name)?, debian(built, place)?])
}

/// Builds what is in `source` with no path of this machine in what is built, so that two builds give the same bytes.
fn build_anywhere(source: &Path, target: &Path) -> Result<PathBuf, String> {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
    say("Building chase (release)");
    // (The last that fits counts: `target` is in `source`, mostly. Build scripts leave sources there.)
    let names = [
        (source.display(), "chase"),
        (Path::new(&home).display(), "cargo"),
        (target.display(), "target"),
    ];
    let flags = names.map(|(path, name)| format!("--remap-path-prefix={path}={name}")).join(" ");
    // (Names of some local symbols have differed between two builds whose code and data were the same.)
    let strip = ("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    let library = compile(source, target, &["chase-hook"], &[("RUSTFLAGS", &flags), strip])?;
    // The library asks for no more of the C library than it finds; programs have their own, and run with each release, too.
    let flags = format!("{flags} -C target-feature=+crt-static");
    let variables = [("RUSTFLAGS", &*flags), strip, ("CARGO_BUILD_TARGET", TARGET)];
    let programs = compile(source, target, &PACKAGES, &variables)?;
    let to = programs.join(LIBRARY);
    fs::copy(library.join(LIBRARY), &to).map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(programs)
}

/// Builds these packages; gives the directory that the programs are in.
fn compile(
    source: &Path,
    target: &Path,
    packages: &[&str],
    variables: &[(&str, &str)],
) -> Result<PathBuf, String> {
    let mut command = cargo(["build", "--release", "--locked"]);
    command
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(source)
        .env("CHASE_VERSION", version())
        .env("CARGO_TARGET_DIR", target);
    run(command.envs(variables.iter().copied()))?;
    let is_for = |(name, value): &(&str, &'_ str)| {
        (*name == "CARGO_BUILD_TARGET").then(|| target.join(value))
    };
    let directory = variables.iter().find_map(is_for);
    Ok(directory.unwrap_or_else(|| target.to_owned()).join("release"))
}

/// `0.1.0 (d1f70b7aa3c1)`, with a plus where the tree differs from the commit; the number alone outside of a repository.
fn version() -> String {
    let number = env!("CARGO_PKG_VERSION");
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return number.to_owned() };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|s| !s.is_empty());
    format!("{number} ({commit}{})", if changed { "+" } else { "" })
}

/// When the commit was made: the time of all that is packed.
fn commit_time() -> String {
    git(&["log", "-1", "--format=%ct"]).unwrap_or_else(|| "0".to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Programs, library, header, man pages, completions and documents below `prefix`. `library` is the library's directory there.
fn lay_out(built: &Path, prefix: &Path, library: &Path) -> Outcome {
    let put = |from: &Path, to: PathBuf, mode: u32| -> Outcome {
        let failed = |error: std::io::Error| format!("{}: {error}", to.display());
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        // Under another name first: it may be in use.
        let aside = to.with_extension("new");
        fs::copy(from, &aside).map_err(|error| format!("{}: {error}", from.display()))?;
        fs::set_permissions(&aside, fs::Permissions::from_mode(mode)).map_err(failed)?;
        fs::rename(&aside, &to).map_err(failed)
    };
    for program in PROGRAMS {
        put(&built.join(program), prefix.join("bin").join(program), 0o755)?;
    }
    put(&built.join(LIBRARY), prefix.join(library).join(LIBRARY), 0o755)?;
    put(&root().join(HEADER), prefix.join("include/chase.h"), 0o644)?;
    for document in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        put(&root().join(document), prefix.join("share/doc").join(PACKAGE).join(document), 0o644)?;
    }
    for (program, option) in PROGRAMS.into_iter().zip(["generate", "generate", "--generate"]) {
        run(Command::new(prefix.join("bin").join(program)).arg(option).arg(prefix))?;
    }
    Ok(())
}

/// A directory that runs wherever it is unpacked.
fn tarball(built: &Path, place: &Path, name: &str) -> Result<PathBuf, String> {
    say("Packing a tarball");
    let directory = place.join(name);
    let _ = fs::remove_dir_all(&directory);
    lay_out(built, &directory, Path::new("lib"))?;
    let file = place.join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--use-compress-program=gzip -n",
        ])
        .arg(format!("--mtime=@{}", commit_time()))
        .arg("-cf")
        .arg(&file)
        .arg("-C")
        .arg(place)
        .arg(name))?;
    println!("{}", file.display());
    Ok(file)
}

/// Whether a program needs the C library of the machine that it was built on, or a newer one.
fn is_dynamic(program: &Path) -> Result<bool, String> {
    let output = Command::new("readelf").arg("-lW").arg(program).output();
    let output = output.map_err(|error| format!("readelf (package binutils): {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).contains(" INTERP "))
}

fn debian(built: &Path, place: &Path) -> Result<PathBuf, String> {
    say("Packing a Debian package");
    let number = env!("CARGO_PKG_VERSION");
    let directory = place.join("debian");
    let _ = fs::remove_dir_all(&directory);
    // Where the dynamic linker looks: LD_PRELOAD=libchase.so is enough.
    lay_out(built, &directory.join("usr"), Path::new("lib/x86_64-linux-gnu"))?;
    let pages = directory.join("usr/share/man/man1");
    let all = fs::read_dir(&pages).map_err(|error| error.to_string())?.flatten();
    for page in all {
        run(Command::new("gzip").args(["-9n"]).arg(page.path()))?;
    }
    let write = |name: &str, text: &str, mode: u32| -> Outcome {
        let path = directory.join("DEBIAN").join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(directory.join("DEBIAN")).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)
    };
    write(
        "control",
        &format!(
            "\
Package: {PACKAGE}
Version: {number}
Architecture: amd64
Maintainer: The chase developers <chase@localhost>
Depends: libc6 (>= {OLDEST_GLIBC})
Recommends: libcap2-bin
Conflicts: chase
Section: devel
Priority: optional
Description: shows where a program's time goes among the libraries it uses
 Every call from one shared library to another is counted and timed, per
 thread, without recompiling anything. With an eBPF companion also system
 calls, waits, and samples of what runs.
"
        ),
        0o644,
    )?;
    write("postinst", &format!("\
#!/bin/sh
set -e
# So that users who are not root have system calls, waits and samples too.
if [ \"$1\" = configure ] && command -v setcap >/dev/null; then
	setcap {CAPABILITIES} /usr/bin/chase-companion || echo \"chase: system calls are recorded for root only\"
fi
"), 0o755)?;
    let file = place.join(format!("{PACKAGE}_{number}_amd64.deb"));
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "--build"])
        .arg(&directory)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", commit_time()))?;
    println!("{}", file.display());
    Ok(file)
}
