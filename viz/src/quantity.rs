//! Values as text: three significant digits and an SI prefix.

use crate::Unit;

const DURATIONS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const COUNTS: [(f64, &str); 6] =
    [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P")];

/// `value` in `unit`, without the noun of a count.
#[must_use]
pub fn quantity(value: f64, unit: Unit<'_>) -> String {
    match unit {
        Unit::Nanoseconds => scaled(value, &DURATIONS),
        Unit::Count(_) => scaled(value, &COUNTS),
    }
}

/// `part` of `whole` in percent.
#[must_use]
pub fn share(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
    if percent > 0.0 && percent < 0.05 {
        "< 0.1 %".to_owned()
    } else if part < whole && percent >= 99.95 {
        "> 99.9 %".to_owned()
    } else if percent == 0.0 || percent >= 99.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    // 999.5 would be written as 1000: from there on the next prefix is the right one.
    let fits = |&&(size, _): &&(f64, &str)| value / size < 999.5;
    let Some(&(size, symbol)) = steps.iter().find(fits).or(steps.last()) else {
        return String::new();
    };
    let number = value / size;
    let decimals = match number {
        n if n == 0.0 || n >= 99.95 || (size == 1.0 && n.fract() == 0.0) => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let space = if symbol.is_empty() { "" } else { " " };
    format!("{number:.decimals$}{space}{symbol}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_the_fitting_prefix() {
        let cases = [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (7.25, "7.25 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (1_500.0, "1.50 µs"),
            (12_340.0, "12.3 µs"),
            (99_960.0, "100 µs"),
            (3_104_999.0, "3.10 ms"),
            (12_400_000_000.0, "12.4 s"),
            (86_400e9, "86400 s"),
        ];
        for (value, text) in cases {
            assert_eq!(quantity(value, Unit::Nanoseconds), text, "{value} ns");
        }
    }

    #[test]
    fn counts_are_whole_until_a_prefix_is_needed() {
        let cases =
            [(0.0, "0"), (62.0, "62"), (999.0, "999"), (1000.0, "1.00 k"), (4.12e7, "41.2 M")];
        for (value, text) in cases {
            assert_eq!(quantity(value, Unit::Count("calls")), text, "{value}");
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_all() {
        let cases = [
            (0.0, 5.0, "0 %"),
            (1.0, 1e6, "< 0.1 %"),
            (1.0, 3.0, "33.3 %"),
            (9994.0, 1e4, "99.9 %"),
            (9996.0, 1e4, "> 99.9 %"),
            (1.0, 1.0, "100 %"),
            (0.0, 0.0, "0 %"),
        ];
        for (part, whole, text) in cases {
            assert_eq!(share(part, whole), text, "{part} of {whole}");
        }
    }
}
