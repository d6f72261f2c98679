//! Verdicts as text, JSON and JUnit's XML.

use std::io::Write;

use anyhow::Context;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::Writer;
use serde_json::json;

use super::{Outcome, Verdict};
use crate::args::Unit;
use crate::terminal::{clean, count, elapsed, plural};

impl Verdict<'_> {
    fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Failed => "failed",
            Outcome::Passed => "passed",
            Outcome::Unclear => "can't tell",
            Outcome::NoChange => "no change",
        }
    }

    /// What it is, for people.
    fn shown(&self) -> String {
        let limit = self.condition.limit;
        let amount = |value: f64| match limit.unit {
            Unit::Percent if value.is_infinite() => "from nothing".to_owned(),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Ns if value < 0.0 => format!("-{}", elapsed(-value as u64)),
            Unit::Ns => elapsed(value as u64),
            Unit::Count if value < 0.0 => format!("-{}", count(-value as u64)),
            Unit::Count => count(value as u64),
        };
        let sign = if limit.is_change && self.value > 0.0 { "+" } else { "" };
        let mut text = format!("it is {sign}{}", amount(self.value));
        if self.ci95 > 0.0 {
            text.push_str(&format!(" ±{}", amount(self.ci95)));
        }
        text.push_str(match self.outcome {
            Outcome::NoChange if self.value != 0.0 => ", which may be nothing",
            Outcome::Unclear => ", so the limit may be kept: more runs, or longer ones, would tell",
            _ => "",
        });
        let of_one = self.before.is_some() && (self.runs.0 == 1 || self.runs.1 == 1);
        if of_one && limit.unit != Unit::Count {
            text.push_str(" (a single run on a side: how much runs differ is not known)");
        }
        match (self.before, self.runs) {
            (None, (_, 0 | 1)) | (Some(_), (0 | 1, 0 | 1)) => {}
            (None, (_, runs)) => text.push_str(&format!(" (the mean of {runs} runs)")),
            (Some(_), (1, runs) | (runs, 1)) => {
                text.push_str(&format!(" (by the mean of the other side's {runs} runs)"));
            }
            (Some(_), (before, after)) => {
                text.push_str(&format!(" (by the means of {before} and of {after} runs)"));
            }
        }
        if self.unwatched > 0 {
            let processes = plural(self.unwatched as u64, "unwatched process");
            let are = if self.unwatched == 1 { "is" } else { "are" };
            text.push_str(&format!(" ({processes} {are} not in it)"));
        }
        text
    }
}

/// One line each, on standard error.
pub(super) fn print(verdicts: &[Verdict]) {
    for verdict in verdicts {
        let line = format!("{}: {}: {}", verdict.word(), verdict.condition, verdict.shown());
        // Where standard error is closed, the exit status has to do.
        let _ = writeln!(std::io::stderr(), "{}", clean(&line));
    }
}

pub(super) fn json(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let outcome = match verdict.outcome {
            Outcome::Failed => "failed",
            Outcome::Passed => "passed",
            Outcome::Unclear => "unclear",
            Outcome::NoChange => "no-change",
        };
        // (JSON has no infinity.)
        json!({
            "condition": verdict.condition.to_string(),
            "outcome": outcome,
            "before": verdict.before,
            "after": verdict.after,
            "value": verdict.value.is_finite().then_some(verdict.value),
            "limit": verdict.condition.limit.amount,
            "ci95": verdict.ci95,
            "runs": [verdict.runs.0, verdict.runs.1],
            "unwatched": verdict.unwatched,
            "text": verdict.shown(),
        })
    };
    format!("{:#}\n", json!({ "verdicts": verdicts.iter().map(row).collect::<Vec<_>>() }))
}

/// A test case for each condition; what is unclear and does not fail is a skipped one.
pub(super) fn junit(verdicts: &[Verdict], if_unclear: bool) -> anyhow::Result<String> {
    let fails = |verdict: &&Verdict| verdict.fails(if_unclear);
    let skips = |verdict: &&Verdict| verdict.outcome == Outcome::Unclear && !if_unclear;
    let number = |count: usize| count.to_string();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer
        .create_element("testsuite")
        .with_attribute(("name", "chase"))
        .with_attribute(("tests", &*number(verdicts.len())))
        .with_attribute(("failures", &*number(verdicts.iter().filter(fails).count())))
        .with_attribute(("skipped", &*number(verdicts.iter().filter(skips).count())))
        .write_inner_content(|writer| {
            for verdict in verdicts {
                let name = clean(&verdict.condition.to_string()).into_owned();
                let shown = clean(&verdict.shown()).into_owned();
                let case = writer
                    .create_element("testcase")
                    .with_attribute(("classname", "chase"))
                    .with_attribute(("name", &*name));
                let element = match () {
                    () if fails(&verdict) => "failure",
                    () if skips(&verdict) => "skipped",
                    () => "system-out",
                };
                case.write_inner_content(|writer| {
                    let inner = writer.create_element(element);
                    match element {
                        "system-out" => inner.write_text_content(BytesText::new(&format!(
                            "{}: {shown}",
                            verdict.word()
                        )))?,
                        _ => inner.with_attribute(("message", &*shown)).write_empty()?,
                    };
                    Ok(())
                })?;
            }
            Ok(())
        })?;
    let text = String::from_utf8(writer.into_inner()).context("no text")?;
    Ok(text + "\n")
}
