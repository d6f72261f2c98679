//! What a report is made from.

use chase_analyzer::{Analysis, CodeAddress, Finding, Groups, Measures, Tails, Timeline};

use super::{CauseOfWait, Parts, Process, Ran, WaitsForWhom};

/// What things are called.
pub trait Names {
    /// Name of an object of the analysis.
    fn object(&self, number: u32) -> &str;
    /// Short name of a function of the analysis, by number of the API.
    fn function(&self, api: usize) -> &str;
    /// Its whole name.
    fn whole_function(&self, api: usize) -> &str;
    /// Name of the function that an address of a process is in, short; an object of the analysis contains it.
    fn code(&self, process: usize, address: &CodeAddress, object: u32) -> String;
    /// A finding in words.
    fn sentence(&self, finding: &Finding) -> Sentence;
}

/// A finding in words, for [`Finding`](super::Finding).
#[derive(Clone, Debug, Default)]
pub struct Sentence {
    /// For [`Finding::claim`](super::Finding::claim).
    pub claim: String,
    /// For [`Finding::evidence`](super::Finding::evidence).
    pub evidence: String,
    /// For [`Finding::gain`](super::Finding::gain).
    pub gain: String,
}

/// What the analyzer found out of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The tables.
    pub analysis: &'a Analysis,
    /// Its threads in groups.
    pub groups: &'a Groups,
    /// The slowest calls of each group.
    pub tails: &'a Tails,
    /// What is worth a sentence.
    pub findings: &'a [Finding],
    /// What happened when.
    pub timeline: &'a Timeline,
}

/// What the analysis doesn't know of a run.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// For [`Header::program`](super::Header::program).
    pub program: String,
    /// For [`Header::command`](super::Header::command).
    pub command: String,
    /// For [`Header::lead`](super::Header::lead).
    pub lead: Vec<(String, String)>,
    /// For [`Header::facts`](super::Header::facts).
    pub facts: Vec<(String, String)>,
    /// For [`Header::incomplete`](super::Header::incomplete).
    pub incomplete: Vec<String>,
    /// For [`Header::gaps`](super::Header::gaps).
    pub gaps: usize,
    /// For [`Header::not_seen`](super::Header::not_seen).
    pub not_seen: Vec<String>,
    /// For [`Header::processes`](super::Header::processes).
    pub processes: Vec<Process>,
    /// For [`Header::more_processes`](super::Header::more_processes).
    pub more_processes: usize,
    /// For [`Report::processor`](super::Report::processor).
    pub processor: Option<Ran>,
    /// For [`Report::causes`](super::Report::causes).
    pub causes: Vec<CauseOfWait>,
    /// For [`Report::waits_for_whom`](super::Report::waits_for_whom).
    pub waits_for_whom: Option<WaitsForWhom>,
    /// For [`Report::parts`](super::Report::parts).
    pub parts: Option<Parts>,
    /// For [`Header::processors`](super::Header::processors).
    pub processors: Option<u64>,
    /// For [`Blocked::idle`](super::Blocked::idle).
    pub idle: String,
    /// For [`Blocked::runnable`](super::Blocked::runnable).
    pub runnable: Option<String>,
}

/// Half the width of the 95 % confidence interval of a self time, ns; `None` where it is no estimate.
pub(super) fn self_error(measures: &Measures) -> Option<f64> {
    measures.estimated.then(|| measures.self_error_ns().unwrap_or_default().as_f64())
}

/// The same of a number of calls.
pub(super) fn calls_error(measures: &Measures) -> Option<f64> {
    measures.calls_estimated.then_some(measures.calls_ci95 as f64)
}
