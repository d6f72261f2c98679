//! The tables of a look: figures of all, or of the last seconds.

use std::collections::HashMap;

use chase_analyzer::{Analysis, Groups, LibraryKind, Measures, Ns, ThreadRow, blocked};

use super::listing::{Column, Figure, Listing, Row, detail, named};
use super::place::Place;
use super::watch::Look;
use crate::args::TopTable;
use crate::causes;
use crate::report::Report;
use crate::terminal::{Align, count, elapsed, percent};

/// Figures of a part of the time.
#[derive(Clone, Copy)]
pub(super) struct Figures<'l> {
    pub(super) report: &'l Report,
    pub(super) analysis: &'l Analysis,
    pub(super) groups: &'l Groups,
    /// The length of it, if it is the last seconds.
    pub(super) seconds: Option<f64>,
}

impl<'l> Figures<'l> {
    /// Those of the last seconds, where they are wanted and there were any.
    pub(super) fn new(look: &'l Look, recent: bool) -> Self {
        let report = &look.all;
        match look.recent.as_ref().filter(|_| recent) {
            Some(recent) => Self {
                report,
                analysis: &recent.analysis,
                groups: &recent.groups,
                seconds: Some(recent.seconds),
            },
            None => {
                Self { report, analysis: &report.analysis, groups: report.groups(), seconds: None }
            }
        }
    }

    /// Time on a processor, or in which one was wanted: of the last seconds, as a part of one processor.
    pub(super) fn processor(self, ns: Ns) -> Figure {
        let text = match self.seconds {
            _ if ns.0 == 0 => String::new(),
            Some(seconds) => percent_of_one(ns.seconds() / seconds),
            None => elapsed(ns.0),
        };
        Figure { text, value: ns.as_f64() }
    }

    /// Time that threads waited: of the last seconds, how many did in the mean.
    fn waiting(self, ns: Ns) -> Figure {
        let text = match self.seconds {
            _ if ns.0 == 0 => String::new(),
            Some(seconds) => threads(ns.seconds() / seconds),
            None => elapsed(ns.0),
        };
        Figure { text, value: ns.as_f64() }
    }

    /// Calls: of the last seconds, for each of them.
    pub(super) fn calls(self, calls: u64) -> Figure {
        let text = match self.seconds {
            _ if calls == 0 => String::new(),
            Some(seconds) => rate(calls as f64 / seconds),
            None => count(calls),
        };
        Figure { text, value: calls as f64 }
    }

    fn marked(self, estimated: bool, figure: Figure) -> Figure {
        let is_marked = estimated && !figure.text.is_empty();
        let text = if is_marked { format!("~{}", figure.text) } else { figure.text };
        Figure { text, ..figure }
    }

    fn number(self, column: &'static str) -> Column {
        Column { heading: column, align: Align::Number, droppable: false }
    }

    fn calls_column(self) -> Column {
        self.number(if self.seconds.is_some() { "calls/s" } else { "calls" })
    }

    /// What a place shows.
    pub(super) fn listing(self, place: &Place) -> Listing {
        match place {
            Place::Table(TopTable::Libraries) => self.libraries(),
            Place::Table(TopTable::Functions) => self.functions(None),
            Place::Library(path) => self.functions(Some(path)),
            Place::Table(TopTable::Threads) => self.thread_groups(),
            Place::Group(label) => self.threads(label),
            Place::Thread(process, number) => self.thread(*process, *number),
            Place::Table(TopTable::Waits) => self.waits(),
            Place::Function { library, symbol, .. } => self.callers(library, symbol),
            Place::Table(TopTable::Syscalls) => self.syscalls(),
            Place::Syscall { number, .. } => self.callers_of_syscall(*number),
            Place::Table(TopTable::Processes) | Place::Process(_) => self.processes(),
        }
    }

    fn libraries(self) -> Listing {
        let is_sampled = self.report.analysis.on_cpu.samples > 0;
        let mut columns = vec![named("Library")];
        columns.extend(is_sampled.then(|| self.number("cpu")));
        columns.extend([self.number("busy"), self.number("waits"), self.calls_column()]);
        let row = |row: &chase_analyzer::LibraryRow| {
            let name = self.report.names.object(row.object);
            let name = match row.kind {
                LibraryKind::Application => format!("{name} (application)"),
                LibraryKind::Library => name.to_owned(),
                LibraryKind::Unattributed => format!("{name} (nobody's)"),
            };
            let mut cells = vec![name.into()];
            cells.extend(
                is_sampled.then(|| self.processor(row.on_cpu.unwrap_or_default().on_cpu_ns)),
            );
            cells.extend(self.measures(&row.measures));
            let inside =
                (row.kind == LibraryKind::Library).then(|| Place::Library(row.path.clone()));
            Row { cells, inside, is_last: false }
        };
        Listing::new(columns, self.analysis.libraries.iter().map(row))
    }

