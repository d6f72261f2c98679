//! Everything in rows, to be searched and sorted.

use chase_analyzer::{Analysis, Groups, Measures, Ns};
use serde::{Deserialize, Serialize};

use super::figures::self_error;
use super::{Figures, Names, syscalls};
use crate::Label;

/// Most rows of a table; the rest is said to be left out.
const ROWS: usize = 20_000;
/// Most contexts.
const CONTEXTS: usize = 2_000;

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RawTable {
    /// What its rows are, such as "Functions".
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, a value per column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows there would be.
    pub all: usize,
}

/// A column.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// How its values are written.
    pub kind: ColumnKind,
    /// Whether it is shown without being asked for.
    pub shown: bool,
    /// What is to be said of its values in rows that have something in another column: what, and the position of
    /// that column.
    pub mark: Option<(Mark, usize)>,
}

/// How a value that is not exact is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// It is an estimate.
    About,
    /// It is an estimate, whose error the other column has.
    PlusMinus,
    /// It is more, or that.
    AtLeast,
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// As it is.
    Text,
    /// A number of something.
    Count,
    /// Nanoseconds.
    Time,
    /// A fraction of 1.
    Share,
}

/// A value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Text.
    Text(Label),
    /// A number, in the unit of its column.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// Not known, or none.
    None,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<Ns> for Value {
    fn from(time: Ns) -> Self {
        Self::Whole(time.0)
    }
}

impl From<Option<Ns>> for Value {
    fn from(time: Option<Ns>) -> Self {
        time.map_or(Self::None, Self::from)
    }
}

