//! From an analysis to a report.

use std::collections::HashMap;
use std::mem::take;

use chase_analyzer::{
    Analysis, BlockedRow, Finding, FindingKind, LibraryKind, LibraryRow, WaitCause,
};

use super::figures::{Facts, Figures, Names, Sentence, calls_error, self_error};
use super::{
    Blocked, BlockedIn, Edge, Estimates, Function, Header, Library, Report, Waiting, groups, lanes,
    syscalls, tables, tails,
};
use crate::Label;
use crate::section_id::SectionId;

impl Report {
    /// Whether the scheduler has measured all of what threads did. Otherwise its sums are of some of them only.
    pub(crate) fn is_measured(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.members).all(|member| member.life.is_measured)
    }

    /// What there is to be shown of `figures`. [`flames`](Self::flames) and
    /// [`comparison`](Self::comparison) are left empty.
    #[must_use]
    pub fn new(figures: Figures<'_>, names: &dyn Names, mut facts: Facts) -> Self {
        let processor = facts.processor.take();
        let causes = std::mem::take(&mut facts.causes);
        let (waits_for_whom, parts) = (facts.waits_for_whom.take(), facts.parts.take());
        let (idle, runnable) = (take(&mut facts.idle), facts.runnable.take());
        let analysis = figures.analysis;
        let (syscalls, more_syscalls) = syscalls::slowest(analysis, names);
        let blocked = chase_analyzer::blocked(analysis);
        let mut report = Self {
            header: header(analysis, facts),
            findings: figures.findings.iter().map(|finding| sentence(names, finding)).collect(),
            processor,
            causes,
            waits_for_whom,
            parts,
            blocked: Blocked {
                rows: blocked_in(analysis, &blocked.rows, names),
                idle: idle.into(),
                idle_ns: blocked.idle.iter().map(|row| row.wait_ns.as_f64()).sum(),
                runnable: runnable.map(Label::from),
            },
            libraries: libraries(analysis, names),
            waits: analysis.wait_source(),
            groups: groups::thread_groups(figures, names),
            tails: tails::longest(figures, names),
            syscalls,
            more_syscalls,
            edges: edges(analysis, names),
            timeline: lanes::timeline(figures, names),
            tables: tables::raw_tables(figures, names),
            ..Self::default()
        };
        if !report.is_measured() {
            report.blocked.runnable = None;
        }
        report
    }
}

fn sentence(names: &dyn Names, finding: &Finding) -> super::Finding {
    let shown_in = match finding.kind {
        FindingKind::SlowThreads { .. }
        | FindingKind::BarrierStraggler { .. }
        | FindingKind::LastToEnd { .. }
        | FindingKind::UnevenWork { .. }
        | FindingKind::TooManyThreads { .. }
        | FindingKind::UsedUpQuota { .. }
        | FindingKind::ShortProcesses { .. }
        | FindingKind::ShortThreads { .. }
        | FindingKind::SubGroups { .. } => SectionId::Threads,
        FindingKind::SlowFirstCall { .. } | FindingKind::RareSlowCalls { .. } => SectionId::Tail,
        FindingKind::SerialisingLock { .. }
        | FindingKind::StarvedWriter { .. }
        | FindingKind::AllocatorContention { .. }
        | FindingKind::InterpreterLock { .. }
        | FindingKind::MemoryMapLock { .. }
        | FindingKind::LimitingStage { .. }
        | FindingKind::SleepingStage { .. }
        | FindingKind::MutualWaits { .. }
        | FindingKind::LateAtBarrier { .. }
        | FindingKind::SlowPeer { .. }
        | FindingKind::DelayedAcknowledgements { .. }
        | FindingKind::Polling { .. }
        | FindingKind::IdleTimer { .. }
        | FindingKind::EventLoopHeldUp { .. } => SectionId::Blocked,
        FindingKind::SmallTransfers { .. }
        | FindingKind::Syncing { .. }
        | FindingKind::LookedUpAgain { .. }
        | FindingKind::MappingChurn { .. } => SectionId::Syscalls,
        FindingKind::NameResolution { .. }
        | FindingKind::MadeAgain { .. }
        | FindingKind::SlowLoading { .. } => SectionId::Flame,
        FindingKind::StarvedConsumers { .. } | FindingKind::SlowStart { .. } => {
            SectionId::Libraries
        }
        FindingKind::ManyTinyCalls { .. }
        | FindingKind::Spinning { .. }
        | FindingKind::Exceptions { .. } => SectionId::Flame,
    };
    let Sentence { claim, evidence, gain } = names.sentence(finding);
    super::Finding {
        claim: claim.into(),
        evidence: evidence.into(),
        gain: gain.into(),
        shown_in: Some(shown_in),
    }
}

