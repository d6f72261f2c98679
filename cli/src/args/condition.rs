//! The language of conditions: `KIND:NAME.FIGURE > LIMIT`.

use std::fmt;
use std::str::FromStr;

use globset::GlobMatcher;

use super::filters::glob;
use crate::names::did_you_mean;

/// A condition as it was typed, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    text: String,
    pub(crate) kind: Kind,
    pub(crate) glob: GlobMatcher,
    pub(crate) figure: Figure,
    is_below: bool,
    pub(crate) limit: Limit,
}

/// Of what a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Library,
    Function,
    Wait,
    Syscall,
    Run,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Calls,
    /// Time without library calls made inside.
    Own,
    Wait,
    OnCpu,
    P50,
    P99,
    P999,
    Max,
    /// Time in a system call.
    Time,
    Errors,
    Wall,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) amount: f64,
    pub(crate) unit: Unit,
    /// It is of the difference to the first side.
    pub(crate) is_change: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Of all, or, of a change, of what was.
    Percent,
    Ns,
    Count,
}

impl Condition {
    /// Whether a value is on the wrong side of the limit.
    pub(crate) fn is_met(&self, value: f64) -> bool {
        if self.is_below { value < self.limit.amount } else { value > self.limit.amount }
    }

    /// Whether it is met by a value that may be off by so much, wherever in there it is.
    pub(crate) fn is_met_surely(&self, value: f64, error: f64) -> bool {
        self.is_met(if self.is_below { value + error } else { value - error })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const WHAT: &str = "a condition is lib:NAME.FIGURE, fn:NAME.FIGURE, syscall:NAME.FIGURE, wait:CAUSE or run:FIGURE, then > or <, then a limit, as in 'lib:libz.so*.self > 30%'";

/// A kind by its word, and its figures by theirs.
type Known = (&'static str, Kind, &'static [(&'static str, Figure)]);

/// What can be asked for of each kind.
const FIGURES: [Known; 4] = [
    (
        "lib",
        Kind::Library,
        &[
            ("on_cpu", Figure::OnCpu),
            ("self", Figure::Own),
            ("wait", Figure::Wait),
            ("calls", Figure::Calls),
        ],
    ),
    (
        "fn",
        Kind::Function,
        &[
            ("on_cpu", Figure::OnCpu),
            ("self", Figure::Own),
            ("wait", Figure::Wait),
            ("calls", Figure::Calls),
            ("p50", Figure::P50),
            ("p99", Figure::P99),
            ("p99.9", Figure::P999),
            ("max", Figure::Max),
        ],
    ),
    (
        "syscall",
        Kind::Syscall,
        &[("calls", Figure::Calls), ("errors", Figure::Errors), ("time", Figure::Time)],
    ),
    (
        "run",
        Kind::Run,
        &[("wall", Figure::Wall), ("on_cpu", Figure::OnCpu), ("calls", Figure::Calls)],
    ),
];

/// What waits are for, as everywhere in the report.
const CAUSES: [&str; 8] = ["lock", "condition", "barrier", "join", "sleep", "io", "page", "other"];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // (Names in C++ have angles, too.)
        let at = text.rfind(['>', '<']).ok_or_else(|| format!("it has no > or <: {WHAT}"))?;
        let (subject, limit) = (text[..at].trim(), text[at + 1..].trim());
        let (kind, rest) =
            subject.split_once(':').ok_or_else(|| format!("'{subject}' has no colon: {WHAT}"))?;
        let (kind, name, figure) = subject_of(kind, rest)?;
        let glob = glob(name)?;
        let limit = limit_of(limit, figure)?;
        let is_below = text[at..].starts_with('<');
        Ok(Self { text: text.trim().to_owned(), kind, glob, figure, is_below, limit })
    }
}

fn subject_of<'t>(kind: &str, rest: &'t str) -> Result<(Kind, &'t str, Figure), String> {
    if kind == "wait" {
        // What people call it.
        let cause = if rest == "mutex" { "lock" } else { rest };
        if !CAUSES.contains(&cause) {
            return Err(unknown(rest, "cause of waits", &CAUSES));
        }
        return Ok((Kind::Wait, cause, Figure::Wait));
    }
    let Some((_, kind, figures)) = FIGURES.iter().find(|(name, ..)| *name == kind) else {
        return Err(unknown(kind, "kind", &["lib", "fn", "syscall", "wait", "run"]));
    };
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
    if *kind == Kind::Run {
        let found = figures.iter().find(|(name, _)| *name == rest);
        let (_, figure) = found.ok_or_else(|| unknown(rest, "figure of a run", &names))?;
        return Ok((*kind, "*", *figure));
    }
    // A name may have dots in it, and so has a figure.
    let found = figures.iter().filter_map(|(name, figure)| {
        let before = rest.strip_suffix(name)?.strip_suffix('.')?;
        Some((*kind, before, *figure))
    });
    // The longest figure: `p99.9` and not a function called `x.p99`.
    found.min_by_key(|(_, before, _)| before.len()).ok_or_else(|| match rest.rsplit_once('.') {
        Some((_, figure)) => unknown(figure, "figure", &names),
        None => format!("'{rest}' names no figure, which are {}", names.join(", ")),
    })
}

/// What is not there, what is, and which of that may have been meant.
fn unknown(word: &str, what: &str, all: &[&str]) -> String {
    let meant = did_you_mean(word, all.iter().copied());
    format!("'{word}' is no {what}: there are {}{meant}", all.join(", "))
}

fn limit_of(text: &str, figure: Figure) -> Result<Limit, String> {
    let is_change = text.starts_with(['+', '-']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let end = digits.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(digits.len());
    let (number, unit) = (&digits[..end], digits[end..].trim());
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no limit: a number with %, ns, us, ms, s or nothing"))?;
    let (unit, factor) = match unit {
        "%" => (Unit::Percent, 1.0),
        "ns" => (Unit::Ns, 1.0),
        "us" | "µs" => (Unit::Ns, 1e3),
        "ms" => (Unit::Ns, 1e6),
        "s" => (Unit::Ns, 1e9),
        "" => (Unit::Count, 1.0),
        other => {
            return Err(format!("'{other}' is no unit: %, ns, us, ms, s, or nothing for calls"));
        }
    };
    let is_count = matches!(figure, Figure::Calls | Figure::Errors);
    let of_one = matches!(figure, Figure::P50 | Figure::P99 | Figure::P999 | Figure::Max);
    match unit {
        Unit::Ns if is_count => return Err("calls are counted: a number, or %".to_owned()),
        Unit::Count if !is_count => {
            return Err(format!("'{text}' needs a unit: %, ns, us, ms or s"));
        }
        Unit::Percent if !is_change && (of_one || figure == Figure::Wall) => {
            return Err(format!(
                "'{text}' is a share, of which there is none here: ns, us, ms or s"
            ));
        }
        Unit::Ns | Unit::Count | Unit::Percent => {}
    }
    Ok(Limit { amount: sign * number * factor, unit, is_change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Condition {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn conditions_are_understood() {
        let condition = of("lib:libz.so.*.on_cpu > +5%");
        assert_eq!((condition.kind, condition.figure), (Kind::Library, Figure::OnCpu));
        assert_eq!(condition.limit, Limit { amount: 5.0, unit: Unit::Percent, is_change: true });
        assert!(condition.glob.is_match("libz.so.1") && !condition.is_below);
        let condition = of("fn:malloc.self<1.5ms");
        assert_eq!(condition.limit, Limit { amount: 1.5e6, unit: Unit::Ns, is_change: false });
        assert!(condition.is_below && condition.kind == Kind::Function);
        assert!(of("wait:mutex > 10%").glob.is_match("lock"));
        assert_eq!(of("fn:free.calls > -10").limit.amount, -10.0);
        assert_eq!(of("fn:a.b.p99.9 > 2 ms").figure, Figure::P999);
        assert!(of("fn:std::vec<T>*.calls > 3").glob.is_match("std::vec<T>::push"));
        assert_eq!(of("run:wall > +10%").kind, Kind::Run);
        assert_eq!(of("syscall:futex.errors > 0").figure, Figure::Errors);
    }

    #[test]
    fn an_estimate_may_be_too_rough() {
        let above = of("lib:libz*.self > 10%");
        assert!(above.is_met(11.0) && above.is_met_surely(11.0, 0.5));
        assert!(!above.is_met_surely(11.0, 1.5) && !above.is_met(9.0));
        let below = of("lib:libz*.self < 10%");
        assert!(below.is_met_surely(9.0, 0.5) && !below.is_met_surely(9.0, 1.5));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("lib:libz.so.self", "no > or <"),
            ("libz > 5%", "no colon"),
            ("libs:libz.self > 5%", "did you mean lib?"),
            ("lib:libz > 5%", "names no figure"),
            ("lib:libz.speed > 5%", "'speed' is no figure"),
            ("wait:locks > 5%", "did you mean lock?"),
            ("run:wal > 5s", "did you mean wall?"),
            ("lib:libz.self > much", "'much' is no limit"),
            ("lib:libz.self > 5 apples", "'apples' is no unit"),
            ("lib:libz.self > 5", "needs a unit"),
            ("fn:malloc.calls > 5ms", "calls are counted"),
            ("fn:malloc.p99 > 5%", "is a share"),
        ] {
            let error = text.parse::<Condition>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