pub(super) fn raw_tables(figures: Figures<'_>, names: &dyn Names) -> Vec<RawTable> {
    let analysis = figures.analysis;
    let tables = [
        functions(analysis, names),
        callers(analysis, names),
        threads(analysis, figures.groups),
        contexts(analysis, names),
        system_calls(analysis, names),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn column(name: &str, kind: ColumnKind, shown: bool) -> Column {
    Column { name: name.to_owned(), kind, shown, mark: None }
}

/// Columns of the figures, in the order of [`figures`]; so many others are before them.
fn figure_columns(before: usize) -> Vec<Column> {
    use ColumnKind::{Count, Share, Time};
    let mut columns = vec![
        column("share", Share, true),
        column("self", Time, true),
        column("total", Time, true),
        column("wait", Time, false),
        column("preempted", Time, false),
        column("calls", Count, true),
        column("mean", Time, false),
        column("p50", Time, true),
        column("p90", Time, false),
        column("p99", Time, false),
        column("p99.9", Time, true),
        column("max", Time, true),
        column("untimed", Count, false),
        column("unwound", Count, false),
        column("open", Count, false),
        column("self ±", Time, false),
        column("calls ±", Count, false),
        column("timed", Count, false),
    ];
    let at = |name: &str| before + columns.iter().take_while(|column| column.name != name).count();
    let (self_error, calls_error, timed) = (at("self ±"), at("calls ±"), at("timed"));
    for column in &mut columns {
        column.mark = match &*column.name {
            "self" => Some((Mark::PlusMinus, self_error)),
            "calls" => Some((Mark::PlusMinus, calls_error)),
            "share" | "total" | "mean" => Some((Mark::About, self_error)),
            "max" => Some((Mark::AtLeast, timed)),
            _ => None,
        };
    }
    columns
}

fn figures(measures: &Measures) -> Vec<Value> {
    let is_timed = !measures.is_untimed();
    let time = |ns: Ns| if is_timed { ns.into() } else { Value::None };
    vec![
        // So many digits that what is not nothing does not become it.
        if is_timed { Value::Number((measures.share * 1e9).round() / 1e9) } else { Value::None },
        time(measures.self_ns),
        time(measures.total_ns),
        measures.wait_ns.into(),
        measures.preempted_ns.into(),
        measures.calls.into(),
        measures.mean_ns.into(),
        measures.p50_ns.into(),
        measures.p90_ns.into(),
        measures.p99_ns.into(),
        measures.p999_ns.into(),
        measures.max_ns.into(),
        measures.untimed.into(),
        measures.unwound.into(),
        measures.open.into(),
        self_error(measures).map_or(Value::None, |ns| Ns::from_f64(ns).into()),
        if measures.calls_estimated { measures.calls_ci95.into() } else { Value::None },
        if measures.samples_only() { measures.timed.into() } else { Value::None },
    ]
}

fn functions(analysis: &Analysis, names: &dyn Names) -> RawTable {
    let mut columns = vec![
        column("function", ColumnKind::Text, true),
        column("library", ColumnKind::Text, true),
        column("version", ColumnKind::Text, false),
        column("whole name", ColumnKind::Text, false),
    ];
    columns.extend(figure_columns(columns.len()));
    let row = |(number, api): (usize, &chase_analyzer::ApiRow)| {
        let whole = names.whole_function(number);
        let short = names.function(number);
        let mut row = vec![
            short.into(),
            names.object(api.object).into(),
            Value::from(&*api.version),
            if whole == short { Value::None } else { whole.into() },
        ];
        row.extend(figures(&api.measures));
        row
    };
    let rows = analysis.apis.iter().enumerate().take(ROWS).map(row).collect();
    RawTable { name: "Functions".into(), columns, rows, all: analysis.apis.len() }
}

fn callers(analysis: &Analysis, names: &dyn Names) -> RawTable {
    let mut columns = vec![
        column("caller", ColumnKind::Text, true),
        column("function", ColumnKind::Text, true),
        column("library", ColumnKind::Text, true),
    ];
    columns.extend(figure_columns(columns.len()));
    let row = |row: &chase_analyzer::CallerRow| {
        let api = analysis.apis.get(row.api as usize);
        let mut values = vec![
            names.object(row.caller).into(),
            names.function(row.api as usize).into(),
            api.map_or(Value::None, |api| names.object(api.object).into()),
        ];
        values.extend(figures(&row.measures));
        values
    };
    let rows = analysis.callers.iter().take(ROWS).map(row).collect();
    RawTable { name: "Callers".into(), columns, rows, all: analysis.callers.len() }
}

fn threads(analysis: &Analysis, groups: &Groups) -> RawTable {
    use ColumnKind::{Count, Text, Time};
    let mut columns = vec![
        column("thread", Text, true),
        column("TID", Count, true),
        column("PID", Count, false),
        column("group", Text, true),
        column("start", Time, false),
        column("lifetime", Time, true),
        column("application", Time, true),
        column("library", Time, true),
        column("wait", Time, true),
        column("preempted", Time, false),
        column("calls", Count, true),
        column("cost of recording", Time, false),
        column("calls not recorded", Count, false),
        column("library ±", Time, false),
        column("calls ±", Count, false),
    ];
    for (name, error) in
        [("application", "library ±"), ("library", "library ±"), ("calls", "calls ±")]
    {
        let at = columns.iter().position(|column| column.name == error);
        let marked = columns.iter_mut().find(|column| column.name == name);
        if let (Some(column), Some(at)) = (marked, at) {
            column.mark = Some((Mark::PlusMinus, at));
        }
    }
    let row = |(thread, &group): (&chase_analyzer::ThreadRow, &u32)| {
        let pid = analysis.processes.get(thread.process).map_or(0, |process| process.pid);
        let measures = &thread.measures;
        vec![
            Value::from(&*thread.name),
            u64::from(thread.tid).into(),
            u64::from(pid).into(),
            Value::from(&*groups.rows[group as usize].label),
            thread.start_ns.into(),
            thread.lifetime_ns.into(),
            thread.application_ns.into(),
            thread.measures.self_ns.into(),
            thread.measures.wait_ns.into(),
            thread.measures.preempted_ns.into(),
            thread.measures.calls.into(),
            thread.own_cost_ns.into(),
            thread.lost_calls.into(),
            self_error(measures).map_or(Value::None, |ns| Ns::from_f64(ns).into()),
            if measures.calls_estimated { measures.calls_ci95.into() } else { Value::None },
        ]
    };
    let rows = analysis.threads.iter().zip(&groups.of_thread).take(ROWS).map(row).collect();
    RawTable { name: "Threads".into(), columns, rows, all: analysis.threads.len() }
}

/// What a flame graph shows, for those who can't see it.
fn contexts(analysis: &Analysis, names: &dyn Names) -> RawTable {
    let mut columns = vec![
        column("called in", ColumnKind::Text, true),
        column("function", ColumnKind::Text, true),
        column("caller", ColumnKind::Text, false),
    ];
    columns.extend(figure_columns(columns.len()));
    let mut costliest: Vec<usize> = (0..analysis.contexts.len()).collect();
    costliest.sort_by_key(|&at| (std::cmp::Reverse(analysis.contexts[at].measures.self_ns), at));
    let row = |at: usize| {
        let context = &analysis.contexts[at];
        let parent = |at: usize| analysis.contexts[at].parent.map(|parent| parent as usize);
        let mut path: Vec<&str> = std::iter::successors(parent(at), |&at| parent(at))
            .map(|at| names.function(analysis.contexts[at].api as usize))
            .collect();
        path.reverse();
        let mut row = vec![
            Value::from(&*path.join(" › ")),
            names.function(context.api as usize).into(),
            names.object(context.caller).into(),
        ];
        row.extend(figures(&context.measures));
        row
    };
    let rows = costliest.into_iter().take(CONTEXTS).map(row).collect();
    RawTable { name: "Contexts".into(), columns, rows, all: analysis.contexts.len() }
}

fn system_calls(analysis: &Analysis, names: &dyn Names) -> RawTable {
    use ColumnKind::{Count, Text, Time};
    let columns = vec![
        column("made by", Text, true),
        column("library", Text, true),
        column("system call", Text, true),
        column("category", Text, true),
        column("calls", Count, true),
        column("calls of the function", Count, false),
        column("errors", Count, true),
        column("by error", Text, false),
        column("total", Time, true),
        column("CPU", Time, true),
        column("max", Time, true),
        column("p50 below", Time, false),
        column("p99 below", Time, false),
        column("bytes", Count, true),
        column("restarts", Count, false),
        column("unfinished", Count, false),
    ];
    let row = |row: &chase_analyzer::SyscallRow<chase_analyzer::OfApi>| {
        let measures = &row.measures;
        let errors: Vec<String> = syscalls::errors(row)
            .into_iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        vec![
            syscalls::function(names, &row.of).as_str().into(),
            Value::from(&*row.of.library),
            Value::from(&*row.syscall),
            syscalls::category(row.category).into(),
            measures.calls.into(),
            row.of.api.map_or(Value::None, |_| row.of.api_calls.into()),
            measures.errors.into(),
            Value::from(&*errors.join(", ")),
            measures.total_ns.into(),
            measures.cpu_ns.into(),
            measures.max_ns.into(),
            measures.p50_below_ns.into(),
            measures.p99_below_ns.into(),
            measures.bytes.map_or(Value::None, Value::from),
            measures.restarts.into(),
            measures.unfinished.into(),
        ]
    };
    let rows: Vec<_> = syscalls::made(analysis).take(ROWS).map(row).collect();
    let all = syscalls::made(analysis).count();
    RawTable { name: "System calls".into(), columns, rows, all }
}
