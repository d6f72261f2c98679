//! What `path --without` takes out of a run: `KIND:NAME`.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use globset::GlobMatcher;

use super::filters::glob;
use crate::names::did_you_mean;

const WHAT: &str = "what is taken out is lock:NAME, fn:NAME or lib:NAME, as in 'lock:stats_mu'";

/// What a run is thought of without.
#[derive(Args, Debug)]
pub(crate) struct WithoutArg {
    /// What the run would save at most without waits for a lock, or calls of a function or a library:
    /// lock:NAME, fn:NAME or lib:NAME, also with * and ?; may be repeated
    #[arg(long, value_name = "KIND:NAME", conflicts_with_all = ["from", "to"])]
    pub(crate) without: Vec<Piece>,
}

/// A piece as it was typed, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    text: String,
    pub(crate) kind: PieceKind,
    pub(crate) name: String,
    glob: GlobMatcher,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Waits for a lock.
    Lock,
    /// Calls of a function, without the library calls made inside.
    Function,
    /// The same of all functions of a library.
    Library,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Piece {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const KINDS: [(&str, PieceKind); 3] =
            [("lock", PieceKind::Lock), ("fn", PieceKind::Function), ("lib", PieceKind::Library)];
        let (word, name) =
            text.split_once(':').ok_or_else(|| format!("'{text}' has no colon: {WHAT}"))?;
        let kind = KINDS.iter().find(|(known, _)| *known == word);
        let (_, kind) = kind.ok_or_else(|| {
            let meant = did_you_mean(word, KINDS.iter().map(|(known, _)| *known));
            format!("'{word}' is no kind: {WHAT}{meant}")
        })?;
        if name.is_empty() {
            return Err(format!("'{text}' has no name: {WHAT}"));
        }
        // Names in C++ and Rust have brackets and braces.
        let escaped = name.replace('[', "[[]").replace('{', "[{]").replace('}', "[}]");
        Ok(Self {
            text: text.to_owned(),
            kind: *kind,
            name: name.to_owned(),
            glob: glob(&escaped)?,
        })
    }
}

impl Piece {
    /// Whether a name is meant.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.glob.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_understood() {
        let piece: Piece = "lock:stats_*".parse().unwrap();
        assert!(piece.kind == PieceKind::Lock && piece.takes("stats_mu") && !piece.takes("mu"));
        let piece: Piece = "fn:std::vector<int[]>::at".parse().unwrap();
        assert!(piece.kind == PieceKind::Function && piece.takes("std::vector<int[]>::at"));
        let piece: Piece = "fn:core::{{closure}}*[u8]".parse().unwrap();
        assert!(piece.takes("core::{{closure}}::go<[u8]") && !piece.takes("core::closure"));
        for (text, said) in
            [("stats_mu", "no colon"), ("lock:", "no name"), ("locks:mu", "did you mean lock?")]
        {
            let error = text.parse::<Piece>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
