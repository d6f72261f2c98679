//! Runtimes of other languages, each with what is hard in it: collections while C code runs, errors that leave it,
//! callbacks from it, fibers and threads on stacks of their own. Each does bare what it does with every timing.

use std::path::Path;

use chase_tests::compile::Build;
use chase_tests::foreign::{made, same, source};
use chase_tests::need;
use chase_tests::trial::Trial;

const PYTHON: &str = "/usr/bin/python3";

fn interpreted(interpreter: impl AsRef<Path>, name: &str) -> Trial {
    Trial::new(interpreter.as_ref()).arg(source(name))
}

#[test]
fn a_collector_with_eight_threads() {
    need::package("libgc-dev", "/usr/include/gc.h");
    let program = Build::program("foreign/bdwgc.c").named("bdwgc").flags("-O2 -lgc");
    let program = program.without_libtrap().build();
    let apis = [("libgc.so", "GC_malloc"), ("libgc.so", "GC_gcollect"), ("libc.so", "qsort")];
    same(Trial::new(&program), &apis);
    same(Trial::new(&program).arg("incremental"), &apis);
}

#[test]
fn guile() {
    let guile = need::package("guile-3.0", "/usr/bin/guile");
    let trial = Trial::new(guile).arg("--no-auto-compile").arg(source("guile.scm"));
    same(trial, &[("libguile-3.0.so", "scm_boot_guile"), ("libgc.so", "GC_gcollect")]);
}

#[test]
fn mono() {
    need::package("mono-mcs", "/usr/bin/mcs");
    let mono = need::package("mono-runtime", "/usr/bin/mono");
    let made = made("mcs -nowarn:1720 -out:runtime.exe $from/runtime.cs");
    same(Trial::new(mono).arg(made.path().join("runtime.exe")), &[("libc.so", "pthread_create")]);
}

#[test]
fn r() {
    let r = need::package("r-base-core", "/usr/bin/Rscript");
    let trial = Trial::new(r).arg("--vanilla").arg(source("torture.R"));
    same(trial, &[("libpcre2-8.so", "pcre2_compile_8"), ("libblas.so", "dgemm_")]);
}

#[test]
fn emacs() {
    let emacs = need::package("emacs-nox", "/usr/bin/emacs");
    let trial = Trial::new(emacs).args(["-Q", "--batch", "-l"]).arg(source("collect.el"));
    same(trial, &[("libc.so", "pthread_create"), ("libc.so", "_setjmp")]);
}

#[test]
fn erlang() {
    let erlang = need::package("erlang-base", "/usr/bin/erl");
    let made = made("erlc $from/processes.erl");
    let trial = Trial::new(erlang).args(["-noinput", "-pa"]).arg(made.path());
    same(trial.args(["-s", "processes", "main"]), &[("libz.so", "deflateInit2_")]);
}

#[test]
fn luajit() {
    let luajit = need::package("luajit", "/usr/bin/luajit");
    same(interpreted(luajit, "ffi.lua"), &[("libgcc_s.so", "_Unwind_RaiseException")]);
}

#[test]
fn pyqt() {
    need::package("python3-pyqt5", "/usr/lib/python3/dist-packages/PyQt5");
    let trial = interpreted(PYTHON, "widgets.py").env("QT_QPA_PLATFORM", "minimal");
    same(trial, &[("libQt5Core.so", "_ZN7QThread5startENS_8PriorityE"), ("libc.so", "memcpy")]);
}

#[test]
fn gtk() {
    need::package("gir1.2-gtk-3.0", "/usr/lib/x86_64-linux-gnu/girepository-1.0/Gtk-3.0.typelib");
    need::package("python3-gi", "/usr/lib/python3/dist-packages/gi");
    need::package("xauth", "/usr/bin/xauth");
    need::package("xvfb", "/usr/bin/xvfb-run");
    let trial = interpreted(PYTHON, "gtk.py").inside(&["xvfb-run", "-a"]);
    let trial = trial.env("GDK_BACKEND", "x11").env("NO_AT_BRIDGE", "1");
    let trial = trial.env("GSETTINGS_BACKEND", "memory");
    same(trial, &[("libffi.so", "ffi_call"), ("libglib-2.0.so", "g_malloc")]);
}

#[test]
fn gccgo() {
    need::package("gccgo", "/usr/bin/gccgo");
    for split in ["-fsplit-stack", "-fno-split-stack"] {
        let made = made(&format!("gccgo -g -O1 {split} -o stacks $from/stacks.go"));
        let apis = [("libc.so", "strlen"), ("libgo.so", "runtime.GC")];
        same(Trial::new(made.path().join("stacks")), &apis);
    }
}

#[test]
fn ruby_fibers() {
    let ruby = need::package("ruby", "/usr/bin/ruby");
    same(interpreted(ruby, "fibers.rb"), &[("libz.so", "inflateInit_")]);
}

#[test]
fn php_fibers() {
    let php = need::package("php-cli", "/usr/bin/php");
    same(interpreted(php, "fibers.php"), &[("libpcre2-8.so", "pcre2_compile_8")]);
}

#[test]
fn chicken() {
    need::package("chicken-bin", "/usr/bin/csc");
    let made = made("csc -O2 -o chicken $from/chicken.scm");
    let apis =
        [("libchicken.so", "C_save_and_reclaim"), ("libc.so", "qsort"), ("libc.so", "strlen")];
    same(Trial::new(made.path().join("chicken")), &apis);
}

#[test]
fn gnu_pth() {
    need::package("libpth-dev", "/usr/include/pth.h");
    let program = Build::program("foreign/pth.c").named("pth").flags("-lpth");
    let program = program.without_libtrap().build();
    same(Trial::new(program), &[("libpth.so", "pth_yield"), ("libc.so", "qsort")]);
}

#[test]
fn crystal() {
    need::package("crystal", "/usr/bin/crystal");
    let made = made("CRYSTAL_CACHE_DIR=$PWD/cache crystal build -o threads $from/threads.cr");
    let apis = [("libgc.so", "GC_gcollect"), ("libc.so", "qsort")];
    same(Trial::new(made.path().join("threads")), &apis);
}

#[test]
fn sbcl() {
    let sbcl = need::package("sbcl", "/usr/bin/sbcl");
    same(Trial::new(sbcl).arg("--script").arg(source("runtime.lisp")), &[("libc.so", "memcpy")]);
}
