//! Measurements taken in turns, and what is said of them.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

/// Median and quartiles of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Half of the values are at most this.
    pub(crate) median: f64,
    /// A quarter of the values are at most this.
    pub(crate) low: f64,
    /// Three quarters of the values are at most this.
    pub(crate) high: f64,
    /// How many values there are.
    pub(crate) rounds: usize,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of_values(values: &[f64]) -> Option<Self> {
        let [low, median, high] = quantiles(values, [0.25, 0.5, 0.75])?;
        Some(Self { median, low, high, rounds: values.len() })
    }
}

/// Quantiles, linear between the two nearest values (Hyndman and Fan's type 7); `None` without values.
pub(crate) fn quantiles<const N: usize>(values: &[f64], of: [f64; N]) -> Option<[f64; N]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(of.map(|q| {
        let at = q * last as f64;
        let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        below + (above - below) * at.fract()
    }))
}

/// One of the things that are measured in turns.
pub(crate) struct Turn<'a> {
    measure: Box<dyn FnMut() -> Result<f64> + 'a>,
    values: Result<Vec<f64>>,
}

impl<'a> Turn<'a> {
    /// `measure` gives one value.
    pub(crate) fn new(measure: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self { measure: Box::new(measure), values: Ok(Vec::new()) }
    }
}

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Never fewer rounds than this ...
    pub(crate) least: usize,
    /// ... never more than this ...
    pub(crate) most: usize,
    /// ... and in between, as many as begin within this time.
    pub(crate) time: Duration,
}

impl Limit {
    /// `effort` times the rounds and the time.
    pub(crate) fn scaled(self, effort: f64) -> Self {
        let most = ((self.most as f64 * effort).round() as usize).max(self.least);
        Self { most, time: self.time.mul_f64(effort), ..self }
    }
}

/// The end of the time that a part may take: rows that would begin later are left out, which is said of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

/// Why a row is left out.
pub(crate) const OUT_OF_TIME: &str = "no time was left for it: a larger --effort gives more";

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// The limit of one of `rows` that are still to come: an even part of what is left, so that each has its turn. That is one
    /// round at least, and no more than `limit` has.
    pub(crate) fn part(self, limit: Limit, rows: usize) -> Limit {
        let left = self.0.saturating_duration_since(Instant::now());
        let rows = u32::try_from(rows.max(1)).unwrap_or(u32::MAX);
        Limit { least: 1, time: left / rows, ..limit }
    }

    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Takes each turn once per round, every other round in the reverse order, so that none always comes
/// after one that leaves the machine with something to do. A turn that fails is left out from then on, and the others go
/// on; the values of the rest belong together round by round.
pub(crate) fn in_turns<const N: usize>(
    limit: Limit,
    mut turns: [Turn<'_>; N],
) -> [Result<Vec<f64>>; N] {
    let start = Instant::now();
    for round in 0..limit.most {
        if round >= limit.least && start.elapsed() >= limit.time {
            break;
        }
        for place in 0..N {
            let turn = &mut turns[if round % 2 == 0 { place } else { N - 1 - place }];
            if let Ok(values) = &mut turn.values {
                match (turn.measure)() {
                    Ok(value) => values.push(value),
                    Err(error) => turn.values = Err(error),
                }
            }
        }
    }
    turns.map(|turn| turn.values)
}

/// `f` of the values of each round.
pub(crate) fn paired(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;

    use super::*;

    #[test]
    fn quartiles_lie_between_values_where_they_must() {
        let spread = Spread::of_values(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.5, low: 1.75, high: 3.25, rounds: 4 });
        let single = Spread::of_values(&[7.0]).unwrap();
        assert_eq!((single.low, single.median, single.high), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of_values(&[]), None);
    }

    #[test]
    fn turns_alternate_and_a_failing_one_does_not_stop_the_others() {
        let order = RefCell::new(String::new());
        let turn = |name: char, fails_at: usize| {
            let order = &order;
            let mut round = 0;
            Turn::new(move || {
                order.borrow_mut().push(name);
                round += 1;
                if round == fails_at {
                    bail!("{name} fails");
                }
                Ok(round as f64)
            })
        };
        let limit = Limit { least: 4, most: 4, time: Duration::ZERO };
        let [a, b] = in_turns(limit, [turn('a', 0), turn('b', 2)]);
        assert_eq!(order.into_inner(), "abbaaa");
        assert_eq!(a.unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(b.unwrap_err().to_string(), "b fails");
    }

    #[test]
    fn each_row_of_a_part_has_its_turn() {
        let limit = Limit { least: 5, most: 9, time: Duration::from_secs(40) };
        let late = Deadline::after(Duration::ZERO).part(limit, 3);
        assert_eq!((late.least, late.most, late.time), (1, 9, Duration::ZERO));
        let early = Deadline::after(Duration::from_secs(300)).part(limit, 3);
        assert!(early.time > Duration::from_secs(90) && early.time <= Duration::from_secs(100));
        assert!(Deadline::after(Duration::from_secs(9)).part(limit, 0).time > Duration::ZERO);
    }

    #[test]
    fn the_time_limit_holds_beyond_the_least_number_of_rounds() {
        let limit = Limit { least: 2, most: 1_000_000, time: Duration::ZERO };
        let [values] = in_turns(limit, [Turn::new(|| Ok(1.0))]);
        assert_eq!(values.unwrap().len(), 2);
    }
}
