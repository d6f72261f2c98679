//! Numbers as people read them, as `chase_viz` writes them.

use chase_analyzer::ArgumentUnit;
use chase_viz::Unit;

pub(crate) use chase_viz::{bytes as quantity, count, plural, rough_duration as duration};

/// A duration that was summed exactly: `412 ms`, `12.4 s`.
pub(crate) fn elapsed(ns: u64) -> String {
    chase_viz::quantity(ns as f64, Unit::Nanoseconds)
}

/// A moment, as time since the start of the run: `+19.9 ms`, or `0` for the start itself.
pub(crate) fn moment(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { format!("+{}", elapsed(ns)) }
}

/// A share: `29.4 %`.
pub(crate) fn percent(share: f64) -> String {
    chase_viz::share(share, 1.0)
}

/// A value of an argument.
pub(crate) fn amount(unit: ArgumentUnit, value: f64) -> String {
    let time = |ns_each: f64| duration((value * ns_each).min(u64::MAX as f64) as u64);
    match unit {
        ArgumentUnit::Bytes => quantity(value as u64),
        ArgumentUnit::Items => count(value.round() as u64),
        ArgumentUnit::Ms => time(1e6),
        ArgumentUnit::Us => time(1e3),
        ArgumentUnit::S => time(1e9),
        ArgumentUnit::Level => format!("level {value:.0}"),
    }
}
