//! The figures, as rows that say whether a bar is met.

use serde::Serialize;

use crate::turns::Spread;

/// All figures so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// Told each row as it comes.
    pub(crate) follower: Option<fn(&Row)>,
}

/// One figure, or why there is none.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) part: String,
    pub(crate) what: String,
    /// Unit of `value`, `beyond` and `bar`.
    pub(crate) unit: &'static str,
    pub(crate) value: Option<Spread>,
    /// What is known of the value where there is none.
    pub(crate) beyond: Option<Beyond>,
    pub(crate) bar: Option<Bar>,
    pub(crate) met: Option<bool>,
    /// What the value was calculated from, with units.
    pub(crate) details: Vec<Detail>,
    /// Why it was not measured.
    pub(crate) why_not: Option<String>,
}

/// What the median must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

/// What a run that was stopped tells of its value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Beyond {
    Above(f64),
    Below(f64),
}

#[derive(Debug, Serialize)]
pub(crate) struct Detail {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: Spread,
}

/// A figure that has been measured.
pub(crate) struct Figure {
    pub(crate) part: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) bar: Option<f64>,
    pub(crate) values: Vec<f64>,
    /// Name, unit and values of what it was calculated from.
    pub(crate) details: Vec<(&'static str, &'static str, Vec<f64>)>,
}

impl Report {
    /// A figure that must be at most its bar.
    pub(crate) fn measured(&mut self, figure: Figure) {
        self.measured_against(figure, Bar::AtMost);
    }

    /// A figure that must be at least its bar.
    pub(crate) fn measured_at_least(&mut self, figure: Figure) {
        self.measured_against(figure, Bar::AtLeast);
    }

    /// A measurement went wrong, which is as bad as a missed bar.
    pub(crate) fn failed(&mut self, part: &str, what: &str, bar: Option<f64>, why: &str) {
        let bar = bar.map(Bar::AtMost);
        self.push(Row { bar, met: Some(false), ..Row::without(part, what, "failed", why) });
    }

    /// Something that can't be measured here.
    pub(crate) fn skipped(&mut self, part: &str, what: &str, why: &str) {
        self.push(Row::without(part, what, "skipped", why));
    }

    /// A measurement of another tool went wrong.
    pub(crate) fn without_verdict(&mut self, part: &str, what: &str, why: &str) {
        self.push(Row::without(part, what, "failed", why));
    }

    /// A measurement of another tool was stopped, so that only a bound is known.
    pub(crate) fn beyond(
        &mut self,
        part: &str,
        what: &str,
        unit: &'static str,
        beyond: Beyond,
        why: &str,
    ) {
        let beyond = Some(beyond);
        let why_not = Some(why.to_owned());
        self.push(Row { unit, beyond, why_not, ..Row::without(part, what, "", "") });
    }

    pub(crate) fn all_bars_met(&self) -> bool {
        self.rows.iter().all(|row| row.met != Some(false))
    }

    fn push(&mut self, row: Row) {
        if let Some(follower) = self.follower {
            follower(&row);
        }
        self.rows.push(row);
    }

    fn measured_against(&mut self, figure: Figure, bar: impl Fn(f64) -> Bar) {
        let Some(value) = Spread::of_values(&figure.values) else {
            return self.failed(figure.part, &figure.what, figure.bar, "no value");
        };
        let detail = |(name, unit, values): (_, _, Vec<f64>)| {
            Spread::of_values(&values).map(|value| Detail { name, unit, value })
        };
        let bar = figure.bar.map(bar);
        self.push(Row {
            part: figure.part.to_owned(),
            what: figure.what,
            unit: figure.unit,
            value: Some(value),
            beyond: None,
            bar,
            met: bar.map(|bar| bar.is_met_by(value.median)),
            details: figure.details.into_iter().filter_map(detail).collect(),
            why_not: None,
        });
    }
}

impl Bar {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bar) => value <= bar,
            Self::AtLeast(bar) => value >= bar,
        }
    }
}

impl Row {
    fn without(part: &str, what: &str, how: &str, why: &str) -> Self {
        Self {
            part: part.to_owned(),
            what: what.to_owned(),
            unit: "",
            value: None,
            beyond: None,
            bar: None,
            met: None,
            details: Vec::new(),
            why_not: Some(format!("{how}: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], bar: Option<f64>) -> Figure {
        let (what, details) = ("a".to_owned(), vec![("bare", "ns", vec![2.5])]);
        Figure { part: "calls", what, unit: "×", bar, values: values.to_vec(), details }
    }

    #[test]
    fn a_bar_is_met_by_the_median_and_missed_by_a_failure() {
        let mut report = Report::default();
        report.measured(figure(&[1.0, 1.6, 9.0], Some(1.6)));
        report.measured_at_least(figure(&[0.1, 1.6, 1.7], Some(1.6)));
        report.skipped("calls", "uftrace", "not installed");
        report.without_verdict("calls", "ltrace", "was killed by signal 11");
        assert!(report.all_bars_met());

        report.measured(figure(&[1.0, 1.61, 1.61], Some(1.6)));
        assert!(!report.all_bars_met());
        let mut low = Report::default();
        low.measured_at_least(figure(&[1.59, 1.59, 2.0], Some(1.6)));
        assert!(!low.all_bars_met());
        let mut failing = Report::default();
        failing.failed("calls", "b", None, "killed by signal 11");
        assert!(!failing.all_bars_met());
    }

    #[test]
    fn a_figure_without_values_is_a_failure() {
        let mut report = Report::default();
        report.measured(figure(&[], Some(1.6)));
        assert!(!report.all_bars_met());
    }
}
