//! Tables that fit the terminal: numbers stay whole, names give way.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Look, Terminal, clean};

/// Columns between two columns.
const GAP: usize = 2;
/// A name is cut to no less than this where other columns can be left out.
const MIN_NAME: usize = 16;
/// And where even then there is no room.
const LEAST_NAME: usize = 8;

/// Nor is a column wider than this, on no terminal either: one name would make all lines as long as itself.
const MAX_WIDTH: usize = 2_000;

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Names: at the left; cut in the middle when the line is too long.
    Name,
    /// Numbers: at the right; never cut.
    Number,
    /// Text at the left that is never cut.
    Text,
}

/// One field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>, look: Look) -> Self {
        Self { text: clean(text.as_ref()).into_owned(), look }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Look::Plain)
    }
}

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
    droppable: Vec<String>,
    droppable_at_last: Vec<String>,
    hidden: Vec<String>,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        Self::with_columns(columns)
    }

    /// The same for columns that are not known beforehand.
    pub(crate) fn with_columns<'h>(columns: impl IntoIterator<Item = (&'h str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.to_owned(), align));
        let columns = columns.collect();
        Self {
            columns,
            rows: Vec::new(),
            droppable: Vec::new(),
            droppable_at_last: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// Columns that may be left out on a narrow terminal, the first one first.
    pub(crate) fn may_drop<const N: usize>(self, headings: [&str; N]) -> Self {
        self.may_drop_any(headings)
    }

    /// The same for columns that are not known beforehand.
    pub(crate) fn may_drop_any<'h>(mut self, headings: impl IntoIterator<Item = &'h str>) -> Self {
        self.droppable = headings.into_iter().map(str::to_owned).collect();
        self
    }

    /// Columns that may be left out where names have given what they can, too: for where longer lines would be cut.
    pub(crate) fn may_drop_at_last<'h>(
        mut self,
        headings: impl IntoIterator<Item = &'h str>,
    ) -> Self {
        self.droppable_at_last = headings.into_iter().map(str::to_owned).collect();
        self
    }

    /// Leaves a column out, without a word, unless it is wanted.
    pub(crate) fn only_if(mut self, wanted: bool, heading: &str) -> Self {
        if !wanted {
            self.hidden.push(heading.to_owned());
        }
        self
    }

    /// Adds a row; what is missing at its end stays empty.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.add(cells.into());
    }

    /// The same for cells that are not known beforehand.
    pub(crate) fn add(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::default());
        self.rows.push(cells);
    }

    /// The table with a line break after each line, and none before. Columns left out for want
    /// of room are named at the end.
    pub(crate) fn render(&self, terminal: Terminal) -> String {
        let headings = |(heading, _): &(String, Align)| Cell::new(heading, Look::Strong);
        let headings: Vec<Cell> = self.columns.iter().map(headings).collect();
        let lines: Vec<&Vec<Cell>> = std::iter::once(&headings).chain(&self.rows).collect();
        let is_shown = |column: &usize| !self.hidden.contains(&self.columns[*column].0);
        let mut columns: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let mut dropped = Vec::new();
        let mut widths = Vec::new();
        let fits = |widths: &[usize]| terminal.width.is_none_or(|limit| total(widths) <= limit);
        for (droppable, least) in
            [(&self.droppable, MIN_NAME), (&self.droppable_at_last, LEAST_NAME)]
        {
            widths = self.widths(&lines, &columns, terminal.width, least);
            for heading in droppable.iter().filter(|heading| !self.hidden.contains(heading)) {
                if fits(&widths) {
                    break;
                }
                columns.retain(|&column| self.columns[column].0 != *heading);
                dropped.push(heading.as_str());
                widths = self.widths(&lines, &columns, terminal.width, least);
            }
            if fits(&widths) {
                break;
            }
        }
        let mut out = String::new();
        for cells in lines {
            out.push_str(&self.line(cells, &columns, &widths, terminal));
            out.push('\n');
        }
        if !dropped.is_empty() {
            dropped.reverse();
            let text = format!("(no room for: {})", dropped.join(", "));
            out.push_str(&terminal.paint(Look::Faint, &text));
            out.push('\n');
        }
        out
    }

    fn line(
        &self,
        cells: &[Cell],
        columns: &[usize],
        widths: &[usize],
        terminal: Terminal,
    ) -> String {
        let mut line = String::new();
        let mut owed = 0;
        for (&column, &width) in columns.iter().zip(widths) {
            let cell = &cells[column];
            let text = fit(&cell.text, width);
            let space = width - text.width();
            let before = if self.columns[column].1 == Align::Number { space } else { 0 };
            // Nothing is painted or padded after the last text of a line.
            owed += before;
            if !text.is_empty() {
                line.push_str(&" ".repeat(owed));
                line.push_str(&terminal.paint(cell.look, &text));
                owed = 0;
            }
            owed += space - before + GAP;
        }
        line
    }

    /// Widths of `columns`, with names as narrow as `limit` demands, but for `least`.
    fn widths(
        &self,
        lines: &[&Vec<Cell>],
        columns: &[usize],
        limit: Option<usize>,
        least: usize,
    ) -> Vec<usize> {
        let widest = |&column: &usize| {
            let widest = lines.iter().map(|cells| cells[column].text.width()).max();
            widest.unwrap_or(0).min(MAX_WIDTH)
        };
        let mut widths: Vec<usize> = columns.iter().map(widest).collect();
        let excess = limit.map_or(0, |limit| total(&widths).saturating_sub(limit));
        // The widest name gives way first.
        for _ in 0..excess {
            let names = columns.iter().zip(&mut widths);
            let is_name =
                |(column, _): &(&usize, &mut usize)| self.columns[**column].1 == Align::Name;
            let widest = names.filter(is_name).map(|(_, width)| width).max();
            let Some(width) = widest.filter(|width| **width > least) else { break };
            *width -= 1;
        }
        widths
    }
}