    fn functions(self, library: Option<&str>) -> Listing {
        let is_sampled = self.report.analysis.on_cpu.samples > 0;
        let mut columns = vec![named("Function")];
        columns.extend(library.is_none().then(|| detail("Library")));
        columns.extend(is_sampled.then(|| self.number("cpu")));
        columns.extend([self.number("busy"), self.number("waits"), self.calls_column()]);
        let path = |object: u32| &*self.analysis.objects[object as usize].path;
        let rows = self.analysis.apis.iter().enumerate();
        let rows =
            rows.filter(|(_, row)| library.is_none_or(|library| path(row.object) == library));
        let row = |(number, row): (usize, &chase_analyzer::ApiRow)| {
            let mut cells = vec![self.report.names.short(number).into()];
            cells.extend(library.is_none().then(|| self.report.names.object(row.object).into()));
            let on_cpu = row.on_cpu.map(|on_cpu| on_cpu.time.on_cpu_ns).unwrap_or_default();
            cells.extend(is_sampled.then(|| self.processor(on_cpu)));
            cells.extend(self.measures(&row.measures));
            Row { cells, inside: Some(self.function(number as u32)), is_last: false }
        };
        Listing::new(columns, rows.map(row))
    }

    /// A function as a place.
    fn function(self, api: u32) -> Place {
        let row = &self.analysis.apis[api as usize];
        Place::Function {
            library: self.analysis.objects[row.object as usize].path.clone(),
            symbol: row.symbol.clone(),
            name: self.report.names.short(api as usize).to_owned(),
        }
    }

    /// Busy, waits and calls of a set of calls.
    fn measures(self, measures: &Measures) -> [Figure; 3] {
        let off = measures.wait_ns.0.saturating_add(measures.preempted_ns.unwrap_or_default().0);
        let busy = Ns(measures.self_ns.0.saturating_sub(off));
        [
            self.marked(measures.estimated, self.processor(busy)),
            self.waiting(measures.wait_ns),
            self.marked(measures.calls_estimated, self.calls(measures.calls)),
        ]
    }

    fn thread_groups(self) -> Listing {
        let columns = vec![
            named("Thread group"),
            self.number("threads"),
            self.number("busy"),
            self.number("waits"),
            self.calls_column(),
            Column { droppable: true, ..self.number("LB") },
        ];
        let row = |row: &chase_analyzer::GroupRow| {
            let balance = row.comparison.load_balance;
            let is_compared = row.threads > 1 && row.useful_ns.0 > 0;
            Row {
                cells: vec![
                    (&*row.label).into(),
                    Figure { text: row.threads.to_string(), value: row.threads as f64 },
                    self.processor(row.useful_ns),
                    self.waiting(row.wait_ns),
                    self.calls(row.calls),
                    Figure {
                        text: if is_compared { format!("{balance:.2}") } else { String::new() },
                        value: balance,
                    },
                ],
                inside: Some(Place::Group(row.label.clone())),
                is_last: false,
            }
        };
        Listing::new(columns, self.groups.rows.iter().map(row))
    }

    /// The threads of a group.
    fn threads(self, label: &str) -> Listing {
        let columns = vec![
            named("Thread"),
            self.number("id"),
            self.number("busy"),
            self.number("waits"),
            self.calls_column(),
        ];
        let group = self.groups.rows.iter().find(|row| row.label == label);
        let members = group.map_or(&[][..], |row| &row.members);
        let row = |&number: &u32| {
            let row = &self.analysis.threads[number as usize];
            let (busy, waits) = (busy_of(row), waits_of(row));
            Row {
                cells: vec![
                    (&*row.name).into(),
                    Figure { text: row.tid.to_string(), value: f64::from(row.tid) },
                    self.processor(busy),
                    self.waiting(waits),
                    self.calls(row.measures.calls),
                ],
                inside: Some(Place::Thread(row.process, row.thread)),
                is_last: false,
            }
        };
        Listing::new(columns, members.iter().map(row))
    }

