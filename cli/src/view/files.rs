//! The files that a view wrote.

use std::fs::{self, File};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Map, Value};

use super::Show;
use crate::machine::Rows;
use crate::report::Report;
use crate::terminal::{Terminal, clean};

/// The files that were written.
pub(super) struct Files {
    pub(super) files: Vec<PathBuf>,
}

impl Files {
    /// A file that another view wrote.
    pub(super) fn written(file: PathBuf) -> Self {
        Self { files: if is_standard_output(&file) { Vec::new() } else { vec![file] } }
    }
}

impl Show for Files {
    const NAME: &'static str = "charts";

    fn text(&self, _: &Report, _: Terminal, _: usize) -> anyhow::Result<String> {
        let line = |file: &PathBuf| format!("{}\n", clean(&file.display().to_string()));
        Ok(self.files.iter().map(line).collect())
    }

    fn tables(&self, _: &Report, _: usize) -> anyhow::Result<Vec<Rows>> {
        let row = |file: &PathBuf| {
            let path = Value::from(file.display().to_string());
            Map::from_iter([("file".to_owned(), path)])
        };
        let rows = self.files.iter().map(row).collect();
        Ok(vec![Rows { name: "files", columns: vec!["file"], rows }])
    }
}

fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes a file that was asked for; `-` is standard output. A part of a file, where the disk is full, would be taken for the whole: it is
/// removed.
pub(super) fn save(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if is_standard_output(path) {
        return stdout().lock().write_all(bytes).context("cannot write to standard output");
    }
    let mut file =
        File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(bytes).with_context(|| {
        if path.is_file() {
            let _ = fs::remove_file(path);
        }
        format!("cannot write {}", path.display())
    })
}
