//! What is on the terminal, and what keys do to it.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::head;
use super::listing::Listing;
use super::place::{Place, TABLES, title};
use super::tables::Figures;
use super::watch::Look;
use crate::args::TopTable;
use crate::terminal::{Terminal, clean};

/// The keys, for which a line of 80 columns has room.
const KEYS: &str =
    "1-6 table  s sort  / filter  Enter in  Esc out  t total  p pause  ? help  q quit";
const HELP: &[&str] = &[
    "Any key closes this.",
    "",
    "1 to 6, Tab  a table: libraries, functions, threads, waits, syscalls, processes",
    "↑ ↓ j k ...  a row; also PageUp, PageDown, Home and End",
    "Enter →      into the row: functions of a library, who calls a function, ...",
    "Esc ←        out of it",
    "s S r        sort by the next column, the previous one; the other way round",
    "/            only names with a text in them; Enter keeps it, Esc forgets it",
    "t            the last seconds, or all since the start",
    "p Space      pause, go on",
    "+ -          look more often, less often",
    "q Ctrl-C     end",
    "",
    "busy         time not waiting, in the function itself; 100 % is one processor",
    "cpu          where the processor was, by samples, whoever called",
    "waits        threads that waited there, in the mean; in all: how long",
    "LB           mean busy time of a group's threads by the longest; 1 is even",
    "idle         threads that did nothing but wait for work",
    "~ ≤          an estimate, from a sample of the calls; at most so much",
];

/// What a key asks for, beyond what the screen does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Quit,
    /// To the background.
    Stop,
    /// Look half as often, or twice as often.
    Slower,
    Faster,
    /// Only this process, or all again.
    Choose(Option<u32>),
}

/// The state of the view.
pub(super) struct Screen {
    table: TopTable,
    /// What was looked into, one in the other.
    inside: Vec<Place>,
    process: Option<u32>,
    /// The column that rows are sorted by, unless it is the usual one.
    sort: Option<usize>,
    reverse: bool,
    filter: String,
    is_typing: bool,
    selected: usize,
    /// First row that is shown.
    first: usize,
    /// Rows that there was room for.
    room: usize,
    in_all: bool,
    pub(super) is_paused: bool,
    has_help: bool,
    /// What went wrong at the latest look.
    pub(super) trouble: Option<String>,
}

impl Screen {
    pub(super) fn new(table: TopTable) -> Self {
        Self {
            table,
            inside: Vec::new(),
            process: None,
            sort: None,
            reverse: false,
            filter: String::new(),
            is_typing: false,
            selected: 0,
            first: 0,
            room: 1,
            in_all: false,
            is_paused: false,
            has_help: false,
            trouble: None,
        }
    }

    fn place(&self) -> Place {
        self.inside.last().cloned().unwrap_or(Place::Table(self.table))
    }

