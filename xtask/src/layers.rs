//! `cargo xtask layers`: no module imports, by any way round, what imports it.
//!
//! Modules beside each other, in one folder, are the nodes; where something within one of them names something within
//! another, there is an edge. A folder's own file is above what the folder holds: it may use that, and what it
//! re-exports counts as what it was at first. An import of tests alone counts for nothing.

mod modules;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::run::{Outcome, root, say};
use modules::{Import, Modules};

/// Looks at each crate, and fails if modules of one import each other in a circle.
pub(crate) fn check() -> Outcome {
    say("Looking for circles among the modules of each crate");
    let mut circles = String::new();
    let mut roots = Vec::new();
    crate_roots(&root(), &mut roots).map_err(|error| format!("reading the folders: {error}"))?;
    for file in roots {
        let modules = Modules::read(&file)?;
        for circle in circles_of(&modules.imports()) {
            let shown = file.strip_prefix(root()).unwrap_or(&file).display();
            let _ = write!(circles, "\n{shown}: {circle}");
        }
    }
    if circles.is_empty() { Ok(()) } else { Err(format!("modules import each other:{circles}")) }
}

/// The first files of all crates beneath a folder: `src/lib.rs` and `src/main.rs`.
fn crate_roots(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if !entry.file_type()?.is_dir() || name == "target" || name.as_encoded_bytes()[0] == b'.' {
            continue;
        }
        if path.join("../Cargo.toml").exists() && name == "src" {
            let files = ["lib.rs", "main.rs"].map(|file| path.join(file));
            into.extend(files.into_iter().filter(|file| file.exists()));
        } else {
            crate_roots(&path, into)?;
        }
    }
    into.sort();
    Ok(())
}

/// Each circle, in words: its modules, and one import for each pair of them.
fn circles_of(imports: &[Import]) -> Vec<String> {
    let mut folders: BTreeMap<&[String], BTreeMap<(&str, &str), &Import>> = BTreeMap::new();
    for import in imports {
        let common = import.from.iter().zip(&import.to).take_while(|(from, to)| from == to).count();
        // Whatever is beneath a folder's own file is its own affair.
        if let (Some(from), Some(to)) = (import.from.get(common), import.to.get(common)) {
            folders.entry(&import.from[..common]).or_default().entry((from, to)).or_insert(import);
        }
    }
    let mut circles = Vec::new();
    for (folder, edges) in folders {
        let graph: DiGraphMap<&str, ()> = edges.keys().map(|(from, to)| (*from, *to, ())).collect();
        for mut component in tarjan_scc(&graph) {
            if component.len() < 2 {
                continue;
            }
            component.sort_unstable();
            let mut circle = format!("in {}: {}", shown(folder), component.join(", "));
            let within = |module| component.binary_search(module).is_ok();
            for ((from, to), import) in &edges {
                if within(from) && within(to) {
                    let Import { file, line, .. } = import;
                    let _ = write!(circle, "\n    {from} → {to} ({file}:{line})");
                }
            }
            circles.push(circle);
        }
    }
    circles
}

fn shown(folder: &[String]) -> String {
    if folder.is_empty() { "the crate".to_owned() } else { folder.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("layers-{}", std::process::id()));
        let folder = folder.join(files.len().to_string()).join(files[0].1.len().to_string());
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        let modules = Modules::read(&folder.join(files[0].0)).expect("read");
        std::fs::remove_dir_all(&folder).expect("removable");
        circles_of(&modules.imports())
    }

    #[test]
    fn a_circle_is_found_through_uses_paths_and_macros() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "mod inner; pub struct B;"),
            ("b/inner.rs", "fn f() -> i32 { super::super::c::f() }"),
            ("c.rs", "fn f() { println!(\"{}\", crate::a::X); }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a, b, c"), "{found:?}");
    }

    #[test]
    fn what_a_root_re_exports_is_where_it_was_defined() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; pub use a::{A, inner::Deep as Deeper}; pub use b::*;"),
            ("a.rs", "pub mod inner { use crate::B; pub struct Deep; } pub struct A;"),
            ("b.rs", "use crate::Deeper; pub struct B;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn one_way_imports_parents_and_tests_are_no_circle() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; pub struct Root;"),
            ("a.rs", "use crate::{Root, b::B}; mod c { use super::A; } use c::C; pub struct A;"),
            ("b.rs", "use super::Root; #[cfg(test)] mod tests { use crate::a::A; } struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