    /// What a thread does.
    fn thread(self, process: usize, number: u32) -> Listing {
        let columns = vec![
            named("Function"),
            detail("Library"),
            self.number("busy"),
            self.number("waits"),
            self.calls_column(),
        ];
        let mut rows = Vec::new();
        let is_it = |row: &&ThreadRow| row.process == process && row.thread == number;
        if let Some(thread) = self.analysis.threads.iter().find(is_it) {
            let waits = thread.outside_wait_ns().unwrap_or_default();
            let off = waits.0.saturating_add(thread.application_preempted_ns.unwrap_or_default().0);
            let object = self.report.names.object(thread.own_object);
            rows.push(Row {
                cells: vec![
                    causes::function(self.report, None).into(),
                    object.into(),
                    self.processor(Ns(thread.application_ns.0.saturating_sub(off))),
                    self.waiting(waits),
                    Figure::default(),
                ],
                inside: None,
                is_last: false,
            });
            for row in &thread.apis {
                let off = row.wait_ns.0.saturating_add(row.preempted_ns.0);
                let object = self.analysis.apis[row.api as usize].object;
                rows.push(Row {
                    cells: vec![
                        self.report.names.short(row.api as usize).into(),
                        self.report.names.object(object).into(),
                        self.processor(Ns(row.self_ns.0.saturating_sub(off))),
                        self.waiting(row.wait_ns),
                        self.calls(row.calls),
                    ],
                    inside: Some(self.function(row.api)),
                    is_last: false,
                });
            }
        }
        Listing::new(columns, rows.into_iter())
    }

    /// What threads that have work wait for, and below, those that have none.
    fn waits(self) -> Listing {
        let columns = vec![
            named("Waiting in"),
            detail("Library"),
            Column { heading: "for", align: Align::Text, droppable: false },
            self.number("waits"),
            self.number("threads"),
        ];
        let found = blocked(self.analysis);
        let row = |api: Option<u32>, cause: String, wait_ns: Ns, threads: usize, is_last| {
            let object = api.map(|api| self.analysis.apis[api as usize].object);
            Row {
                cells: vec![
                    causes::function(self.report, api).into(),
                    object.map_or("", |object| self.report.names.object(object)).into(),
                    (&*cause).into(),
                    self.waiting(wait_ns),
                    Figure { text: threads.to_string(), value: threads as f64 },
                ],
                inside: api.map(|api| self.function(api)),
                is_last,
            }
        };
        let rows = found
            .rows
            .iter()
            .map(|it| row(it.api, crate::view::cause(it.cause), it.wait_ns, it.threads, false));
        let idle = found
            .idle
            .iter()
            .map(|it| row(it.api, "work (idle)".to_owned(), it.wait_ns, it.threads, true));
        Listing::new(columns, rows.chain(idle))
    }

