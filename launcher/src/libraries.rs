//! The libraries of a program: those that it is loaded with, and names of those that it may open later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::elf::{self, Kind, Program};

/// The dynamic linker whose list is asked for; one that a file names could be anything.
const LINKER: &str = "/lib64/ld-linux-x86-64.so.2";
/// So many names are shown.
const SHOWN: usize = 8;

/// What the files of a program and of its libraries tell.
pub(crate) struct Libraries {
    /// Those that it is loaded with, as far as that can be told: the names of the files.
    pub(crate) loaded: Vec<String>,
    /// Functions that these call through the PLT, in other objects.
    pub(crate) called: u64,
    /// What imports `dlopen`: "the program", or the name of a library.
    pub(crate) openers: Vec<String>,
    /// Names of libraries that these have among their texts.
    pub(crate) named: BTreeSet<String>,
}

impl Libraries {
    /// Of the program in `path`. Nothing of it is run.
    pub(crate) fn used_by(path: &Path, program: &Program) -> Self {
        let mut this =
            Self { loaded: Vec::new(), called: 0, openers: Vec::new(), named: BTreeSet::new() };
        this.add_opener("the program", program);
        for library in listed(path, program) {
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_linker = Path::new(LINKER).file_name() == library.file_name();
            // (glibc opens what /etc/nsswitch.conf and locales name.)
            let is_glibc = name == "libc.so.6";
            if let Ok(Kind::Program(found)) = elf::read(&library)
                && !is_linker
            {
                this.called += found.called;
                if !is_glibc {
                    this.add_opener(&name, &found);
                }
            }
            this.loaded.push(name);
        }
        this.named.retain(|name| !this.loaded.contains(name) && !program.needed.contains(name));
        this
    }

    fn add_opener(&mut self, name: &str, program: &Program) {
        if program.opens_libraries() {
            self.openers.push(name.to_owned());
            self.named.extend(program.named_libraries.iter().cloned());
        }
    }

    /// What is loaded with the program, for people.
    pub(crate) fn loaded_row(&self, program: &Program) -> String {
        match self.loaded.len() {
            0 => format!("libraries: {}", program.needed.join(", ")),
            all => format!(
                "libraries: {}; with those that these need, {all}, which call {} functions of each other through the PLT",
                program.needed.join(", "),
                self.called
            ),
        }
    }

    /// What may be opened later.
    pub(crate) fn opened_row(&self) -> String {
        const HOOKED: &str = "hooked when they are loaded, but for what their constructors call";
        if self.openers.is_empty() && self.loaded.is_empty() {
            return format!("its libraries were not looked at; what they open later is {HOOKED}");
        }
        if self.openers.is_empty() {
            return format!("no library calls dlopen; what glibc opens by itself is {HOOKED}");
        }
        let by = list(self.openers.iter());
        let named = match self.named.is_empty() {
            true => "no names of libraries are in these files".to_owned(),
            false => format!("names in these files: {}", list(self.named.iter())),
        };
        format!("libraries may be opened later (dlopen) by {by}; {named}; they are {HOOKED}")
    }
}

/// Some of the names, and how many there are more.
fn list<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<&str> = names.take(SHOWN).map(String::as_str).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The files that the dynamic linker would load. It maps them to tell, and runs none of their code.
fn listed(path: &Path, program: &Program) -> Vec<PathBuf> {
    if program.interpreter.as_deref() != Some(Path::new(LINKER)) {
        return Vec::new();
    }
    // (A path without a slash would be looked for among libraries.)
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let mut command = Command::new(LINKER);
    command.arg("--list").arg(path).env_remove("LD_PRELOAD").env_remove("LD_AUDIT");
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(path_in).collect()
}

/// `libz.so.1 => /lib/libz.so.1 (0x...)`, or a path alone.
fn path_in(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    let found = line.split_once(" => ").map_or(line, |(_, found)| found);
    let (path, _) = found.rsplit_once(" (0x")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_the_list() {
        let of = |line| path_in(line).map(|path| path.display().to_string());
        assert_eq!(
            of("\tlibz.so.1 => /lib/a b/libz.so.1 (0x00007f)").as_deref(),
            Some("/lib/a b/libz.so.1")
        );
        assert_eq!(of("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)").as_deref(), Some(LINKER));
        assert_eq!(of("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(of("\tlibno.so => not found"), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..10).map(|n| format!("lib{n}")).collect();
        assert!(list(names.iter()).ends_with("lib7 and 2 more"));
        assert_eq!(list(names[..2].iter()), "lib0, lib1");
    }
}
