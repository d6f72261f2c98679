//! Programs as large as a browser, in assembly: a compiler would take a minute for them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{in_parallel, write};
use crate::programs::gcc;

pub(super) const OBJECTS: usize = 300;
/// Functions that each object exports; it imports as many.
pub(super) const FUNCTIONS: usize = 334;
/// As many objects each one imports from.
pub(super) const PROVIDERS: usize = 10;
/// Between one of them and the next.
const APART: usize = 29;

/// A program of `objects` libraries that are bound at their first calls (`lazy`), or at the start
/// (`now`).
pub(super) fn build(directory: &Path, objects: usize, binding: &str) -> Result<PathBuf> {
    let binding = format!("-Wl,-z,{binding}");
    let libraries: Vec<usize> = (0..objects).collect();
    in_parallel(&libraries, |&object| {
        let source = format!("large{object}.s");
        write(directory, &source, &library(object, objects))?;
        let output = format!("liblarge{object}.so");
        gcc(directory, &["-shared", "-nostdlib", &binding, &source, "-o", &output])
    })?;
    write(directory, "large.c", &program())?;
    let output = directory.join("large");
    let mut arguments = vec!["large.c".to_owned(), "-o".to_owned(), output.display().to_string()];
    arguments.extend(["-L.".to_owned(), "-Wl,-rpath,$ORIGIN,--no-as-needed".to_owned(), binding]);
    arguments.extend(libraries.iter().map(|object| format!("-llarge{object}")));
    gcc(directory, &arguments)?;
    Ok(output)
}

/// As long as names in C++ are.
fn name(object: usize, function: usize) -> String {
    format!("_ZN7program9object{object:03}11function{function:03}EPKcmRSt6vectorIiSaIiEE")
}

fn library(object: usize, objects: usize) -> String {
    let mut text = String::from("\t.text\n");
    for function in 0..FUNCTIONS {
        let provider = (object + APART * (1 + function % PROVIDERS)) % objects;
        let (own, other) = (name(object, function), name(provider, function));
        // Nothing is called, as the argument is 0. Writing to a String can't fail.
        let _ = writeln!(
            text,
            "\t.globl {own}\n\t.type {own}, @function\n{own}:\n\t\
             testl %edi, %edi\n\tje 1f\n\tjmp {other}@PLT\n1:\tret\n\t.size {own}, . - {own}"
        );
    }
    text.push_str("\t.section .note.GNU-stack, \"\", @progbits\n");
    text
}

fn program() -> String {
    let function = name(0, 0);
    // It must not end without a library call of its own.
    format!(
        "#include <stdlib.h>\nvoid {function}(int);\n\
         int main(void) {{\n\t{function}(0);\n\treturn atoi(\"0\");\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, Under};

    #[test]
    fn programs_of_both_bindings_end_well() {
        let bench = Bench::new(PathBuf::new(), 1.0).unwrap();
        let directory = bench.directory("large").unwrap();
        for binding in ["lazy", "now"] {
            let program = build(&directory, 3, binding).unwrap();
            bench.run(Under::Nothing, &[&program]).unwrap();
        }
    }
}
