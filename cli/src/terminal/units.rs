//! Numbers as people read them: SI units, no more digits than are known.

/// A duration that was measured through a histogram: two digits. `41ns`, `3.1µs`, `2.1ms`, `12s`.
pub(crate) fn duration(ns: u64) -> String {
    let (value, unit) = scale(ns);
    // Fractions of a nanosecond aren't known.
    let significant = if unit == "ns" { 0 } else { 2 };
    format!("{}{unit}", digits(value, significant))
}

/// A duration that was summed exactly: three digits. `412 ms`, `12.4 s`.
pub(crate) fn elapsed(ns: u64) -> String {
    let (value, unit) = scale(ns);
    let significant = if unit == "ns" { 0 } else { 3 };
    format!("{} {unit}", digits(value, significant))
}

/// A moment, as time since the start of the run: `+19.9 ms`, or `0` for the start itself.
pub(crate) fn moment(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { format!("+{}", elapsed(ns)) }
}

/// A number of things: as it is below 10,000, then `18.2k`, `1.20M`, `41.2M`.
pub(crate) fn count(number: u64) -> String {
    if number < 10_000 {
        return number.to_string();
    }
    let mut value = number as f64;
    for unit in ["", "k", "M", "G", "T", "P"] {
        // 999.5 would be rounded to a number of four digits.
        if value < 999.5 {
            return format!("{}{unit}", digits(value, 3));
        }
        value /= 1000.0;
    }
    format!("{value:.0}E")
}

/// A number of bytes: `74.2 MB`.
pub(crate) fn quantity(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            return format!("{} {unit}", digits(value, if unit == "B" { 0 } else { 3 }));
        }
        value /= 1000.0;
    }
    format!("{value:.0} EB")
}

/// A share: `29.4 %`. What isn't zero isn't shown as zero.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        value if value > 0.0 && value < 0.05 => "<0.1 %".to_owned(),
        value => format!("{value:.1} %"),
    }
}

/// The largest unit in which `ns` is at least 1.
fn scale(ns: u64) -> (f64, &'static str) {
    let ns = ns as f64;
    // The limits are where three digits would round to the next unit.
    match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    }
}

/// `value` with `significant` digits, or more if it takes more to write its whole part.
fn digits(value: f64, significant: usize) -> String {
    // The limits are where rounding adds a digit.
    let whole = match value {
        value if value < 9.995 => 1,
        value if value < 99.95 => 2,
        _ => 3,
    };
    format!("{value:.*}", significant.saturating_sub(whole))
}

/// `1 thread`, `3 threads`.
pub(crate) fn plural(number: u64, what: &str) -> String {
    let ending = match number {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let of_histograms = [
            (0, "0ns"),
            (41, "41ns"),
            (999, "999ns"),
            (1_000, "1.0µs"),
            (3_100, "3.1µs"),
            (88_400, "88µs"),
        ];
        for (ns, text) in of_histograms {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(duration(999_600), "1.0ms");
        assert_eq!(duration(2_140_000), "2.1ms");
        assert_eq!(duration(3_600_000_000_000), "3600s");
        assert_eq!(elapsed(12_412_000_000), "12.4 s");
        assert_eq!(elapsed(412_400_000), "412 ms");
        assert_eq!(elapsed(999_960_000), "1.00 s");
        assert_eq!(elapsed(u64::MAX), "18446744074 s");
        assert_eq!(moment(0), "0");
        assert_eq!(moment(19_900_000), "+19.9 ms");
    }

    #[test]
    fn counts_and_shares() {
        let counts = [
            (0, "0"),
            (9_999, "9999"),
            (18_240, "18.2k"),
            (999_600, "1.00M"),
            (41_200_000, "41.2M"),
        ];
        for (number, text) in counts {
            assert_eq!(count(number), text);
        }
        assert_eq!(count(u64::MAX), "18E");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.000_1), "<0.1 %");
        assert_eq!(percent(0.294), "29.4 %");
        assert_eq!(percent(1.0), "100.0 %");
    }
}