fn header(analysis: &Analysis, facts: Facts) -> Header {
    let totals = &analysis.totals;
    Header {
        program: facts.program.into(),
        command: facts.command.into(),
        lead: facts.lead.into_iter().map(|(value, of)| (value.into(), of)).collect(),
        incomplete: facts.incomplete.into_iter().map(Label::from).collect(),
        facts: facts.facts.into_iter().map(|(term, text)| (term, text.into())).collect(),
        gaps: facts.gaps,
        not_seen: facts.not_seen.into_iter().map(Label::from).collect(),
        processes: facts.processes,
        more_processes: facts.more_processes,
        processors: facts.processors,
        threads: analysis.number_of_threads(),
        whole_ns: totals.whole_ns().as_f64(),
        estimates: match analysis.libraries.iter().any(|row| row.measures.estimated) {
            _ if totals.calls_estimated => Estimates::Calls,
            true => Estimates::Times,
            false => Estimates::None,
        },
    }
}

/// The error of a sum of figures whose errors have nothing to do with each other.
fn error_of_sum(sum: Option<f64>, error: Option<f64>) -> Option<f64> {
    match (sum, error) {
        (Some(sum), Some(error)) => Some(sum.hypot(error)),
        (known, None) | (None, known) => known,
    }
}

fn libraries(analysis: &Analysis, names: &dyn Names) -> Vec<Library> {
    let mut by_object: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, api) in analysis.apis.iter().enumerate() {
        by_object.entry(api.object).or_default().push(number);
    }
    let library = |row: &LibraryRow| {
        let is_application = row.kind == LibraryKind::Application;
        let apis = by_object.get(&row.object).filter(|_| !is_application);
        let apis = apis.map_or(&[][..], |apis| apis);
        let (own, total) = (row.measures.self_ns.as_f64(), row.measures.total_ns.as_f64());
        Library {
            name: names.object(row.object).into(),
            path: Label::from(&row.path),
            is_application,
            self_ns: own,
            self_error_ns: self_error(&row.measures),
            waiting: waiting(analysis, row, apis),
            // What belongs to no library is time in which others had the processor.
            preempted_ns: match row.kind {
                LibraryKind::Unattributed => Some(own),
                _ => row.measures.preempted_ns.map(|ns| ns.as_f64()),
            },
            on_cpu_ns: on_cpu(analysis, row, apis),
            // Of an application it is what the other rows show.
            callees_ns: if is_application { 0.0 } else { (total - own).max(0.0) },
            calls: row.measures.calls,
            calls_error: calls_error(&row.measures),
            functions: apis.iter().map(|&api| function(analysis, names, api)).collect(),
        }
    };
    analysis.libraries.iter().map(library).collect()
}

/// Time on the processor during the calls of a library, or in no call where an object runs code of its own.
fn on_cpu(analysis: &Analysis, row: &LibraryRow, apis: &[usize]) -> f64 {
    let is_application = row.kind == LibraryKind::Application;
    let has_own = is_application || !analysis.objects[row.object as usize].executable;
    let outside =
        analysis.on_cpu.outside.iter().filter(|(object, _)| has_own && *object == row.object);
    let of_calls = apis.iter().filter_map(|&api| analysis.apis[api].on_cpu);
    outside.map(|(_, ns)| ns.as_f64()).sum::<f64>()
        + of_calls.map(|on_cpu| on_cpu.time.on_cpu_ns.as_f64()).sum::<f64>()
}

