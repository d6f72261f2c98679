//! The command that shows more of a finding.

use chase_analyzer::{Finding, FindingKind};

use super::group;
use crate::args::Runs;
use crate::report::Report;

/// The command that shows more of the same recording.
pub(crate) fn command(report: &Report, finding: &Finding) -> String {
    let label = &group(report, finding).label;
    let group = format!("--group {}", quoted(&globset::escape(label)));
    let api = finding.api.map(|api| &report.analysis.apis[api as usize].symbol);
    let api =
        api.map_or_else(String::new, |api| format!(" --api {}", quoted(&globset::escape(api))));
    let (view, filters) = match finding.kind {
        FindingKind::SlowThreads { .. }
        | FindingKind::BarrierStraggler { .. }
        | FindingKind::LastToEnd { .. }
        | FindingKind::UnevenWork { .. } => ("tree", group),
        FindingKind::SubGroups { .. }
        | FindingKind::TooManyThreads { .. }
        | FindingKind::UsedUpQuota { .. } => ("threads", group),
        FindingKind::SlowFirstCall { .. } | FindingKind::RareSlowCalls { .. } => {
            ("tail", group + &api)
        }
        FindingKind::SerialisingLock { .. }
        | FindingKind::StarvedConsumers { .. }
        | FindingKind::StarvedWriter { .. }
        | FindingKind::AllocatorContention { .. }
        | FindingKind::InterpreterLock { .. }
        | FindingKind::MemoryMapLock { .. }
        | FindingKind::LateAtBarrier { .. }
        | FindingKind::MutualWaits { .. }
        | FindingKind::SlowPeer { .. }
        | FindingKind::DelayedAcknowledgements { .. }
        | FindingKind::Polling { .. }
        | FindingKind::IdleTimer { .. }
        | FindingKind::SleepingStage { .. }
        | FindingKind::EventLoopHeldUp { .. } => ("waits", group),
        FindingKind::LimitingStage { .. } => ("waits", String::new()),
        FindingKind::ManyTinyCalls { .. }
        | FindingKind::Spinning { .. }
        | FindingKind::MadeAgain { .. }
        | FindingKind::NameResolution { .. }
        | FindingKind::SlowLoading { .. } => ("tree", group + &api),
        FindingKind::ShortThreads { .. } => ("tree", api.trim_start().to_owned()),
        FindingKind::SmallTransfers { .. }
        | FindingKind::Syncing { .. }
        | FindingKind::LookedUpAgain { .. }
        | FindingKind::MappingChurn { .. } => ("syscalls", api.trim_start().to_owned()),
        FindingKind::SlowStart { own_ns, calls_ns, .. } if own_ns >= calls_ns => {
            ("hot", String::new())
        }
        FindingKind::Exceptions { .. } => ("hot", String::new()),
        FindingKind::SlowStart { .. } => ("tree", group),
        FindingKind::ShortProcesses { .. } => ("", String::new()),
    };
    words(report, view, &filters)
}

/// The command that shows the same recording in another view.
pub(crate) fn view_command(report: &Report, view: &str) -> String {
    words(report, view, "")
}

fn words(report: &Report, view: &str, filters: &str) -> String {
    let recording = recording(report);
    let words = ["chase-report", view, &recording, filters];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The words that lead to the same recording, as it was asked for here.
fn recording(report: &Report) -> String {
    let given = |path: &std::path::PathBuf| quoted(&path.display().to_string());
    let mut words: Vec<String> = report.paths.iter().map(given).collect();
    match report.runs {
        Runs::Nth(1) => {}
        Runs::Nth(number) => words.push(format!("--run {number}")),
        Runs::All if report.paths.len() > 1 => {}
        Runs::All => words.push("--run all".to_owned()),
    }
    if let Some(pid) = report.process {
        words.push(format!("--process {pid}"));
    }
    words.join(" ")
}

/// For a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+.:/@,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn shells_take_it_as_it_is() {
        assert_eq!(quoted("app+0x1a40"), "app+0x1a40");
        assert_eq!(quoted("it's a $HOME"), r"'it'\''s a $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
