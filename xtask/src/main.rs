//! The tasks of this repository, for people and CI alike: `cargo xtask`.
#![allow(clippy::print_stdout, reason = "a task says what it does while it does it")]

mod demo;
mod fuzz;
mod install;
mod layers;
mod many;
mod packages;
mod picture;
#[cfg(test)]
mod promises;
mod releases;
mod run;
mod suites;
mod syscalls;
mod test;
mod torture;
mod try_package;

use std::process::ExitCode;

use fuzz::Fuzzing;

const USAGE: &str = "\
cargo xtask demo             build all, record rustc compiling a program, show where its time went
cargo xtask test [FILTER]    install what the tests need, check the code, run all tests
cargo xtask foreign          test runtimes of other languages, also those that take most to install
cargo xtask layers            see that no modules of a crate import each other in a circle
cargo xtask install [--prefix DIR]
                             build all and install it below DIR, by default /usr/local
cargo xtask package [--built DIR]
                             a Debian package, and a tarball that runs from anywhere, in target/package; of
                             what is in DIR, else built anew, the same bytes wherever that is
cargo xtask package --twice  the same, and again from a copy of the commit elsewhere: the bytes must be the same
cargo xtask package --try [--built DIR]
                             install, use and remove that package in Debian 11's and 12's smallest system (root, debootstrap)
cargo xtask bench [--peers]  what chase costs, and with --peers what other tools do (--help for more)
cargo xtask torture [--minutes N] [--seed N] [--mode MODE]
                             random programs under the hook, a minute by default; a seed alone runs its program again;
                             modes are adaptive, all, count, events, and attach
cargo xtask faults           each system call of the hook fails in each way, and is the last one before a kill
cargo xtask kills [N]        a program is killed N times, 200 by default: its events are there up to the last
cargo xtask limits           100,000 threads, 10,000 forks, 1,000 libraries, 1,000 kills: minutes
cargo xtask releases [NAME]  the programs of the tests with other releases' compilers and C libraries (root, debootstrap)
cargo xtask suites [NAME]    tests of CPython (a third), GLib, GCC (exceptions), uftrace, Lua, Redis and SQLite (a tenth), without and with chase: hours
cargo xtask servers [N [NAME]]
                             attach to servers under load and leave them, N times each, 20 by default
cargo xtask sums [NAME]      13 programs, recorded in each way: all tables of their reports must agree; minutes
cargo xtask many [N]         git's tests t0* and t1*, or every Nth script of them, and a package's ./configure && make, bare and
                             recorded: time, space, and reports of all; an hour, or an Nth
cargo xtask load             100,000 recordings, read and folded: time, memory, space
cargo xtask fuzz [SECONDS [TARGET]]
                             fuzz the readers and the analyzer, a minute each by default
cargo xtask fuzz --tested    as in the tests: some of them, shortly, with the same inputs each time
cargo xtask bpf              build the eBPF programs anew (clang 14)
cargo xtask perfetto         a trace of 64 threads is read by Perfetto's own definitions (pip)
cargo xtask picture          take the picture of the page in the README anew (node, Chromium)
cargo xtask syscall-table    write the table of system calls anew, from this machine's kernel (root)

With CHASE_LIB=FILE, a task uses that library, and the commands beside it, instead of what it would build.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // (`bench` has options of its own.)
    if arguments.first() != Some(&"bench")
        && arguments.iter().any(|at| ["-h", "--help"].contains(at))
    {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let is_name = |name: &str| !name.starts_with('-');
    let result = match arguments.as_slice() {
        ["demo"] => demo::demo(),
        ["layers"] => layers::check(),
        ["test"] => test::test(None),
        ["test", filter] if is_name(filter) => test::test(Some(filter)),
        ["install"] => install::install("/usr/local".as_ref()),
        ["install", "--prefix", prefix] => install::install(prefix.as_ref()),
        ["package"] => install::package(None),
        ["package", "--twice"] => install::package_twice(),
        ["package", "--built", built] => install::package(Some(built.as_ref())),
        ["package", "--try"] => try_package::try_package(None),
        ["package", "--try", "--built", built] => try_package::try_package(Some(built.as_ref())),
        ["foreign"] => test::foreign(),
        ["bench", options @ ..] => test::bench(options),
        ["servers", options @ ..] if options.len() <= 2 => test::servers(options),
        ["sums", options @ ..] if options.len() <= 1 => test::sums(options),
        ["many"] => many::many("1"),
        ["many", every] if every.parse::<u32>().is_ok_and(|every| every > 0) => many::many(every),
        ["load"] => test::bench(&["--only", "load"]),
        ["fuzz"] => fuzz::fuzz(Fuzzing::New(60), None),
        ["fuzz", "--tested"] => fuzz::fuzz(Fuzzing::Same, None),
        ["fuzz", seconds, only @ ..] if only.len() < 2 => match seconds.parse() {
            Ok(seconds) => fuzz::fuzz(Fuzzing::New(seconds), only.first().copied()),
            Err(_) => return usage(),
        },
        ["torture", options @ ..] => match torture::Options::parse(options) {
            Some(options) => torture::torture(&options),
            None => return usage(),
        },
        ["limits"] => torture::limits(),
        ["suites"] => suites::suites(None),
        ["suites", only] if is_name(only) => suites::suites(Some(only)),
        ["releases"] => releases::releases(None),
        ["releases", only] if is_name(only) => releases::releases(Some(only)),
        ["faults"] => torture::faults(),
        ["kills"] => torture::kills("200"),
        ["kills", number] if number.parse::<u32>().is_ok() => torture::kills(number),
        ["perfetto"] => torture::perfetto(),
        ["picture"] => picture::picture(),
        ["bpf"] => syscalls::bpf(),
        ["syscall-table"] => syscalls::table(),
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
