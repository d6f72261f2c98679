//! The programs of the run, and what they read, write and share: a graph, sentences and a table.

use chase_viz::{Chart, Heading, Sheet, bytes, graph};
use maud::{Markup, html};

use crate::figure::{count, name, plural, scrolling_figure, table, time};
use crate::model::{PartUse, Parts};
use crate::{Error, Report};

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(parts) = report.parts.as_ref().filter(|parts| !parts.diagram.nodes.is_empty()) else {
        return Ok(None);
    };
    let heading = Heading { title: "Components of the run", subtitle: "" };
    let caption = html! {
        "Boxes are programs. A dashed arrow leads from a program to one that it started, others go where the bytes went; "
        "ellipses are files, and other things that do not lead from one program to one other."
        @if parts.more_programs > 0 {
            " " (plural(parts.more_programs, "program")) " that exchanged less are not drawn."
        }
    };
    let picture = scrolling_figure(&heading, &caption, |sheet| draw(parts, sheet))?;
    Ok(Some(html! {
        @if !parts.sentences.is_empty() {
            ul.told { @for sentence in &parts.sentences { li { (sentence) } } }
        }
        @if !parts.missing.as_str().is_empty() { p.note { (parts.missing) } }
        (picture)
        @if !parts.uses.is_empty() {
            details { summary { "As a table: what each program read and wrote" }
                (uses(&parts.uses))
                @if parts.more_uses > 0 { p.note { "… and " (parts.more_uses) " more." } }
            }
        }
    }))
}

pub(crate) fn draw(parts: &Parts, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    Ok(graph(sheet, &parts.diagram.graph())?)
}

fn uses(uses: &[PartUse]) -> Markup {
    let columns = [
        ("program", false),
        ("thing", false),
        ("read", true),
        ("in reads", true),
        ("taking", true),
        ("written", true),
        ("in writes", true),
        ("taking", true),
    ];
    let row = |used: &PartUse| {
        let mut row = vec![name(&used.program), name(&used.thing)];
        let read = (used.read, used.reads, used.read_ns);
        for (size, calls, ns) in [read, (used.written, used.writes, used.write_ns)] {
            if calls == 0 {
                row.extend([html! {}, html! {}, html! {}]);
            } else {
                row.extend([html! { (bytes(size)) }, count(calls), time(ns)]);
            }
        }
        row
    };
    let rows: Vec<_> = uses.iter().map(row).collect();
    table("What programs read and wrote", &columns, &rows)
}
