//! Two sides compared: recordings before and after a change, or two APIs of one recording.
//!
//! A side is one run or several of the same program. APIs are matched by soname and symbol, never
//! by path or address; what is left then by a symbol that each side has in one library only (so
//! `malloc` of libc is matched with `malloc` of jemalloc).
//!
//! # What is called a change
//!
//! * With several runs on both sides, what decides is a two-sided Mann-Whitney rank test over the
//!   runs (exact, with mid-ranks for ties), on each run's mean time per call: below 5 % it is a
//!   change. With fewer than four runs on a side (and as many on the other) no result could be
//!   below 5 %, so none is called a change.
//! * With one run on a side, nobody knows how much runs differ. A change is only told where the
//!   distributions of single calls don't overlap: where the middle 90 % of the calls of one side,
//!   widened by the error of the histogram, lie apart from those of the other.
//!
//! Of many APIs tested at 5 %, one in twenty seems changed by chance.

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

/// Compares the runs of two sides: as wholes, and each of `pairs`. Those whose self time changed
/// most come first.
#[must_use]
pub fn compare(before: &[Analysis], after: &[Analysis], pairs: &[Pair]) -> Comparison {
    rows::compare(before, after, pairs)
}
