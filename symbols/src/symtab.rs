//! Symbol tables: which function, or which variable, an address lies in.

use object::{Object, ObjectSymbol, ReadRef, SymbolKind};

use crate::go::GoFunction;
use crate::location::Source;

/// Rank of a symbol of which only the address is known, above those of all that have a type.
const UNTYPED: u8 = 4;

/// The functions, or the variables, of one object, from all the symbol tables that are known of it.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    has_variables: bool,
    /// By address, the best name for one address first.
    functions: Vec<Function>,
    /// For each function, the furthest end of it and all before it: how far back to look.
    furthest_end: Vec<u64>,
}

#[derive(Debug)]
struct Function {
    svma: u64,
    /// 0: only the address itself is known to be its.
    len: u64,
    rank: u8,
    source: Source,
    name: Box<str>,
}

impl SymbolTable {
    /// One for variables instead of functions.
    pub(crate) fn of_variables() -> Self {
        Self { has_variables: true, ..Self::default() }
    }

    /// Adds what is in both symbol tables of `file`.
    pub(crate) fn add<'data, R: ReadRef<'data>>(&mut self, file: &object::File<'data, R>) {
        let what = self.has_variables;
        self.functions.extend(functions(file.symbols(), Source::SymbolTable, what));
        self.functions.extend(functions(file.dynamic_symbols(), Source::DynamicSymbols, what));
        self.index();
    }

    /// Adds what Go's runtime knows of its functions. Symbols, where there are some, say the same.
    pub(crate) fn add_go(&mut self, functions: Vec<GoFunction>) {
        let functions = functions.into_iter().map(|GoFunction { svma, len, name }| Function {
            svma,
            len,
            rank: UNTYPED * 2,
            source: Source::GoTable,
            name: name.into(),
        });
        self.functions.extend(functions.filter(|_| !self.has_variables));
        self.index();
    }

    fn index(&mut self) {
        self.functions.sort_by(|a, b| {
            let key = |f: &Function| (f.svma, f.rank, underscores(&f.name), f.name.len());
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        self.functions.dedup_by(|a, b| (a.svma, a.len, &a.name) == (b.svma, b.len, &b.name));
        let furthest = |end: &mut u64, function: &Function| {
            *end = (*end).max(function.svma.saturating_add(function.len));
            Some(*end)
        };
        self.furthest_end = self.functions.iter().scan(0, furthest).collect();
    }

    /// The innermost function that `svma` lies in: its name and where that is from.
    pub(crate) fn find(&self, svma: u64) -> Option<(&str, Source)> {
        self.at(svma).map(|function| (&*function.name, function.source))
    }

    /// The same: where it starts, how long it is, and its name.
    pub(crate) fn find_range(&self, svma: u64) -> Option<(u64, u64, &str)> {
        self.at(svma).map(|function| (function.svma, function.len, &*function.name))
    }

    fn at(&self, svma: u64) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.svma <= svma);
        let mut found: Option<&Function> = None;
        for at in (0..end).rev() {
            let function = &self.functions[at];
            if found.is_some_and(|found| found.svma != function.svma)
                || self.furthest_end[at] <= svma
            {
                break;
            }
            if svma - function.svma < function.len {
                // Going backwards, the last of those at one address is the best.
                found = Some(function);
            }
        }
        let start = self.functions.partition_point(|function| function.svma < svma);
        let without_size = || self.functions[start..end].first();
        found.or_else(without_size)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

fn functions<'data>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'data>>,
    source: Source,
    has_variables: bool,
) -> impl Iterator<Item = Function> {
    symbols.filter_map(move |symbol| {
        let wanted = match symbol.kind() {
            SymbolKind::Data => has_variables,
            SymbolKind::Text | SymbolKind::Unknown => !has_variables,
            _ => false,
        };
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        if !wanted || symbol.is_undefined() {
            return None;
        }
        // Typed before untyped, exported before weak before local.
        let untyped = u8::from(symbol.kind() == SymbolKind::Unknown) * UNTYPED;
        let binding = if symbol.is_local() { 2 } else { u8::from(symbol.is_weak()) };
        let (svma, len) = (symbol.address(), symbol.size());
        Some(Function { svma, len, rank: untyped + binding, source, name: name.into() })
    })
}

fn underscores(name: &str) -> usize {
    name.len() - name.trim_start_matches('_').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: &[(u64, u64, u8, &str)]) -> SymbolTable {
        let source = Source::SymbolTable;
        let function = |&(svma, len, rank, name): &(u64, u64, u8, &str)| Function {
            svma,
            len,
            rank,
            source,
            name: name.into(),
        };
        let functions = functions.iter().map(function).collect();
        let mut table = SymbolTable { functions, ..SymbolTable::default() };
        table.index();
        table
    }

    fn name(table: &SymbolTable, svma: u64) -> Option<&str> {
        table.find(svma).map(|found| found.0)
    }

    #[test]
    fn only_within_the_size() {
        let table = table(&[(0x100, 0x10, 0, "a"), (0x120, 0, 4, "label"), (0x130, 0x10, 0, "b")]);
        assert_eq!(name(&table, 0xff), None);
        assert_eq!(name(&table, 0x100), Some("a"));
        assert_eq!(name(&table, 0x10f), Some("a"));
        assert_eq!(name(&table, 0x110), None);
        assert_eq!(name(&table, 0x120), Some("label"));
        assert_eq!(name(&table, 0x121), None);
        assert_eq!(name(&table, 0x13f), Some("b"));
        assert_eq!(name(&table, u64::MAX), None);
    }

    #[test]
    fn the_best_alias_and_the_innermost_function() {
        let table = table(&[
            (0x100, 0x100, 0, "outer"),
            (0x120, 0x10, 2, "__GI_inner"),
            (0x120, 0x10, 0, "__inner"),
            (0x120, 0x10, 0, "inner"),
            (0x128, 0, 4, "label"),
            (0x1f0, u64::MAX, 0, "endless"),
        ]);
        assert_eq!(name(&table, 0x110), Some("outer"));
        assert_eq!(name(&table, 0x12f), Some("inner"));
        assert_eq!(name(&table, 0x128), Some("inner"));
        assert_eq!(name(&table, 0x130), Some("outer"));
        assert_eq!(name(&table, u64::MAX - 1), Some("endless"));
    }
}
