//! Makes the labels of groups unique.

use std::collections::HashMap;

use super::key::place_label;
use super::rows::GroupRow;
use crate::analysis::Analysis;

/// Appends to equal labels what distinguishes their groups: the source line, or, where that is none of the program's, the thread's name; the executable, the
/// creation site, and, as a last resort, a number.
pub(super) fn tell_apart(analysis: &Analysis, rows: &mut [GroupRow]) {
    type Tell = fn(&Analysis, &GroupRow) -> Option<String>;
    let tells: [Tell; 4] = [
        |_, row| row.source.as_ref().map(|source| format!("at {source}")).or_else(|| name(row)),
        |_, row| name(row),
        |_, row| Some(format!("of {}", row.program)),
        |analysis, row| {
            let site = row.creation_site.as_ref()?;
            Some(format!("from {}", place_label(analysis, site)))
        },
    ];
    for tell in tells {
        for same in same_label(rows) {
            let more: Vec<_> = same.iter().map(|&at| tell(analysis, &rows[at])).collect();
            if more.iter().any(|text| *text != more[0]) {
                for (at, text) in same.into_iter().zip(more) {
                    let text = text.map(|text| format!(" {text}")).unwrap_or_default();
                    rows[at].label.push_str(&text);
                }
            }
        }
    }
    for same in same_label(rows) {
        for (number, at) in (1..).zip(same) {
            rows[at].label.push_str(&format!(" #{number}"));
        }
    }
}

/// The name that the threads of a group have.
fn name(row: &GroupRow) -> Option<String> {
    (!row.name.is_empty()).then(|| format!("“{}”", row.name))
}

/// Returns the indices of rows with the same label, for each label that several have.
fn same_label(rows: &[GroupRow]) -> Vec<Vec<usize>> {
    let mut by_label: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        by_label.entry(&row.label).or_default().push(at);
    }
    let mut same: Vec<_> = by_label.into_values().filter(|rows| rows.len() > 1).collect();
    same.sort();
    same
}
