//! What a chart is made of.

use crate::Error;

/// Title and subtitle, one line each.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// What the chart shows.
    pub title: &'a str,
    /// Of what, and what to know to read it; may be empty.
    pub subtitle: &'a str,
}

/// What values are measured in. Decides only how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit<'a> {
    /// Durations, in nanoseconds; written with the SI prefix that fits (`3.10 ms`).
    Nanoseconds,
    /// Numbers of something, given in the plural (`calls`); written with SI prefixes (`41.2 M`).
    Count(&'a str),
}

/// How a group is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// One of many of its kind: one of the palette's colours, or grey when they have run out.
    Library,
    /// What libraries are compared with, marked "(application)": near-black for the first one, two
    /// lighter shades for the next, grey for more.
    Application,
    /// What the caller has already put together from many: grey.
    Rest,
    /// A library that has this colour of the palette wherever it is shown.
    LibraryNumber(usize),
    /// The same of an application, marked "(application)".
    ApplicationNumber(usize),
    /// The recorder's own part, in a program that it records: no library has its colour.
    Recorder,
    /// What threads do.
    State(State),
    /// One of a few kinds, from the darkest blue on; grey when they have run out.
    Shade(usize),
}

/// What a thread does: each has one colour, in all charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On a processor.
    Running,
    /// Ready to run while others do.
    Runnable,
    /// Blocked by a lock.
    Lock,
    /// By a condition.
    Condition,
    /// By a barrier.
    Barrier,
    /// Until a thread or process ends.
    Join,
    /// Until a time.
    Sleep,
    /// By input or output.
    Io,
    /// By a page of memory that is not there yet.
    Page,
    /// By anything else.
    Blocked,
}

/// A group, such as a library.
///
/// Colours are given out in the order of the groups. Pass charts that stand together the same
/// groups in the same order, most important first, even where their values differ.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name, as shown.
    pub name: String,
    /// How it is coloured.
    pub kind: GroupKind,
    /// Its part of the total, in the chart's unit.
    pub value: f64,
}

impl Group {
    /// Its name as charts show it. An executable may also be called as a library, under one name.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            GroupKind::Application | GroupKind::ApplicationNumber(_) => {
                format!("{} (application)", self.name)
            }
            _ => self.name.clone(),
        }
    }
}

/// One entry of a bar chart, such as an API.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its name, as shown.
    pub label: String,
    /// Index of its group.
    pub group: usize,
    /// Its value, in the chart's unit.
    pub value: f64,
}

/// Refuses values that can't be drawn; returns their sum.
pub(crate) fn total<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> Result<f64, Error> {
    let mut sum = 0.0;
    for (label, value) in values {
        if !value.is_finite() || value < 0.0 {
            return Err(Error::Value { label: label.to_owned(), value });
        }
        sum += value;
    }
    if sum.is_finite() {
        Ok(sum)
    } else {
        Err(Error::Value { label: "the sum of all".to_owned(), value: sum })
    }
}