fn waiting(analysis: &Analysis, row: &LibraryRow, apis: &[usize]) -> Vec<Waiting> {
    let of_api = |&api: &usize| (api as u32, analysis.apis[api].measures.wait_ns.as_f64());
    let of_calls: f64 = apis.iter().map(|api| of_api(api).1).sum();
    let own_ns = (row.measures.wait_ns.as_f64() - of_calls).max(0.0);
    let mut by_cause: Vec<(WaitCause, f64)> = Vec::new();
    let of_calls = apis.iter().map(of_api).flat_map(|(api, ns)| {
        let parts = analysis.parts_of_all_waits(api).into_iter();
        parts.map(move |(cause, part)| (cause, ns * part))
    });
    for (cause, ns) in of_calls.chain(waiting_in_own_code(analysis, row, own_ns)) {
        match by_cause.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += ns,
            None => by_cause.push((cause, ns)),
        }
    }
    let waiting = |(cause, ns)| Waiting { cause, ns };
    by_cause.into_iter().filter(|(_, ns)| *ns > 0.0).map(waiting).collect()
}

/// What the threads that are at home in a library wait for in their own code, in all `own_ns`.
fn waiting_in_own_code(
    analysis: &Analysis,
    row: &LibraryRow,
    own_ns: f64,
) -> impl Iterator<Item = (WaitCause, f64)> {
    let threads = (0..).zip(&analysis.threads).filter(|(_, thread)| {
        row.own_code_ns.0 > 0 && thread.own_object == row.object && own_ns > 0.0
    });
    let waits: Vec<(WaitCause, f64)> = threads
        .filter_map(|(number, thread)| Some((number, thread.application_wait_ns?.as_f64())))
        .flat_map(|(number, ns)| {
            let parts = analysis.parts_of_waits(None, number).into_iter();
            parts.map(move |(cause, part)| (cause, ns * part))
        })
        .collect();
    let all: f64 = waits.iter().map(|wait| wait.1).sum();
    let scale = if all > 0.0 { own_ns / all } else { 0.0 };
    waits.into_iter().map(move |(cause, ns)| (cause, ns * scale))
}

fn blocked_in(analysis: &Analysis, rows: &[BlockedRow], names: &dyn Names) -> Vec<BlockedIn> {
    let outside = if analysis.only_counts() { "outside timed calls" } else { "own code" };
    let row = |row: &BlockedRow| BlockedIn {
        cause: row.cause,
        function: row.api.map_or(outside, |api| names.function(api as usize)).into(),
        library: row.api.map_or("", |api| names.object(analysis.apis[api as usize].object)).into(),
        ns: row.wait_ns.as_f64(),
        threads: row.threads,
    };
    rows.iter().map(row).collect()
}

fn function(analysis: &Analysis, names: &dyn Names, api: usize) -> Function {
    let measures = &analysis.apis[api].measures;
    Function {
        name: names.function(api).into(),
        calls: measures.calls,
        calls_error: calls_error(measures),
        self_ns: measures.self_ns.as_f64(),
        self_error_ns: self_error(measures),
        total_ns: measures.total_ns.as_f64(),
        on_cpu_ns: analysis.apis[api].on_cpu.map_or(0.0, |on_cpu| on_cpu.time.on_cpu_ns.as_f64()),
        p50_ns: measures.p50_ns.map(|ns| ns.as_f64()),
        p999_ns: measures.p999_ns.map(|ns| ns.as_f64()),
    }
}

fn edges(analysis: &Analysis, names: &dyn Names) -> Vec<Edge> {
    let mut edges: HashMap<(u32, u32), Edge> = HashMap::new();
    for row in &analysis.callers {
        let Some(api) = analysis.apis.get(row.api as usize) else { continue };
        let edge = edges.entry((row.caller, api.object)).or_insert_with(|| Edge {
            caller: names.object(row.caller).into(),
            callee: names.object(api.object).into(),
            calls: 0,
            calls_error: None,
            self_ns: 0.0,
            self_error_ns: None,
        });
        edge.calls = edge.calls.saturating_add(row.measures.calls);
        edge.calls_error = error_of_sum(edge.calls_error, calls_error(&row.measures));
        edge.self_ns += row.measures.self_ns.as_f64();
        edge.self_error_ns = error_of_sum(edge.self_error_ns, self_error(&row.measures));
    }
    let mut edges: Vec<_> =
        edges.into_iter().filter(|(_, edge)| edge.calls > 0 || edge.self_ns > 0.0).collect();
    edges.sort_by(|(a, of_a), (b, of_b)| {
        let longer = of_b.self_ns.total_cmp(&of_a.self_ns);
        longer.then(of_b.calls.cmp(&of_a.calls)).then(a.cmp(b))
    });
    edges.into_iter().map(|(_, edge)| edge).collect()
}
