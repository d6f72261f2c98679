//! Matches the APIs of one side with those of the other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::analysis::Analysis;

/// An API by its name, which is the same in all recordings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ApiName {
    /// Soname of its library, or the name of the file.
    pub library: String,
    /// Its name in the symbol table.
    pub symbol: String,
}

/// An API of each side; at least one of them exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Before.
    pub before: Option<ApiName>,
    /// After.
    pub after: Option<ApiName>,
}

/// Matches the APIs of two sides by library and symbol, and the remaining ones by symbol alone where that is
/// unambiguous. APIs without a match stand alone.
#[must_use]
pub fn match_apis(before: &[Analysis], after: &[Analysis]) -> Vec<Pair> {
    let (before, after) = (names(before), names(after));
    let both = |name: &&ApiName| after.contains(name);
    let same = before.iter().filter(both);
    let mut pairs: Vec<Pair> =
        same.map(|name| Pair { before: Some(name.clone()), after: Some(name.clone()) }).collect();
    let rest_before: Vec<&ApiName> = before.difference(&after).collect();
    let rest_after: Vec<&ApiName> = after.difference(&before).collect();
    let (only_before, only_after) = (by_symbol(&rest_before), by_symbol(&rest_after));
    let mut matched = BTreeSet::new();
    for name in &rest_before {
        let symbol = plain(&name.symbol);
        let other = match (only_before[symbol].as_slice(), only_after.get(symbol)) {
            ([_], Some(others)) if others.len() == 1 => Some(others[0].clone()),
            _ => None,
        };
        matched.extend(other.clone());
        pairs.push(Pair { before: Some((*name).clone()), after: other });
    }
    let alone = rest_after.into_iter().filter(|name| !matched.contains(*name));
    pairs.extend(alone.map(|name| Pair { before: None, after: Some(name.clone()) }));
    pairs
}

fn names(side: &[Analysis]) -> BTreeSet<ApiName> {
    let called = side.iter().flat_map(|run| &run.apis).filter(|api| api.measures.calls > 0);
    called.map(|api| ApiName { library: api.library.clone(), symbol: api.symbol.clone() }).collect()
}

fn by_symbol<'n>(names: &[&'n ApiName]) -> BTreeMap<&'n str, Vec<&'n ApiName>> {
    let mut by_symbol: BTreeMap<&str, Vec<&ApiName>> = BTreeMap::new();
    for name in names {
        by_symbol.entry(plain(&name.symbol)).or_default().push(name);
    }
    by_symbol
}

/// Removes the hash that Rust's compiler appends to a symbol, which differs between builds.
fn plain(symbol: &str) -> &str {
    const HASH: usize = "17h0123456789abcdefE".len();
    let Some(at) = symbol.len().checked_sub(HASH) else { return symbol };
    match symbol.get(at..).and_then(|end| end.strip_prefix("17h")?.strip_suffix('E')) {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => &symbol[..at],
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn the_hash_of_a_build_is_no_part_of_a_name() {
        assert_eq!(plain("_ZN4core3fmt5write17h0123456789abcdefE"), "_ZN4core3fmt5write");
        assert_eq!(plain("_ZN4core3fmt5write17h0123456789abcdegE").len(), 38);
        assert_eq!((plain("malloc"), plain("")), ("malloc", ""));
    }
}
