//! Rows under headings: filtered, sorted, as lines.

use super::place::Place;
use crate::args::TopTable;
use crate::terminal::{Align, Cell, Look, Table, Terminal};

/// Rows and what they are sorted by.
pub(super) struct Listing {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// A column: its heading, and whether a narrow terminal may lack it.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) align: Align,
    pub(super) droppable: bool,
}

/// A row: what it is, and what can be looked at in it.
pub(super) struct Row {
    pub(super) cells: Vec<Figure>,
    pub(super) inside: Option<Place>,
    /// It stands below the others, however they are sorted.
    pub(super) is_last: bool,
}

/// A cell: as it is shown, and what it is sorted by.
#[derive(Clone, Default)]
pub(super) struct Figure {
    pub(super) text: String,
    pub(super) value: f64,
}

/// A column of names, which is always there.
pub(super) const fn named(heading: &'static str) -> Column {
    Column { heading, align: Align::Name, droppable: false }
}

/// A column of names that a narrow terminal may lack.
pub(super) const fn detail(heading: &'static str) -> Column {
    Column { heading, align: Align::Name, droppable: true }
}

impl From<&str> for Figure {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), value: 0.0 }
    }
}

impl From<String> for Figure {
    fn from(text: String) -> Self {
        Self { text, value: 0.0 }
    }
}

impl Listing {
    pub(super) fn new(columns: Vec<Column>, rows: impl Iterator<Item = Row>) -> Self {
        Self { columns, rows: rows.collect() }
    }

    /// Leaves the rows whose names have `text` in them, in whatever case.
    pub(super) fn filter(&mut self, text: &str) {
        let wanted = text.to_lowercase();
        let names = |row: &Row| {
            let names = self.columns.iter().zip(&row.cells);
            let mut names = names.filter(|(column, _)| column.align != Align::Number);
            names.any(|(_, cell)| cell.text.to_lowercase().contains(&wanted))
        };
        let keep: Vec<bool> = self.rows.iter().map(names).collect();
        let mut keep = keep.into_iter();
        self.rows.retain(|_| keep.next().unwrap_or(false));
    }

    /// Largest first, names from A on; what is last stays last.
    pub(super) fn sort(&mut self, column: usize, reverse: bool) {
        let is_number = self.columns.get(column).is_some_and(|it| it.align == Align::Number);
        self.rows.sort_by(|a, b| {
            let (one, other) = (&a.cells[column], &b.cells[column]);
            let order = match is_number {
                true => other.value.total_cmp(&one.value),
                false => one.text.to_lowercase().cmp(&other.text.to_lowercase()),
            };
            let order = if reverse { order.reverse() } else { order };
            a.is_last.cmp(&b.is_last).then(order)
        });
    }

    /// The columns that it can be sorted by, and how they are at first: by the first number.
    pub(super) fn first_number(&self, place: &Place) -> usize {
        let wanted = match place {
            Place::Table(TopTable::Waits) => "waits",
            _ => "busy",
        };
        let cpu = self.columns.iter().position(|column| column.heading == "cpu");
        let named = self.columns.iter().position(|column| column.heading == wanted);
        cpu.or(named).unwrap_or(0)
    }

    /// As lines: the heading, then the rows, and what there was no room for. `sorted` is marked.
    pub(super) fn lines(&self, terminal: Terminal, sorted: Option<(usize, bool)>) -> Vec<String> {
        let headings = self.columns.iter().enumerate().map(|(number, column)| {
            let mark = match sorted {
                Some((at, reverse)) if at == number => {
                    if reverse {
                        "▴"
                    } else {
                        "▾"
                    }
                }
                _ => "",
            };
            (format!("{}{mark}", column.heading), column.align)
        });
        let headings: Vec<(String, Align)> = headings.collect();
        let is_sorted_by = |number: &usize| sorted.is_some_and(|(at, _)| at == *number);
        let (used, unused): (Vec<usize>, Vec<usize>) =
            (0..self.columns.len()).rev().partition(is_sorted_by);
        let of_little_use = unused.iter().filter(|&&number| self.columns[number].droppable);
        // What it is sorted by goes last.
        let numbers = unused.iter().chain(&used);
        let numbers = numbers.filter(|&&number| {
            let column = self.columns[number];
            column.align == Align::Number && !column.droppable
        });
        let heading = |number: &usize| &*headings[*number].0;
        let columns = headings.iter().map(|(heading, align)| (&**heading, *align));
        let mut table = Table::with_columns(columns)
            .may_drop_any(of_little_use.map(heading))
            .may_drop_at_last(numbers.map(heading));
        for row in &self.rows {
            let look = if row.is_last { Look::Faint } else { Look::Plain };
            let cell = |figure: &Figure| Cell::new(&figure.text, look);
            table.add(row.cells.iter().map(cell).collect());
        }
        table.render(terminal).lines().map(str::to_owned).collect()
    }
}