/// Width of a line.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// `text` in at most `width` columns; the middle gives way, as names differ at both ends.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = take(text.chars(), room - room / 2);
    let tail: String = take(text.chars().rev(), room / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

fn take(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([("Library", Align::Name), ("self", Align::Number)]);
        table.row(["libalphabetagammadelta.so.1".into(), "29.4 %".into()]);
        table.row([Cell::new("a\x1b[2J", Look::Faint), "".into()]);
        table
    }

    #[test]
    fn as_wide_as_it_must_be() {
        let terminal = Terminal { width: None, colour: false };
        let expected = "\
Library                        self
libalphabetagammadelta.so.1  29.4 %
a\\x1b[2J
";
        assert_eq!(table().render(terminal), expected);
    }

    #[test]
    fn names_give_way_on_a_narrow_terminal() {
        let terminal = Terminal { width: Some(24), colour: false };
        let expected = "\
Library             self
libalpha…ta.so.1  29.4 %
a\\x1b[2J
";
        assert_eq!(table().render(terminal), expected);
        // Where nothing else gives way, they give more, but not all.
        let narrow = table().render(Terminal { width: Some(5), colour: false });
        assert!(narrow.contains("liba…o.1  29.4 %"), "{narrow}");
    }

    #[test]
    fn columns_give_way_where_names_can_not() {
        let table = Table { droppable: vec!["self".to_owned()], ..table() };
        let expected = "\
Library
libalpha…lta.so.1
a\\x1b[2J
(no room for: self)
";
        assert_eq!(table.render(Terminal { width: Some(17), colour: false }), expected);
        assert!(!table.render(Terminal { width: Some(30), colour: false }).contains("no room"));
    }

    #[test]
    fn numbers_give_way_at_last() {
        let table = table().may_drop_at_last(["self"]);
        let at = |width| table.render(Terminal { width: Some(width), colour: false });
        assert!(at(16).contains("liba…o.1  29.4 %"), "{}", at(16));
        assert!(at(15).ends_with("(no room for: self)\n"), "{}", at(15));
        assert!(at(15).contains("libalph…ta.so.1\n"), "{}", at(15));
    }

    #[test]
    fn colours_take_no_room() {
        let plain = table().render(Terminal { width: Some(24), colour: false });
        let coloured = table().render(Terminal { width: Some(24), colour: true });
        let stripped =
            coloured.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert_eq!(stripped, plain);
        assert!(coloured.contains("\x1b[2ma\\x1b[2J\x1b[0m"), "{coloured:?}");
    }

    #[test]
    fn wide_characters_are_cut_whole() {
        assert_eq!(fit("日本語日本語", 6), "日…語");
        assert_eq!(fit("abc", 0), "…");
    }
}
