//! Findings about system calls on files, pipes and connections, in words.

use chase_analyzer::{FileKind, Finding, FindingKind};

use super::{api, calls_at, group, mostly_at, own_code, take};
use crate::causes;
use crate::report::Report;
use crate::terminal::{count, elapsed, percent, plural};

/// Threads that wait for a processor for more than this part of their lives have another time without that.
const WAITED: f64 = 0.01;
/// Chase's own cost is not worth a word if it is a smaller part than this.
const LITTLE: f64 = 0.01;
/// With less of the waits than this, the named file is not the only one.
const ALL: f64 = 0.9;

/// The claim of a finding about reads or writes of few bytes, and what it rests on.
pub(super) fn small_transfers(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::SmallTransfers {
        syscall,
        calls,
        mean_bytes,
        usual_bytes,
        all_ns,
        of,
        several,
    } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let unnamed = match (of, several) {
        (FileKind::Pipe, false) => "a pipe",
        (FileKind::Pipe, true) => "pipes",
        (FileKind::Socket, false) => "a connection",
        (FileKind::Socket, true) => "connections",
        (FileKind::File | FileKind::Device | FileKind::Other, false) => "a file",
        (FileKind::File | FileKind::Device | FileKind::Other, true) => "files",
    };
    let file = name(report, finding).unwrap_or_else(|| unnamed.to_owned());
    let by = finding.api.map_or_else(
        || own_code(report).to_owned(),
        |number| format!("{}{}", api(report, Some(number)), calls_at(report, finding)),
    );
    (
        format!("{} uses {file} in small pieces", group(report, finding).label),
        format!(
            ": {} of {syscall} of {mean_bytes:.0} {} on average{}, by {by}, {} {}",
            plural(*calls, "call"),
            if format!("{mean_bytes:.0}") == "1" { "byte" } else { "bytes" },
            usual(*usual_bytes, *mean_bytes),
            take(*calls),
            elapsed(all_ns.0),
        ),
    )
}

/// The claim of a finding about files that are written to the disk, and what it rests on.
pub(super) fn syncing(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::Syncing { syscall, calls, all_ns, files, of_file, by_writes } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let file = name(report, finding).unwrap_or_else(|| "a file".to_owned());
    let part = of_file.filter(|&part| *files > 1 && part < ALL);
    let others = match (part, files.saturating_sub(1)) {
        (None, _) => String::new(),
        (Some(_), 1) => " and another one".to_owned(),
        (Some(_), others) => format!(" and {} others", count(others as u64)),
    };
    let what = match finding.api {
        Some(number) => {
            format!(
                "{} of {}{}",
                plural(*calls, "call"),
                api(report, Some(number)),
                calls_at(report, finding)
            )
        }
        None => {
            format!("{} {syscall} in {}", plural(*calls, "system call"), own_code(report))
        }
    };
    let part = part.map_or_else(String::new, |part| {
        let short = file.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&file);
        format!(", {} of the waits for {short}", percent(part))
    });
    (
        format!("{} syncs {file}{others} to the disk", group(report, finding).label),
        if *by_writes {
            let wait = if *calls == 1 { "waits" } else { "wait" };
            format!(": {what} {wait} {} for the disk{part}", elapsed(all_ns.0))
        } else {
            format!(": {what} {} {}{part}", take(*calls), elapsed(all_ns.0))
        },
    )
}

/// The claim of a finding about threads that spin, and what it rests on.
pub(super) fn spinning(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::Spinning { calls, per_second, cpu_ns, of_cpu } = finding.kind else {
        return (String::new(), String::new());
    };
    let by = match finding.api {
        Some(number) => format!("{}{}", api(report, Some(number)), calls_at(report, finding)),
        None => format!("sched_yield in {}", own_code(report)),
    };
    (
        format!("{} spins", group(report, finding).label),
        format!(
            ": {} of {by}, {per_second:.0} a second of each thread, take {} of its time on the processors, {}, and the loops around them come on top. To wait, for a lock or a condition, would cost nothing",
            plural(calls, "call"),
            percent(of_cpu),
            elapsed(cpu_ns.0),
        ),
    )
}

