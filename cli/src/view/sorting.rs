//! Rows in the order that is asked for.

use std::cmp::Reverse;

use chase_analyzer::{Measures, Ns};

use crate::args::{Sort, SortArg};

/// Sorts `rows`; equals, and all where nothing is asked for, stay as they are.
pub(super) fn sort<T>(
    rows: &mut [T],
    by: SortArg,
    measures: impl Fn(&T) -> &Measures,
    name: impl Fn(&T) -> String,
) {
    let Some(by) = by.sort else { return };
    let known = |time: Option<Ns>| time.map_or(0, |time| time.0);
    let figure = |row: &T| {
        let of = measures(row);
        match by {
            Sort::Own => of.self_ns.0,
            Sort::Total => of.total_ns.0,
            Sort::Wait => of.wait_ns.0,
            Sort::Calls => of.calls,
            Sort::P50 => known(of.p50_ns),
            Sort::P99 => known(of.p99_ns),
            Sort::P999 => known(of.p999_ns),
            Sort::Max => known(of.max_ns),
            Sort::Name => 0,
        }
    };
    match by {
        Sort::Name => rows.sort_by_key(|row| name(row).to_lowercase()),
        _ => rows.sort_by_key(|row| Reverse(figure(row))),
    }
}
