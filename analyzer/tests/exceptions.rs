//! Exceptions: how many are thrown, by which function, and what they take.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{Exceptions, FindingKind, Ns, exceptions};
use pool::{MS, Outcome, outcome};
use process::Process;

const TID: u32 = 1000;

/// A process of two seconds on the processor that throws so many exceptions, and makes so many calls of `other` in the unwinder's library;
/// of 1,000 samples, so many are in that.
fn throws(thrown: u64, other: (&str, u64), samples: u32) -> Outcome {
    let mut process = Process::new();
    let (app, builder) = (process.app, &mut process.builder);
    let cpp = builder.object("/lib/libstdc++.so.6");
    let gcc = builder.object("/lib/libgcc_s.so.1");
    let throw = builder.slot(app, Some(cpp), "__cxa_throw");
    let raise = builder.slot(cpp, Some(gcc), "_Unwind_RaiseException");
    let beside = builder.slot(app, Some(gcc), other.0);
    let work = builder.slot(app, Some(cpp), "work");
    for (slot, calls) in [(throw, thrown), (raise, thrown), (beside, other.1)] {
        if calls > 0 {
            builder.timeline(process.main).calls(slot, 0, calls);
        }
    }
    builder.timeline(process.main).call(work, 2_000 * MS).end();
    builder.end(END_EXIT, 0);
    let root = builder.context_refs()[0][0];
    let mut seen = SyscallsBuilder::new(TID);
    seen.header.sample_hz = 500;
    let (app, gcc) = (builder.code_address(app, 0x40), builder.code_address(gcc, 0x80));
    seen.samples(root, TID, gcc, samples, 0);
    seen.samples(root, TID, app, 1_000 - samples, 0);
    seen.on_cpu(TID, 2_000 * MS);
    let seen = SyscallsFile::parse(seen.build()).expect("a file");
    outcome(vec![process.image().with_syscalls(Some(seen))])
}

const NOTHING_ELSE: (&str, u64) = ("__udivti3", 0);

fn told(outcome: &Outcome) -> Option<(u64, Ns, Ns, Option<&str>)> {
    outcome.findings.iter().find_map(|found| match found.kind {
        FindingKind::Exceptions { thrown, cpu_ns, of_cpu } => {
            assert!((of_cpu - cpu_ns.as_f64() / 2e9).abs() < 1e-6, "{of_cpu}");
            Some((thrown, cpu_ns, found.saves_ns, outcome.api(found.api)))
        }
        _ => None,
    })
}

#[test]
fn what_they_take_is_told_by_samples() {
    let outcome = throws(200_000, NOTHING_ELSE, 400);
    let ns = Ns(800 * MS);
    assert_eq!(told(&outcome), Some((200_000, ns, ns, Some("__cxa_throw"))));
    let Some(Exceptions { thrown, on_cpu_ns, .. }) = exceptions(&outcome.analysis) else {
        panic!("no exceptions")
    };
    assert_eq!((thrown, on_cpu_ns), (200_000, Some(ns)));
}

#[test]
fn few_or_cheap_ones_are_not_told() {
    assert_eq!(told(&throws(200_000, NOTHING_ELSE, 49)), None);
    assert_eq!(told(&throws(900, NOTHING_ELSE, 400)), None);
    assert_eq!(exceptions(&throws(0, NOTHING_ELSE, 400).analysis), None);
}

#[test]
fn the_unwinder_may_do_something_else() {
    for other in ["_Unwind_Backtrace", "__udivti3"] {
        assert!(told(&throws(200_000, (other, 2_000), 400)).is_some(), "{other}");
        let often = throws(200_000, (other, 2_001), 400);
        assert_eq!(told(&often), None, "{other}");
        let found = exceptions(&often.analysis).map(|found| (found.thrown, found.on_cpu_ns));
        assert_eq!(found, Some((200_000, None)), "{other}");
    }
}
