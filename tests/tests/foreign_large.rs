//! Runtimes of other languages that take more to install than each run of the tests should: `cargo xtask foreign` runs them.

use chase_tests::foreign::{made, same, source};
use chase_tests::need;
use chase_tests::trial::Trial;

#[test]
fn ocaml() {
    need::package("ocaml-nox", "/usr/bin/ocamlopt");
    let libraries = "-I +threads unix.cmxa threads.cmxa";
    let made = made(&format!(
        "cp $from/runtime.ml .; ocamlopt -o native {libraries} runtime.ml; \
         ocamlc -o bytecode {} runtime.ml",
        libraries.replace("cmxa", "cma")
    ));
    for kind in ["native", "bytecode"] {
        let program = made.path().join(kind);
        same(Trial::new(program), &[("libc.so", "pthread_create")]);
    }
}

#[test]
fn octave() {
    let octave = need::package("octave", "/usr/bin/octave-cli");
    let trial = Trial::new(octave).args(["--norc", "--no-history"]).arg(source("runtime.m"));
    same(trial, &[("libc.so", "memcpy")]);
}
