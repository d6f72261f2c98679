//! The modules of a crate, and which names of the crate each of them uses.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, UseTree};

/// Where a module stands in its crate: the names on the way from the root, which has none.
type Place = Vec<String>;

/// That a module uses something that is in another.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) from: Place,
    pub(super) to: Place,
    /// The file's name, and the line, counted from 1.
    pub(super) file: String,
    pub(super) line: usize,
}

/// A name that a module takes from elsewhere, as it is written.
struct Used {
    /// From `crate`, `self`, `super`, or a name that the module knows.
    path: Vec<String>,
    /// What it is called here; none for all that is in it (`*`).
    name: Option<String>,
    line: usize,
}

#[derive(Default)]
struct Module {
    file: String,
    /// `use` declarations: they give the module names.
    uses: Vec<Used>,
    /// Other paths that begin with `crate`, `self` or `super`.
    paths: Vec<Used>,
}

/// All modules of a crate.
pub(super) struct Modules(BTreeMap<Place, Module>);

impl Modules {
    /// Reads a crate, from its `lib.rs` or `main.rs`.
    ///
    /// # Errors
    ///
    /// If a file is not there, can't be read, or is no Rust; in words.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut modules = Self(BTreeMap::new());
        modules.read_file(root, Vec::new(), root.parent().unwrap_or(root))?;
        Ok(modules)
    }

    /// `folder` is where the files of the modules are that this one declares.
    fn read_file(&mut self, file: &Path, place: Place, folder: &Path) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| said(&error))?;
        let parsed = syn::parse_file(&text).map_err(|error| said(&error))?;
        let tokens: TokenStream = text.parse().map_err(|error| said(&error))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.0.insert(place.clone(), Module { file: name, ..Module::default() });
        self.read_items(parsed.items, &place, folder)?;
        self.note_paths(tokens, &place);
        Ok(())
    }

    fn read_items(&mut self, items: Vec<Item>, place: &Place, folder: &Path) -> Result<(), String> {
        for item in items {
            match item {
                Item::Use(item) => {
                    let line = item.use_token.span.start().line;
                    let module = self.0.get_mut(place).expect("it was put there");
                    note_uses(&item.tree, &mut Vec::new(), line, &mut module.uses);
                }
                Item::Mod(item) if !item.attrs.iter().any(for_tests) => {
                    let name = item.ident.to_string();
                    let beneath = beneath(place, &name);
                    let folder = folder.join(&name);
                    if let Some((_, items)) = item.content {
                        let file = self.0[place].file.clone();
                        self.0.insert(beneath.clone(), Module { file, ..Module::default() });
                        self.read_items(items, &beneath, &folder)?;
                    } else if let Some(path) = item.attrs.iter().find_map(path_attribute) {
                        let file = folder.with_file_name(path);
                        self.read_file(&file, beneath, &folder)?;
                    } else {
                        let file: PathBuf = folder.with_extension("rs");
                        let file = if file.exists() { file } else { folder.join("mod.rs") };
                        self.read_file(&file, beneath, &folder)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes paths such as `crate::a::f`, wherever they stand, in macros too. (Those of modules within a file are
    /// noted for the file, which is the same unless such modules import each other.)
    fn note_paths(&mut self, tokens: TokenStream, place: &Place) {
        let mut tokens = tokens.into_iter().peekable();
        let mut testing = false;
        while let Some(token) = tokens.next() {
            match token {
                // An attribute: `#[cfg(test)]` holds for what follows, up to its braces or its semicolon.
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.peek() {
                        testing |= group.stream().to_string().replace(' ', "") == "cfg(test)";
                        tokens.next();
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => testing = false,
                TokenTree::Group(group) => {
                    if !testing {
                        self.note_paths(group.stream(), place);
                    }
                    testing &= group.delimiter() != proc_macro2::Delimiter::Brace;
                }
                TokenTree::Ident(ident) if is_start(&ident.to_string()) => {
                    let line = ident.span().start().line;
                    let mut path = vec![ident.to_string()];
                    while let Some(TokenTree::Punct(colon)) = tokens.peek() {
                        if colon.as_char() != ':' || colon.spacing() != proc_macro2::Spacing::Joint
                        {
                            break;
                        }
                        tokens.next();
                        tokens.next();
                        match tokens.peek() {
                            Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
                            _ => break,
                        }
                        tokens.next();
                    }
                    if path.len() > 1 && !testing {
                        let module = self.0.get_mut(place).expect("it was put there");
                        module.paths.push(Used { path, name: None, line });
                    }
                }
                _ => {}
            }
        }
    }

    /// Everything that a module uses of another, the root's own names left out.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (from, module) in &self.0 {
            for used in module.uses.iter().chain(&module.paths) {
                if let Some(to) = self.home(from, &used.path, &mut HashSet::new()) {
                    let (file, line) = (module.file.clone(), used.line);
                    imports.push(Import { from: from.clone(), to, file, line });
                }
            }
        }
        imports
    }

    /// The module that defines what a path names, as seen in the module `from`; none if that is in another crate.
    fn home(&self, from: &Place, path: &[String], seen: &mut HashSet<Place>) -> Option<Place> {
        let mut place = from.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                place.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    place.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                self.named(from, first)?;
            }
        }
        while let Some(name) = rest.first() {
            let beneath = beneath(&place, name);
            if self.0.contains_key(&beneath) {
                place = beneath;
                rest = &rest[1..];
                continue;
            }
            // Is it only passed on here?
            if !seen.insert(beneath) {
                return Some(place);
            }
            let Some(used) = self.passed_on(&place, name) else { return Some(place) };
            let mut path = used.path.clone();
            if used.name.is_some() {
                path.extend_from_slice(&rest[1..]);
            } else {
                path.extend_from_slice(rest);
            }
            return self.home(&place, &path, seen).or(Some(place));
        }
        Some(place)
    }

    /// If a module knows a name that a path may begin with: a module in it, or one that it uses.
    fn named(&self, from: &Place, name: &str) -> Option<()> {
        let uses = &self.0[from].uses;
        let brought = |used: &Used| used.name.as_deref() == Some(name) && used.path[0] != name;
        (self.0.contains_key(&beneath(from, name)) || uses.iter().any(brought)).then_some(())
    }

    /// The declaration by which a module has a name from elsewhere in the crate: by that name, or, where it has none
    /// of that name, from the one module that it takes all names of.
    fn passed_on(&self, place: &Place, name: &str) -> Option<&Used> {
        let uses = &self.0[place].uses;
        let by_name = uses.iter().find(|used| used.name.as_deref() == Some(name));
        by_name.or_else(|| {
            let within = |name: &str| is_start(name) || self.0.contains_key(&beneath(place, name));
            let mut globs = uses.iter().filter(|used| used.name.is_none() && within(&used.path[0]));
            globs.next().filter(|_| globs.next().is_none())
        })
    }
}

fn beneath(place: &Place, name: &str) -> Place {
    let mut place = place.clone();
    place.push(name.to_owned());
    place
}

/// What begins a path that surely is within the crate.
fn is_start(name: &str) -> bool {
    matches!(name, "crate" | "self" | "super")
}

fn for_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
}

/// What `#[path = "…"]` says.
fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(value) = &attribute.meta else { return None };
    let syn::Expr::Lit(literal) = &value.value else { return None };
    match &literal.lit {
        syn::Lit::Str(path) if value.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

fn note_uses(tree: &UseTree, before: &mut Vec<String>, line: usize, into: &mut Vec<Used>) {
    let mut note = |last: Option<String>, name: Option<String>| {
        let path = before.iter().cloned().chain(last).collect();
        into.push(Used { path, name, line });
    };
    match tree {
        UseTree::Name(leaf) if leaf.ident == "self" => note(None, before.last().cloned()),
        UseTree::Name(leaf) => note(Some(leaf.ident.to_string()), Some(leaf.ident.to_string())),
        UseTree::Rename(leaf) => note(Some(leaf.ident.to_string()), Some(leaf.rename.to_string())),
        UseTree::Glob(_) => note(None, None),
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            note_uses(&path.tree, before, line, into);
            before.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                note_uses(tree, before, line, into);
            }
        }
    }
}
