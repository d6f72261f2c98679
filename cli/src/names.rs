//! What objects and functions are called in tables: short, but never the same for two.

use std::collections::{HashMap, HashSet};

use chase_analyzer::Analysis;
use chase_symbols::{demangle, shorten, shorten_with_parameters, variant};

/// The library that records, which samples find at work too.
pub(crate) const OWN: &str = "libchase.so";

/// Names by number in the analysis.
pub(crate) struct Names {
    objects: Vec<String>,
    functions: Vec<Function>,
}

struct Function {
    object: u32,
    short: String,
    /// That without what tells it from others of its name.
    bare: String,
    full: String,
}

/// What executables were started as, by path, unless it was several programs.
fn programs(analysis: &Analysis) -> HashMap<&str, String> {
    let mut programs: HashMap<&str, Option<String>> = HashMap::new();
    for process in &analysis.processes {
        let name = process.started_as();
        let known = programs.entry(&process.executable).or_insert_with(|| Some(name.clone()));
        known.take_if(|known| *known != name);
    }
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let told = programs.into_iter().filter_map(|(path, program)| Some((path, program?)));
    told.filter(|(path, program)| file(path) != *program).collect()
}

impl Names {
    pub(crate) fn new(analysis: &Analysis) -> Self {
        let mut same_name: HashMap<&str, usize> = HashMap::new();
        for object in &analysis.objects {
            *same_name.entry(&object.name).or_default() += 1;
        }
        let programs = programs(analysis);
        let object_name = |object: &chase_analyzer::ObjectRow| {
            if object.name == OWN {
                return chase_html::CHASE_ITSELF.to_owned();
            }
            if let Some(program) = programs.get(&*object.path).filter(|_| object.executable) {
                return program.clone();
            }
            // Two files with one soname are told apart by their paths.
            let unique = same_name[&*object.name] == 1 || object.path.is_empty();
            if unique { object.name.clone() } else { object.path.clone() }
        };
        let mut versions: HashMap<(u32, &str), usize> = HashMap::new();
        for api in &analysis.apis {
            *versions.entry((api.object, &api.symbol)).or_default() += 1;
        }
        let function = |api: &chase_analyzer::ApiRow| {
            let full = demangle(&api.symbol).into_owned();
            let mut short = shorten(&full).into_owned();
            if versions[&(api.object, &*api.symbol)] > 1 && !api.version.is_empty() {
                short = format!("{short}@{}", api.version);
            }
            Function { object: api.object, bare: short.clone(), short, full }
        };
        let mut functions: Vec<Function> = analysis.apis.iter().map(function).collect();
        tell_apart(&mut functions, |at| variant(&analysis.apis[at].symbol));
        Self { objects: analysis.objects.iter().map(object_name).collect(), functions }
    }

    /// Name of an object.
    pub(crate) fn object(&self, number: u32) -> &str {
        self.objects.get(number as usize).map_or("(unknown)", |name| name)
    }

    /// Short name of a function.
    pub(crate) fn short(&self, api: usize) -> &str {
        self.functions.get(api).map_or("(unknown)", |function| &function.short)
    }

    /// The same where it has no parameters for being told from others of its name: what all of these may be asked for by.
    pub(crate) fn bare(&self, api: usize) -> &str {
        self.functions.get(api).map_or("(unknown)", |function| &function.bare)
    }

    /// Demangled name of a function, with all there is to it.
    pub(crate) fn full(&self, api: usize) -> &str {
        self.functions.get(api).map_or("(unknown)", |function| &function.full)
    }
}

/// Gives functions of one library and one name their parameters, and says of constructors and destructors which they are where
/// even these are the same.
fn tell_apart(functions: &mut [Function], variant: impl Fn(usize) -> Option<&'static str>) {
    let names =
        |function: &Function| (function.object, function.bare.clone(), function.full.clone());
    let told = with_parameters(&functions.iter().map(names).collect::<Vec<_>>());
    for (function, told) in functions.iter_mut().zip(told) {
        function.short = told.unwrap_or_else(|| function.short.clone());
    }
    let mut alike: HashMap<(u32, String), usize> = HashMap::new();
    for function in &*functions {
        *alike.entry((function.object, function.short.clone())).or_default() += 1;
    }
    for (at, function) in functions.iter_mut().enumerate() {
        let is_alike = alike[&(function.object, function.short.clone())] > 1;
        if let Some(variant) = is_alike.then(|| variant(at)).flatten() {
            function.short = format!("{} [{variant}]", function.short);
        }
    }
}

/// The names with parameters of those functions that are called as others of their object are; each of them as its object, a short
/// name and the full one.
pub(crate) fn with_parameters(functions: &[(u32, String, String)]) -> Vec<Option<String>> {
    let mut alike: HashMap<(u32, &str), HashSet<&str>> = HashMap::new();
    for (object, short, full) in functions {
        alike.entry((*object, short)).or_default().insert(full);
    }
    let is_alike = |object: u32, short: &str| alike[&(object, short)].len() > 1;
    let told = |(object, short, full): &(u32, String, String)| {
        is_alike(*object, short).then(|| shorten_with_parameters(full)).flatten()
    };
    functions.iter().map(told).collect()
}

/// Of `names`, the one that is most like `word`, if one is like it.
pub(crate) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const ALIKE: f64 = 0.8;
    let likeness = |name: &str| strsim::jaro_winkler(word, name);
    let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) >= ALIKE).then_some(nearest)
}

/// The end of a message about `word`, which is none of `names`: what may have been meant, if one is like it.
pub(crate) fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    nearest(word, names).map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of a table were `std::locale::locale`.
    #[test]
    fn functions_of_one_name_have_their_parameters() {
        let function = |object, full: &str| {
            let short = shorten(full).into_owned();
            Function { object, bare: short.clone(), short, full: full.to_owned() }
        };
        let mut functions = [
            function(1, "std::locale::locale()"),
            function(1, "std::locale::locale(std::locale const&)"),
            function(1, "std::locale::~locale()"),
            function(2, "std::locale::locale()"),
        ];
        tell_apart(&mut functions, |_| None);
        let short: Vec<&str> = functions.iter().map(|function| &*function.short).collect();
        let told = ["std::locale::locale()", "std::locale::locale(std::locale const&)"];
        assert_eq!(short, [told[0], told[1], "std::locale::~locale", "std::locale::locale"]);
    }

    /// A constructor of a complete object, and that of it as the base of another, were two rows of one name.
    #[test]
    fn constructors_of_one_source_are_told_apart() {
        let function = |symbol: &str| {
            let full = demangle(symbol).into_owned();
            let short = shorten(&full).into_owned();
            Function { object: 1, bare: short.clone(), short, full }
        };
        let symbols =
            ["_ZN1AC1Ev", "_ZN1AC2Ev", "_ZN1BC1Ev", "_ZN1BC2Ei", "_ZN1CD0Ev", "_ZN1CD2Ev"];
        let mut functions = symbols.map(function);
        tell_apart(&mut functions, |at| variant(symbols[at]));
        let short: Vec<&str> = functions.iter().map(|function| &*function.short).collect();
        let told = ["A::A [complete]", "A::A [base]", "B::B()", "B::B(int)"];
        assert_eq!(short[..4], told);
        assert_eq!(short[4..], ["C::~C [deleting]", "C::~C [base]"]);
    }
}
