//! JSON and CSV: every row and every figure, for programs. `docs/json.md` is the contract.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::report::Report;

/// Version of the JSON documents. It changes when a field goes away or changes its meaning; new
/// fields may come at any time.
pub(crate) const SCHEMA: u32 = 1;

/// Columns of the figures that most rows have.
pub(crate) const MEASURES: [&str; 21] = [
    "calls",
    "untimed",
    "unwound",
    "open",
    "total_ns",
    "self_ns",
    "wait_ns",
    "share",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "preempted_ns",
    "timed",
    "estimated",
    "ci95_ns",
    "calls_estimated",
    "calls_ci95",
    "clock_ci95_ns",
];

/// Columns of what samples say; empty where none were taken.
pub(crate) const ON_CPU: [&str; 4] = ["samples", "on_cpu_ns", "on_cpu_kernel_ns", "on_cpu_ci95_ns"];

/// Columns of what the scheduler has measured; empty where it was not asked.
pub(crate) const OFF_CPU: [&str; 2] = ["blocked_ns", "runnable_ns"];

/// The rows of a view under their name in JSON, and the columns that they have as CSV.
pub(crate) struct Rows {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Map<String, Value>>,
}

/// An analyzer's row as JSON, and what is known beyond it.
pub(crate) fn row<T: Serialize, const N: usize>(
    row: &T,
    more: [(&str, Value); N],
) -> anyhow::Result<Map<String, Value>> {
    let mut map = match serde_json::to_value(row)? {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    map.extend(more.map(|(key, value)| (key.to_owned(), value)));
    Ok(map)
}

/// A document with the head that all have, and the tables of a view.
pub(crate) fn json(report: &Report, view: &str, tables: Vec<Rows>) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&document(report, view, tables)?)? + "\n")
}

/// The same before it is written.
pub(crate) fn document(report: &Report, view: &str, tables: Vec<Rows>) -> anyhow::Result<Value> {
    let analysis = &report.analysis;
    let failures: Vec<Value> = report
        .loaded
        .failures
        .iter()
        .map(|failure| json!({"path": failure.path.display().to_string(), "problem": failure.cause.to_string()}))
        .collect();
    let mut document = json!({
        "schema": SCHEMA,
        "view": view,
        "path": report.path.display().to_string(),
        "wall_ns": analysis.wall_ns,
        "span_ns": analysis.span_ns,
        "totals": analysis.totals,
        "processes": analysis.processes,
        "objects": analysis.objects,
        "wait_source": analysis.wait_source(),
        "on_cpu": analysis.on_cpu,
        "overhead": analysis.overhead,
        "not_seen": analysis.not_seen,
        "unreadable_files": failures,
        "older_runs": report.loaded.other_runs,
    });
    if report.paths.len() > 1 {
        let paths = report.paths.iter().map(|path| path.display().to_string());
        document["paths"] = paths.collect();
    }
    for table in tables {
        document[table.name] = table.rows.into_iter().map(Value::Object).collect();
    }
    Ok(document)
}

/// One table. Fields of a field have names such as `start_routine.line`; lists are left out.
pub(crate) fn csv(table: &Rows) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&table.columns)?;
    for row in &table.rows {
        let fields = table.columns.iter().map(|column| {
            let (first, rest) = column.split_once('.').unwrap_or((column, ""));
            let value = row.get(first);
            field(if rest.is_empty() { value } else { value.and_then(|value| value.get(rest)) })
        });
        writer.write_record(fields)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn field(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        // A name from a recording must not steer the terminal that this may be printed on, nor be a formula of a spreadsheet's.
        Some(Value::String(text)) if text.starts_with(['=', '+', '-', '@']) => {
            format!("'{}", crate::terminal::clean(text))
        }
        Some(Value::String(text)) => crate::terminal::clean(text).into_owned(),
        Some(other) => other.to_string(),
    }
}
