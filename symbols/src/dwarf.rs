//! Functions, files and lines from DWARF.

use std::path::Path;

use addr2line::Loader;

use crate::demangle::demangle;
use crate::location::Frame;

/// The debug information of one object.
pub(crate) struct Dwarf {
    loader: Loader,
}

impl Dwarf {
    /// Maps the file at `path`. `alternate` is the file that `.gnu_debugaltlink` names; without
    /// it, names that dwz moved there are missing.
    pub(crate) fn open(path: &Path, alternate: Option<&Path>) -> Result<Self, String> {
        let loader = Loader::new_with_sup(path, alternate).map_err(|error| error.to_string())?;
        Ok(Self { loader })
    }

    /// The functions at `svma`, the innermost inlined one first; empty when nothing is known.
    pub(crate) fn frames(&self, svma: u64) -> Vec<Frame> {
        // No code is there, and what looks for it adds one.
        if svma == u64::MAX {
            return Vec::new();
        }
        let mut out = Vec::new();
        let Ok(mut frames) = self.loader.find_frames(svma) else { return self.line(svma) };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            out.push(Frame {
                function: function.map(|name| demangle(&name).into_owned()),
                file: frame.location.as_ref().and_then(|place| place.file.map(str::to_owned)),
                line: frame.location.as_ref().and_then(|place| place.line),
            });
        }
        out
    }

    /// File and line alone, which are there even where the entries of functions can't be read.
    fn line(&self, svma: u64) -> Vec<Frame> {
        let Ok(Some(place)) = self.loader.find_location(svma) else { return Vec::new() };
        let file = place.file.map(str::to_owned);
        vec![Frame { function: None, file, line: place.line }]
    }
}
