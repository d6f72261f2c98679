//! What is worth a sentence, above all tables.

use chase_analyzer::{Party, one_by_one};
use serde_json::{Value, json};

use super::{Show, path, words, wrap};
use crate::causes;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::sentences::{called_back, command, sentence, started_at, view_command};
use crate::terminal::{Look, Terminal, clean, elapsed, percent, plural};

/// Lines of text are no longer than this.
const WIDTH: usize = 100;

/// `findings`.
pub(super) struct Findings;

impl Show for Findings {
    const NAME: &'static str = "findings";

    fn text(&self, report: &Report, terminal: Terminal, _: usize) -> anyhow::Result<String> {
        let text = text(report, terminal);
        if !text.is_empty() {
            // What saves nothing does not say what the run's length is.
            let saves = report.findings().iter().any(|finding| finding.saves_ns.0 > 0);
            let waits = if saves { String::new() } else { path::mostly_waits(report) };
            return Ok(text + &waits);
        }
        let nothing = format!(
            "Nothing stands out by the rules that chase looks for (docs/findings.md). \
             What takes most: {}, and apis, hot.\n",
            view_command(report, "libs")
        );
        Ok(nothing + &mostly_one_by_one(report) + &path::mostly_waits(report))
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let mut rows = rows(report)?;
        rows.rows.truncate(top);
        Ok(vec![rows])
    }
}

/// The program that is started again and again for most of the run, never twice at a time.
fn mostly_one_by_one(report: &Report) -> String {
    let causes = &report.watched().causes;
    let Some(one) = one_by_one(&report.analysis, report.groups(), causes) else {
        return String::new();
    };
    let wait = one.wait.map_or_else(String::new, |wait| {
        let api = wait.api.map_or("", |api| report.names.short(api as usize));
        let at = match &*causes::site(report, wait.process, wait.site) {
            "" => String::new(),
            site => format!(" at {site}"),
        };
        format!("; {} waits for them in {api}{at}", report.groups().rows[wait.group as usize].label)
    });
    format!(
        "Most of the run, {} ({}), is {} of {}, one after the other{wait}. \
         If they don't depend on each other, they could run at once.\n",
        elapsed(one.lived_ns.0),
        percent(one.share),
        plural(one.processes as u64, "process"),
        one.program,
    )
}

/// The sentences, each with the command that shows more; empty where there is nothing to say.
pub(super) fn text(report: &Report, terminal: Terminal) -> String {
    let findings = report.findings();
    if findings.is_empty() {
        return String::new();
    }
    let mut out = terminal.paint(Look::Strong, "Findings");
    out.push('\n');
    let width = terminal.width.unwrap_or(WIDTH).clamp(40, WIDTH);
    for (number, finding) in (1..).zip(findings) {
        let text = sentence(report, finding).to_string();
        let text = clean(&text);
        out.push_str(&format!("{number:>3}. {}\n", wrap(words(&text), 5, 5, width)));
        let command = format!("     {}", clean(&command(report, finding)));
        out.push_str(&terminal.paint(Look::Faint, &command));
        out.push('\n');
    }
    out
}

/// The same for programs.
pub(super) fn rows(report: &Report) -> anyhow::Result<Rows> {
    let thread = |number: &u32| {
        let row = &report.analysis.threads[*number as usize];
        let pid = report.analysis.processes.get(row.process).map(|process| process.pid);
        json!({"pid": pid, "tid": row.tid, "name": row.name})
    };
    let mut rows = Vec::new();
    for finding in report.findings() {
        let group = &report.groups().rows[finding.group as usize];
        let api = finding.api.map(|api| (api as usize, &report.analysis.apis[api as usize]));
        let blame = finding.blame.as_ref();
        let site = blame.map(|blame| causes::site(report, blame.process, blame.site));
        let site = site.or_else(|| started_at(report, finding));
        let party =
            |party: &Option<Party>| party.as_ref().map(|party| causes::party(report, party));
        let threads: Vec<Value> = finding.threads.iter().map(thread).collect();
        rows.push(machine::row(
            finding,
            [
                ("group", Value::from(&*group.label)),
                ("threads", threads.into()),
                ("api", api.map(|(number, _)| report.names.full(number)).into()),
                ("symbol", api.map(|(_, row)| &*row.symbol).into()),
                ("library", api.map(|(_, row)| &*row.library).into()),
                ("called_back", called_back(report, finding).into()),
                ("argument", api.and_then(|(_, row)| row.main_text()).into()),
                ("object", blame.map(|blame| causes::blamed_object(report, blame)).into()),
                ("site", site.into()),
                ("holder", blame.and_then(|blame| party(&blame.holder)).into()),
                ("waker", blame.and_then(|blame| party(&blame.waker)).into()),
                ("wait_ns", blame.map(|blame| blame.wait_ns.0).filter(|&ns| ns > 0).into()),
                ("text", sentence(report, finding).to_string().into()),
                ("command", command(report, finding).into()),
            ],
        )?);
    }
    let columns = [
        "kind", "group", "api", "library", "saves_ns", "share", "object", "site", "holder",
        "waker", "text", "command",
    ];
    Ok(Rows { name: "findings", columns: columns.into(), rows })
}
