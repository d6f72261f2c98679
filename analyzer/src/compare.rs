//! Compares two sides: recordings before and after a change, or two APIs of one recording.
//!
//! A side is one run, or several of the same program. APIs are matched by soname and symbol, never by path or
//! address. The remaining APIs are matched by their symbol alone, if each side has it in one library only (so
//! `malloc` of libc is matched with `malloc` of jemalloc).
//!
//! # What counts as a change
//!
//! * With several runs on both sides: a two-sided Mann-Whitney rank test (exact, with mid-ranks for ties) of each
//!   run's mean time per call with a p-value below 5 %. With fewer than four runs on a side (and as many on the
//!   other), no result can be below 5 %, so nothing counts as a change.
//! * With one run on a side, it is unknown how much runs differ. Only a difference counts for which the distributions
//!   of single calls don't overlap: the middle 90 % of the calls of one side, widened by the error of the histogram,
//!   is disjoint from that of the other.
//!
//! Of many APIs tested at 5 %, one in twenty seems changed by chance. So the difference must also be larger than any API's is by chance in
//! nineteen of twenty comparisons (`compare/family.rs`).

mod family;
mod figures;
mod matching;
mod rank;
mod rows;

pub use figures::Parts;
pub use matching::{ApiName, Pair, match_apis};
pub use rows::{
    ApiChange, Basis, Change, Comparison, Metrics, SyscallChange, Totals as TotalChanges, Verdict,
};

use crate::analysis::Analysis;

/// Compares the runs of two sides: as wholes, and each of `pairs`, sorted by the change of self time, largest first.
#[must_use]
pub fn compare(before: &[Analysis], after: &[Analysis], pairs: &[Pair]) -> Comparison {
    rows::compare(before, after, pairs)
}