/// The file that a finding is about.
pub(super) fn name(report: &Report, finding: &Finding) -> Option<String> {
    let blame = finding.blame.as_ref()?;
    Some(causes::blamed_object(report, blame)).filter(|name| !name.is_empty())
}

/// What nearly all calls ask for.
fn usual(bytes: Option<u64>, mean: f64) -> String {
    match bytes {
        Some(0) => ", most of none".to_owned(),
        // (It was said.)
        Some(1) if format!("{mean:.0}") == "1" => String::new(),
        Some(1) => ", most of 1".to_owned(),
        Some(bytes) => format!(", most of {bytes} to {}", bytes.saturating_mul(2) - 1),
        None => String::new(),
    }
}

/// The claim of a finding about memory that is given back and asked for again, and what it rests on.
pub(super) fn mapping_churn(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::MappingChurn { by_allocator, calls, all_ns, faults_ns } = &finding.kind else {
        return (String::new(), String::new());
    };
    let faults = match faults_ns.0 {
        0 => String::new(),
        ns => format!(
            ", and that the kernel gives it the pages as they are touched (page faults) takes about {} more",
            elapsed(ns)
        ),
    };
    let does = match by_allocator {
        true => "asks the system for memory and gives it back",
        false => "maps and unmaps memory, or files,",
    };
    (
        format!("{} {does} again and again", group(report, finding).label),
        format!(
            ": {} system calls take {}, longest in {}{}{faults}",
            count(*calls),
            elapsed(all_ns.0),
            api(report, finding.api),
            calls_at(report, finding),
        ),
    )
}

/// The claim of a finding about programs that are started again and again, and what it rests on.
pub(super) fn short_processes(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::ShortProcesses {
        processes,
        program,
        of_program,
        forks,
        median_ns,
        all_ns,
        own,
    } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let of_program = match of_program == processes {
        true => "all".to_owned(),
        false => count(*of_program as u64),
    };
    let forks = match *forks {
        0 => String::new(),
        forks => format!(", and {} without a program (subshells)", plural(forks as u64, "fork")),
    };
    let by = finding.api.map_or_else(String::new, |number| {
        let by = (api(report, Some(number)), calls_at(report, finding));
        format!(", by {} in {}{}", by.0, group(report, finding).label, by.1)
    });
    let own = match *own > LITTLE {
        true => format!(
            ". {} of their time on the processor is chase's own, which is left out",
            percent(*own)
        ),
        false => String::new(),
    };
    (
        format!(
            "{} programs are started that live for {} (median), {of_program} of them {program}{forks}{by}",
            count(*processes as u64),
            elapsed(median_ns.0),
        ),
        // (They are recorded once the hook is loaded; who waits for them also waits for what is before and after that.)
        format!(
            ": one or more of them live during {} of the run, without what it takes to start and to end them{own}",
            elapsed(all_ns.0),
        ),
    )
}

/// The claim of a finding about many short calls, and what it rests on.
pub(super) fn tiny_calls(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::ManyTinyCalls { calls, mean_ns, of_lifetime, runnable_ns, .. } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let group = group(report, finding);
    // Of which time, where it makes a difference.
    let waited = match runnable_ns.as_f64() > WAITED * group.lifetime_ns.as_f64() {
        true => format!(", not counting {} of waiting for a processor", elapsed(runnable_ns.0)),
        false => String::new(),
    };
    (
        format!(
            "{} calls of {} of {} each{}",
            count(*calls),
            api(report, finding.api),
            elapsed(mean_ns.round() as u64),
            mostly_at(report, finding),
        ),
        format!(" are {} of the time of {}{waited}", percent(*of_lifetime), group.label),
    )
}
