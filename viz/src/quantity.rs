//! Values as text: three significant digits and an SI prefix. Whatever is shown to people, in pictures, on the page and in the
//! terminal, is written here.

use crate::Unit;

const DURATIONS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const COUNTS: [(f64, &str); 7] =
    [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")];
const BYTES: [(f64, &str); 7] =
    [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"), (1e18, "EB")];
/// Smaller numbers of things are shown whole.
const WHOLE: f64 = 10_000.0;

/// `value` in `unit`, without the noun of a count: `412 ms`, `12.4 s`; `9999`, `18.2k`.
#[must_use]
pub fn quantity(value: f64, unit: Unit<'_>) -> String {
    match unit {
        Unit::Nanoseconds => scaled(value, &DURATIONS, 3, " "),
        Unit::Count(_) if value < WHOLE && value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count(_) => scaled(value, &COUNTS, 3, ""),
    }
}

/// A number of things.
#[must_use]
pub fn count(number: u64) -> String {
    quantity(number as f64, Unit::Count(""))
}

/// A number of bytes: `74.2 MB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    scaled(number as f64, &BYTES, 3, " ")
}

/// A duration that was measured through a histogram, of which two digits are known: `41 ns`, `3.1 µs`.
#[must_use]
pub fn rough_duration(ns: u64) -> String {
    scaled(ns as f64, &DURATIONS, 2, " ")
}

/// `1 thread`, `3 threads`, `2 processes`.
#[must_use]
pub fn plural(number: u64, what: &str) -> String {
    let ending = match number {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", count(number))
}

/// `part` of `whole` in percent. What is something is not shown as nothing, and what is not all not as all.
#[must_use]
pub fn share(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if part < whole && percent >= 99.95 {
        ">99.9 %".to_owned()
    } else if percent == 0.0 || percent >= 99.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// With so many digits, or more if it takes more to write the whole part; `space` is before a symbol.
fn scaled(value: f64, steps: &[(f64, &str)], significant: usize, space: &str) -> String {
    // 999.5 would be written as 1000: from there on the next prefix is the right one.
    let fits = |&&(size, _): &&(f64, &str)| value / size < 999.5;
    let Some(&(size, symbol)) = steps.iter().find(fits).or(steps.last()) else {
        return String::new();
    };
    let number = value / size;
    // The limits are where rounding adds a digit.
    let whole = match number {
        n if n == 0.0 || n >= 99.95 || (size == 1.0 && n.fract() == 0.0) => significant,
        n if n >= 9.995 => 2,
        _ => 1,
    };
    let space = if symbol.is_empty() { "" } else { space };
    format!("{number:.*}{space}{symbol}", significant.saturating_sub(whole))
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
    fn durations_of_histograms_have_two() {
        let cases = [
            (0, "0 ns"),
            (41, "41 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (3_100, "3.1 µs"),
            (88_400, "88 µs"),
            (999_600, "1.0 ms"),
            (2_140_000, "2.1 ms"),
            (3_600_000_000_000, "3600 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(rough_duration(ns), text);
        }
    }

    #[test]
    fn counts_are_whole_as_long_as_they_are_short() {
        let cases = [
            (0, "0"),
            (62, "62"),
            (9_999, "9999"),
            (18_240, "18.2k"),
            (999_600, "1.00M"),
            (41_200_000, "41.2M"),
            (u64::MAX, "18.4E"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
        assert_eq!(bytes(74_200_000), "74.2 MB");
        assert_eq!(bytes(512), "512 B");
        assert_eq!([1, 2].map(|number| plural(number, "process")), ["1 process", "2 processes"]);
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_all() {
        let cases = [
            (0.0, 5.0, "0 %"),
            (1.0, 1e6, "<0.1 %"),
            (1.0, 3.0, "33.3 %"),
            (9994.0, 1e4, "99.9 %"),
            (9996.0, 1e4, ">99.9 %"),
            (1.0, 1.0, "100 %"),
            (0.0, 0.0, "0 %"),
        ];
        for (part, whole, text) in cases {
            assert_eq!(share(part, whole), text, "{part} of {whole}");
        }
    }
}