    fn figures<'l>(&self, look: &'l Look) -> Figures<'l> {
        Figures::new(look, !self.in_all)
    }

    /// The table as it is shown, and by which column it is sorted.
    fn listing(&self, look: &Look) -> (Listing, usize) {
        let place = self.place();
        let mut listing = self.figures(look).listing(&place);
        listing.filter(&self.filter);
        let sort = self.sort.filter(|&column| column < listing.columns.len());
        let sort = sort.unwrap_or_else(|| listing.first_number(&place));
        listing.sort(sort, self.reverse);
        (listing, sort)
    }

    /// Another table, or another place.
    fn go(&mut self) {
        (self.selected, self.first, self.sort, self.reverse) = (0, 0, None, false);
        self.filter.clear();
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent, look: &Look) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Quit,
                KeyCode::Char('z') => Wish::Stop,
                _ => Wish::Nothing,
            };
        }
        if self.has_help {
            self.has_help = false;
            return Wish::Nothing;
        }
        if self.is_typing {
            self.type_in(key.code);
            return Wish::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char('+') => return Wish::Faster,
            KeyCode::Char('-') => return Wish::Slower,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('t') => self.in_all = !self.in_all,
            KeyCode::Char('/') => {
                self.filter.clear();
                self.is_typing = true;
            }
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char('s') => self.sort_by(look, 1),
            KeyCode::Char('S') => self.sort_by(look, -1),
            KeyCode::Char(number @ '1'..='6') => self.show(number as usize - '1' as usize),
            KeyCode::Tab => self.show((self.at() + 1) % TABLES.len()),
            KeyCode::BackTab => self.show((self.at() + TABLES.len() - 1) % TABLES.len()),
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected += self.room,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.room),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.selected = usize::MAX / 2,
            KeyCode::Enter | KeyCode::Right => return self.enter_row(look),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => return self.back(),
            _ => {}
        }
        Wish::Nothing
    }

    fn type_in(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.selected = 0;
    }

    fn at(&self) -> usize {
        TABLES.iter().position(|table| *table == self.table).unwrap_or(0)
    }

    fn show(&mut self, number: usize) {
        self.table = TABLES[number];
        self.inside.clear();
        self.go();
    }

    fn sort_by(&mut self, look: &Look, step: isize) {
        let (listing, sort) = self.listing(look);
        let columns = listing.columns.len().max(1);
        self.sort = Some((sort.wrapping_add_signed(step).wrapping_add(columns)) % columns);
        self.reverse = false;
    }

    fn enter_row(&mut self, look: &Look) -> Wish {
        let (listing, _) = self.listing(look);
        let chosen = listing.rows.get(self.selected).and_then(|row| row.inside.clone());
        match chosen {
            Some(Place::Process(pid)) => {
                self.process = Some(pid);
                self.show(0);
                Wish::Choose(Some(pid))
            }
            Some(place) => {
                self.inside.push(place);
                self.go();
                Wish::Nothing
            }
            None => Wish::Nothing,
        }
    }

    fn back(&mut self) -> Wish {
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.inside.pop().is_some() {
            self.go();
        } else if self.process.take().is_some() {
            self.table = TopTable::Processes;
            self.go();
            return Wish::Choose(None);
        }
        Wish::Nothing
    }

    /// Draws all.
    pub(super) fn draw(&mut self, frame: &mut Frame, look: &Look) {
        let [head, sums, tabs, heading, rows, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let columns = usize::from(frame.area().width);
        let paused = if self.is_paused { "  [paused]" } else { "" };
        let run = whole_parts(&head::run(look), columns.saturating_sub(paused.len()));
        frame.render_widget(Line::styled(run + paused, bold), head);
        let all = head::sums(self.figures(look), look.processors);
        frame.render_widget(Line::raw(whole_parts(&all, columns)), sums);
        frame.render_widget(self.tabs(), tabs);
        let (listing, sort) = self.listing(look);
        let terminal = Terminal { width: Some(usize::from(rows.width)), colour: false };
        let lines = listing.lines(terminal, Some((sort, self.reverse)));
        let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
        frame.render_widget(
            Line::styled(lines.first().cloned().unwrap_or_default(), underlined),
            heading,
        );
        self.room = usize::from(rows.height).max(1);
        self.selected = self.selected.min(listing.rows.len().saturating_sub(1));
        self.first = self.first.min(self.selected);
        self.first = self.first.max((self.selected + 1).saturating_sub(self.room));
        if listing.rows.is_empty() {
            frame.render_widget(Line::raw(self.nothing(look)), rows);
        }
        let shown = lines.iter().skip(1).take(listing.rows.len());
        let shown = shown.enumerate().skip(self.first).take(self.room);
        let width = usize::from(rows.width);
        let line = |(number, text): (usize, &String)| match number == self.selected {
            // The bar reaches to the right end.
            true => Line::styled(
                format!("{text:width$}"),
                Style::new().add_modifier(Modifier::REVERSED),
            ),
            false => Line::raw(text.clone()),
        };
        frame.render_widget(Paragraph::new(shown.map(line).collect::<Vec<_>>()), rows);
        let no_room = lines.get(1 + listing.rows.len());
        frame.render_widget(Line::raw(self.bottom(look, no_room)), keys);
        if self.has_help {
            self.help(frame);
        }
    }

    /// The tables' names, or where one is.
    fn tabs(&self) -> Line<'static> {
        let mut spans = Vec::new();
        if let Some(pid) = self.process {
            spans.push(Span::raw(format!("process {pid}: ")));
        }
        if self.inside.is_empty() {
            for (number, table) in (1..).zip(TABLES) {
                let style = match table == self.table {
                    true => Style::new().add_modifier(Modifier::REVERSED),
                    false => Style::new(),
                };
                spans.push(Span::styled(format!("{number} {}", title(table)), style));
                spans.push(Span::raw("  "));
            }
        } else {
            let names = self.inside.iter().map(|place| clean(&place.name()).into_owned());
            let names: Vec<String> =
                std::iter::once(title(self.table).to_owned()).chain(names).collect();
            spans.push(Span::raw(names.join(" › ")));
        }
        Line::from(spans)
    }

    /// Why a table has no rows.
    fn nothing(&self, look: &Look) -> &'static str {
        let has_syscalls = look.all.analysis.syscalls.totals.calls > 0;
        match self.place() {
            _ if !self.filter.is_empty() => "no name has that text in it; Esc shows all",
            Place::Table(TopTable::Syscalls) if !has_syscalls => {
                "no system calls were recorded: chase doctor says what the companion needs"
            }
            _ => "nothing happened",
        }
    }

    fn bottom(&self, look: &Look, no_room: Option<&String>) -> String {
        if self.is_typing {
            return format!("/{}_   Enter keeps it, Esc forgets it", clean(&self.filter));
        }
        let said = match &self.trouble {
            Some(trouble) => Some(clean(trouble).into_owned()),
            None if !look.is_running => Some("it has ended: this is the last picture".to_owned()),
            None if !self.filter.is_empty() => Some(format!("only '{}'", clean(&self.filter))),
            None => no_room.cloned(),
        };
        match said {
            Some(said) => format!("{said} - q quit, ? help"),
            None => KEYS.to_owned(),
        }
    }

    fn help(&self, frame: &mut Frame) {
        let all = frame.area();
        let height = (HELP.len() as u16).min(all.height);
        let area = Rect { y: all.height - height, height, ..all };
        frame.render_widget(Clear, area);
        let lines: Vec<Line> = HELP.iter().map(|line| Line::raw(*line)).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// What of a line's parts there is room for: a number that is cut would read as another.
fn whole_parts(line: &str, columns: usize) -> String {
    let up_to = |gap: &str, columns: usize| {
        let ends = line.match_indices(gap).map(|(at, _)| at).chain([line.len()]);
        ends.map(|end| &line[..end]).take_while(|part| part.width() <= columns).last()
    };
    // Or else of its words.
    let words = || format!("{} …", up_to(" ", columns.saturating_sub(2)).unwrap_or_default());
    up_to("  ", columns).map_or_else(words, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_80_columns() {
        for line in HELP.iter().chain([&KEYS]) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn parts_are_shown_whole() {
        let line = "server  pid 4711  runs for 600 ms";
        assert_eq!(whole_parts(line, 40), line);
        assert_eq!(whole_parts(line, 32), "server  pid 4711");
        assert_eq!(whole_parts(line, 15), "server");
        assert_eq!(whole_parts(line, 5), " …");
        assert_eq!(whole_parts("Last 0.4 s: busy 263 %  0.37 waiting", 20), "Last 0.4 s: busy …");
    }
}