    /// Who calls a function: thread groups.
    fn callers(self, library: &str, symbol: &str) -> Listing {
        let columns = vec![
            named("Called by"),
            self.number("threads"),
            self.number("busy"),
            self.number("waits"),
            self.calls_column(),
        ];
        let is_it = |api: u32| {
            let row = &self.analysis.apis[api as usize];
            row.symbol == symbol && self.analysis.objects[row.object as usize].path == library
        };
        let mut sums: HashMap<u32, (usize, u64, u64, u64)> = HashMap::new();
        for (thread, group) in self.analysis.threads.iter().zip(&self.groups.of_thread) {
            let mut calls = thread.apis.iter().filter(|row| is_it(row.api)).peekable();
            if calls.peek().is_none() {
                continue;
            }
            let sum = sums.entry(*group).or_default();
            sum.0 += 1;
            for row in calls {
                let off = row.wait_ns.0.saturating_add(row.preempted_ns.0);
                sum.1 = sum.1.saturating_add(row.self_ns.0.saturating_sub(off));
                sum.2 = sum.2.saturating_add(row.wait_ns.0);
                sum.3 += row.calls;
            }
        }
        let row = |(group, (threads, busy, waits, calls)): (u32, (usize, u64, u64, u64))| {
            let label = &self.groups.rows[group as usize].label;
            Row {
                cells: vec![
                    (&**label).into(),
                    Figure { text: threads.to_string(), value: threads as f64 },
                    self.processor(Ns(busy)),
                    self.waiting(Ns(waits)),
                    self.calls(calls),
                ],
                inside: Some(Place::Group(label.clone())),
                is_last: false,
            }
        };
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(group, _)| *group);
        Listing::new(columns, sums.into_iter().map(row))
    }

    fn syscalls(self) -> Listing {
        let columns = self.syscall_columns("System call", Vec::new());
        let row = |row: &chase_analyzer::SyscallRow<chase_analyzer::All>| {
            let inside = Place::Syscall { number: row.number, name: row.syscall.to_string() };
            let cells = vec![(&*row.syscall).into()];
            Row { cells: self.syscall(cells, &row.measures), inside: Some(inside), is_last: false }
        };
        Listing::new(columns, self.analysis.syscalls.by_syscall.iter().map(row))
    }

    /// Functions that make a system call.
    fn callers_of_syscall(self, number: u32) -> Listing {
        let columns = self.syscall_columns("Made by", vec![detail("Library")]);
        let rows = self.analysis.syscalls.by_api.iter().filter(|row| row.number == number);
        let row = |row: &chase_analyzer::SyscallRow<chase_analyzer::OfApi>| {
            let api = row.of.api;
            let name = match api {
                Some(api) => self.report.names.short(api as usize),
                None if row.of.is_recorded => causes::function(self.report, None),
                None => "(not recorded)",
            };
            let cells = vec![name.into(), (&*row.of.library).into()];
            Row {
                cells: self.syscall(cells, &row.measures),
                inside: api.map(|api| self.function(api)),
                is_last: false,
            }
        };
        Listing::new(columns, rows.map(row))
    }

    fn syscall_columns(self, first: &'static str, more: Vec<Column>) -> Vec<Column> {
        let mut columns = vec![named(first)];
        columns.extend(more);
        columns.extend([
            self.number("cpu"),
            self.number("off cpu"),
            self.number(if self.seconds.is_some() { "errors/s" } else { "errors" }),
            self.calls_column(),
        ]);
        columns
    }

    fn syscall(
        self,
        mut cells: Vec<Figure>,
        measures: &chase_analyzer::SyscallMeasures,
    ) -> Vec<Figure> {
        cells.extend([
            self.processor(measures.cpu_ns),
            self.waiting(measures.off_cpu_ns),
            self.calls(measures.errors),
            self.calls(measures.calls),
        ]);
        cells
    }

    fn processes(self) -> Listing {
        let columns = vec![
            named("Process"),
            self.number("pid"),
            Column { heading: "state", align: Align::Text, droppable: false },
            self.number("threads"),
            self.number("busy"),
            self.number("waits"),
            self.calls_column(),
        ];
        let row = |row: &chase_analyzer::ProcessRow| {
            let totals = &row.totals;
            Row {
                cells: vec![
                    (&*row.program).into(),
                    Figure { text: row.pid.to_string(), value: f64::from(row.pid) },
                    (&*super::state::state(row)).into(),
                    Figure { text: totals.threads.to_string(), value: totals.threads as f64 },
                    self.processor(super::state::busy(totals)),
                    self.waiting(super::state::waits(totals)),
                    self.calls(totals.calls),
                ],
                inside: Some(Place::Process(row.pid)),
                is_last: false,
            }
        };
        Listing::new(columns, self.analysis.processes.iter().map(row))
    }
}

/// Neither waiting nor waiting for a processor.
fn busy_of(thread: &ThreadRow) -> Ns {
    let parts = [
        thread.outside_wait_ns(),
        thread.outside_preempted_ns(),
        Some(thread.measures.wait_ns),
        thread.measures.preempted_ns,
    ];
    let off = parts.into_iter().flatten().fold(0_u64, |sum, part| sum.saturating_add(part.0));
    let outside = thread.application_ns.0.saturating_add(thread.unattributed_ns.0);
    let all = outside.saturating_add(thread.measures.self_ns.0);
    Ns(all.saturating_sub(off))
}

fn waits_of(thread: &ThreadRow) -> Ns {
    let own = thread.outside_wait_ns().unwrap_or_default();
    Ns(thread.measures.wait_ns.0.saturating_add(own.0))
}

/// `152 %`: more than one processor is more than all of one.
pub(super) fn percent_of_one(processors: f64) -> String {
    match processors {
        more if more >= 1.0 => format!("{:.0} %", more * 100.0),
        less => percent(less),
    }
}

/// So many threads, in the mean.
pub(super) fn threads(mean: f64) -> String {
    if mean < 0.005 { "<0.01".to_owned() } else { format!("{mean:.2}") }
}

/// So many in a second.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        few if few < 0.1 => "<0.1".to_owned(),
        few if few < 10.0 => format!("{few:.1}"),
        many => count(many.round() as u64),
    }
}
