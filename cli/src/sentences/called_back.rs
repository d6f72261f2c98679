//! What functions of libraries call back, in words.

use chase_analyzer::Finding;

use crate::event_loops;
use crate::report::Report;

/// The function that the calls of a finding mostly run, where they call it back: `render_tile (app) at app.cpp:19`.
pub(crate) fn function(report: &Report, finding: &Finding) -> Option<String> {
    let one = report.watched().called_back.get(finding.called_back? as usize)?;
    let ran = event_loops::functions(report, one.process, &one.ran);
    let most = ran.first()?;
    let at = if most.line.is_empty() { String::new() } else { format!(" at {}", most.line) };
    Some(format!("{}{at}", most.name))
}
