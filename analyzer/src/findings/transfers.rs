//! Reads and writes of few bytes at a time.

use super::{Evidence, Finding, FindingKind, files, uses};
use crate::arguments::ArgumentUnit;
use crate::clock::Ns;
use crate::watched::FileKind;

/// Transfers with fewer bytes than this on average are small: those of a page take no longer.
const SMALL_BYTES: f64 = 512.0;
/// Fewer calls are not many.
const MANY: u64 = 1_000;
/// The part of the calls that ask for the usual size.
const NEARLY_ALL: f64 = 0.9;

/// `read`, `write` and similar.
const TRANSFERS: &[u32] = &[0, 1, 17, 18, 19, 20, 295, 296, 327, 328];

/// Finds reads or writes of few bytes at a time.
pub(super) fn small(evidence: &Evidence<'_>) -> Option<Finding> {
    let is_small = |one: &uses::Use<'_>| {
        one.calls >= MANY && one.mean_bytes().is_some_and(|bytes| bytes <= SMALL_BYTES)
    };
    let uses = uses::of(evidence, TRANSFERS).into_iter().filter(is_small);
    let one = uses.max_by(|a, b| a.cpu_ns.total_cmp(&b.cpu_ns))?;
    let (thread, saves_ns) = one.busiest()?;
    let file = files::most_used(evidence, one.group, &[one.number])?;
    if !matches!(file.kind, FileKind::File | FileKind::Pipe)
        || !evidence.is_material_to(thread, saves_ns)
    {
        return None;
    }
    let kind = FindingKind::SmallTransfers {
        syscall: one.syscall.to_owned(),
        calls: one.calls,
        mean_bytes: one.mean_bytes()?,
        usual_bytes: one.api.and_then(|api| usual_size(evidence, api)),
        all_ns: Ns::from_f64(one.cpu_ns),
        of: file.kind,
    };
    let finding = evidence.finding(one.group, vec![thread], one.api, saves_ns, kind);
    let waits = |row: &_| files::is_transfer(row, &[one.number]);
    let blame = files::of_file(evidence, (one.group, one.api), Some(file), waits);
    Some(Finding { blame, ..finding })
}

/// Returns the size that nearly all calls have as their argument, as the lower bound of a power-of-two range.
fn usual_size(evidence: &Evidence<'_>, api: u32) -> Option<u64> {
    let argument = evidence.analysis.apis[api as usize].argument.as_ref()?;
    let most = argument.sizes.iter().max_by_key(|sizes| sizes.calls)?;
    let is_usual = most.calls as f64 >= NEARLY_ALL * argument.calls as f64;
    (is_usual && argument.unit == ArgumentUnit::Bytes).then_some(most.from)
}
