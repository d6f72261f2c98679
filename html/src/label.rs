//! Names that are safe to show.

use std::fmt;

use maud::{Markup, Render};
use serde::{Deserialize, Serialize};

/// Longest name in a page, characters: names can be megabytes long.
const LONGEST: usize = 1000;

/// A name from a recording, as text to be shown: without control characters and marks that
/// reorder what stands near them, and shortened in the middle beyond 1000 characters. Markup in it
/// is escaped where it is put into a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Label(String);

impl Label {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Label {
    fn from(name: T) -> Self {
        let name = name.as_ref();
        if name.chars().nth(LONGEST).is_none() {
            return Self(chase_viz::visible(name));
        }
        let head: String = name.chars().take(LONGEST / 2).collect();
        let mut tail: Vec<char> = name.chars().rev().take(LONGEST / 2).collect();
        tail.reverse();
        Self(chase_viz::visible(&format!("{head}…{}", String::from_iter(tail))))
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Render for Label {
    fn render(&self) -> Markup {
        self.0.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_steer_nor_flood_a_page() {
        assert_eq!(Label::from("a\u{202e}\u{1b}b").as_str(), r"a\u{202e}\u{1b}b");
        let long = Label::from("x".repeat(3_000_000));
        assert_eq!(long.as_str().chars().count(), LONGEST + 1);
        assert_eq!(Label::from("<b>").render().into_string(), "&lt;b&gt;");
    }
}
