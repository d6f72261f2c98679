//! Text for people: how wide, in which colours, and what is safe to print.

mod clean;
mod output;
mod table;
mod units;

pub(crate) use clean::{clean, clean_json};
pub(crate) use output::{Pager, print};
pub(crate) use table::{Align, Cell, Table};
pub(crate) use units::{amount, count, duration, elapsed, moment, percent, plural, quantity};

use anstyle::{AnsiColor, Style};

/// What is known of the terminal, or that there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Columns; `None` where lines may be as long as they like.
    pub(crate) width: Option<usize>,
    /// Whether escape sequences are wanted.
    pub(crate) colour: bool,
}

/// The few looks that text can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    #[default]
    Plain,
    /// Headings.
    Strong,
    /// What can be passed over.
    Faint,
    /// What a reader must not miss.
    Warning,
}

impl Terminal {
    /// `text` in `look`, where colours are on.
    pub(crate) fn paint(self, look: Look, text: &str) -> String {
        let style = match look {
            Look::Plain => return text.to_owned(),
            Look::Strong => Style::new().bold(),
            Look::Faint => Style::new().dimmed(),
            Look::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        };
        if self.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}
