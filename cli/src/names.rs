//! What objects and functions are called in tables: short, but never the same for two.

use std::collections::HashMap;

use chase_analyzer::Analysis;
use chase_symbols::{demangle, shorten};

/// The library that records, which samples find at work too.
pub(crate) const OWN: &str = "libchase.so";

/// Names by number in the analysis.
pub(crate) struct Names {
    objects: Vec<String>,
    functions: Vec<Function>,
}

struct Function {
    short: String,
    full: String,
}

/// What executables were started as, by path, unless it was several programs.
fn programs(analysis: &Analysis) -> HashMap<&str, &str> {
    let mut programs: HashMap<&str, Option<&str>> = HashMap::new();
    for process in &analysis.processes {
        let known = programs.entry(&process.executable).or_insert(Some(&process.program));
        *known = known.filter(|known| *known == process.program);
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
                return (*program).to_owned();
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
            Function { short, full }
        };
        Self {
            objects: analysis.objects.iter().map(object_name).collect(),
            functions: analysis.apis.iter().map(function).collect(),
        }
    }

    /// Name of an object.
    pub(crate) fn object(&self, number: u32) -> &str {
        self.objects.get(number as usize).map_or("(unknown)", |name| name)
    }

    /// Short name of a function.
    pub(crate) fn short(&self, api: usize) -> &str {
        self.functions.get(api).map_or("(unknown)", |function| &function.short)
    }

    /// Demangled name of a function, with all there is to it.
    pub(crate) fn full(&self, api: usize) -> &str {
        self.functions.get(api).map_or("(unknown)", |function| &function.full)
    }
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
