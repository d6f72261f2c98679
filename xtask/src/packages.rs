//! What the tests need on the machine, beyond Rust and gcc.

use std::process::{Command, Stdio};

use crate::run::{Outcome, run, say};

/// Debian's packages, each with a file that shows it is there.
const PACKAGES: &[(&str, &str)] = &[
    ("binutils", "/usr/bin/objcopy"),
    ("btrfs-progs", "/usr/sbin/mkfs.btrfs"),
    ("bubblewrap", "/usr/bin/bwrap"),
    ("chicken-bin", "/usr/bin/csc"),
    ("chromium", "/usr/bin/chromium"),
    ("clang", "/usr/bin/clang"),
    ("crystal", "/usr/bin/crystal"),
    ("curl", "/usr/bin/curl"),
    ("default-jdk-headless", "/usr/bin/javac"),
    ("emacs-nox", "/usr/bin/emacs"),
    ("erlang-base", "/usr/bin/erl"),
    ("g++", "/usr/bin/g++"),
    ("gcc", "/usr/bin/gcc"),
    ("gccgo", "/usr/bin/gccgo"),
    ("fakeroot", "/usr/bin/fakeroot"),
    ("gdb", "/usr/bin/gdb"),
    ("gir1.2-gtk-3.0", "/usr/lib/x86_64-linux-gnu/girepository-1.0/Gtk-3.0.typelib"),
    ("git", "/usr/bin/git"),
    ("golang-go", "/usr/bin/go"),
    ("guile-3.0", "/usr/bin/guile"),
    ("imagemagick", "/usr/bin/convert-im6.q16"),
    ("libapr1-dev", "/usr/include/apr-1.0/apr.h"),
    ("libboost-context-dev", "/usr/include/boost/context/fiber.hpp"),
    ("libc++-14-dev", "/usr/lib/llvm-14/lib/libc++.so"),
    ("libc++abi-14-dev", "/usr/lib/llvm-14/lib/libc++abi.so"),
    ("libclang-rt-14-dev", "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux"),
    ("libeatmydata1", "/usr/lib/x86_64-linux-gnu/libeatmydata.so"),
    ("libfaketime", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"),
    ("libgc-dev", "/usr/include/gc.h"),
    ("libglib2.0-dev", "/usr/include/glib-2.0/glib.h"),
    ("libgoogle-perftools4", "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"),
    ("libheaptrack", "/usr/lib/heaptrack/libheaptrack_preload.so"),
    ("libjemalloc2", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"),
    ("libmimalloc2.0", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2"),
    ("libnspr4-dev", "/usr/include/nspr/nspr.h"),
    ("libomp-14-dev", "/usr/lib/llvm-14/lib/libomp.so"),
    ("libopenblas0-pthread", "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3"),
    ("libpth-dev", "/usr/include/pth.h"),
    ("libtcmalloc-minimal4", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"),
    ("libunwind-14-dev", "/usr/lib/llvm-14/lib/libunwind.so"),
    ("linux-perf", "/usr/bin/perf"),
    ("lld", "/usr/bin/ld.lld"),
    ("luajit", "/usr/bin/luajit"),
    ("mold", "/usr/bin/mold"),
    ("mono-mcs", "/usr/bin/mcs"),
    ("mono-runtime", "/usr/bin/mono"),
    ("musl-tools", "/usr/bin/musl-gcc"),
    ("nodejs", "/usr/bin/node"),
    ("npm", "/usr/bin/npm"),
    ("openssl", "/usr/bin/openssl"),
    ("perl", "/usr/bin/perl"),
    ("php-cli", "/usr/bin/php"),
    ("pigz", "/usr/bin/pigz"),
    ("pkg-config", "/usr/bin/pkg-config"),
    ("procps", "/usr/bin/ps"),
    ("python3", "/usr/bin/python3"),
    ("python3-gevent", "/usr/lib/python3/dist-packages/gevent"),
    ("python3-gi", "/usr/lib/python3/dist-packages/gi"),
    ("python3-greenlet", "/usr/lib/python3/dist-packages/greenlet"),
    ("python3-numpy", "/usr/lib/python3/dist-packages/numpy"),
    ("python3-pyqt5", "/usr/lib/python3/dist-packages/PyQt5"),
    ("r-base-core", "/usr/bin/Rscript"),
    ("redis-server", "/usr/bin/redis-server"),
    ("redis-tools", "/usr/bin/redis-benchmark"),
    ("ruby", "/usr/bin/ruby"),
    ("sbcl", "/usr/bin/sbcl"),
    ("sqlite3", "/usr/bin/sqlite3"),
    ("strace", "/usr/bin/strace"),
    ("util-linux", "/usr/bin/unshare"),
    ("valgrind", "/usr/bin/valgrind"),
    ("xauth", "/usr/bin/xauth"),
    ("xvfb", "/usr/bin/xvfb-run"),
    ("xz-utils", "/usr/bin/xz"),
    ("zlib1g-dev", "/usr/include/zlib.h"),
];

/// What only `cargo xtask foreign` installs: too much for each run of the tests.
const FOREIGN: &[(&str, &str)] =
    &[("ocaml-nox", "/usr/bin/ocamlopt"), ("octave", "/usr/bin/octave-cli")];

/// What `cargo xtask suites` needs, by suite.
const SUITES: &[(&str, &[(&str, &str)])] = &[
    ("glib", &[("libglib2.0-tests", "/usr/libexec/installed-tests/glib")]),
    ("python", &[("libpython3.11-testsuite", "/usr/lib/python3.11/test/test_abc.py")]),
    ("gcc", &[("gcc-12-source", "/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz")]),
    ("uftrace", &[("dpkg-dev", "/usr/bin/dpkg-source")]),
    ("git", &[("dpkg-dev", "/usr/bin/dpkg-source"), ("zlib1g-dev", "/usr/include/zlib.h")]),
    ("lua", &[("dpkg-dev", "/usr/bin/dpkg-source"), ("lua5.1", "/usr/bin/lua5.1")]),
    ("redis", &[("dpkg-dev", "/usr/bin/dpkg-source"), ("tcl", "/usr/bin/tclsh")]),
    ("sqlite", &[("dpkg-dev", "/usr/bin/dpkg-source"), ("tcl-dev", "/usr/include/tcl/tcl.h")]),
];

/// Installs what is missing, where that is possible; otherwise says what is missing, and the tests
/// that need it say so too.
pub(crate) fn install() -> Outcome {
    install_all(PACKAGES)
}

/// The same, with what the largest of other languages' runtimes need.
pub(crate) fn install_foreign() -> Outcome {
    install_all(&[PACKAGES, FOREIGN].concat())
}

/// What a suite of another project needs.
pub(crate) fn install_suite(name: &str) -> Outcome {
    let mut suites = SUITES.iter().filter(|(suite, _)| *suite == name);
    suites.try_for_each(|(_, packages)| install_all(packages))
}

fn install_all(packages: &[(&str, &str)]) -> Outcome {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(package, file)| !std::path::Path::new(file).exists() && !is_installed(package))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() || !exists("apt-get") {
        say(&format!("Missing: {}. Tests that need them are skipped, or fail.", missing.join(" ")));
        return Ok(());
    }
    run(apt_get().arg("update").stdout(Stdio::null()))?;
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        missing.into_iter().partition(|package| is_known(package));
    if !unknown.is_empty() {
        say(&format!(
            "Not to be had here: {}. Tests that need them are skipped, or fail.",
            unknown.join(" ")
        ));
    }
    if known.is_empty() {
        return Ok(());
    }
    say(&format!("Installing {}", known.join(" ")));
    let install = ["install", "-y", "--no-install-recommends"];
    let mut command = apt_get();
    run(command
        .args(install)
        .args(&known)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

/// `apt-get` that tries again what a network refuses once, and waits while another one is at work.
fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.args(["-o", "Acquire::Retries=5", "-o", "DPkg::Lock::Timeout=120"]);
    command
}

/// Installs what the tests of the HTML page take from npm, as the lock file says; where that fails,
/// those tests say that they are skipped.
pub(crate) fn install_browser_tests() {
    let directory = crate::run::root().join("cli/tests/browser");
    if directory.join("node_modules").exists() {
        return;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.current_dir(&directory).stdout(Stdio::null());
    if !npm.status().is_ok_and(|status| status.success()) {
        say("No packages from npm: tests of the HTML page in a browser are skipped.");
    }
}

fn is_installed(package: &str) -> bool {
    let query = ["-W", "-f", "${Status}", package];
    Command::new("dpkg-query")
        .args(query)
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"install ok installed")
}

fn is_known(package: &str) -> bool {
    let show = ["show", "--no-all-versions", package];
    let output = Command::new("apt-cache").args(show).stderr(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}
