//! Symbols as their authors wrote them.

use std::borrow::Cow;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest demangled name, in bytes. Substitutions let a short symbol grow without bound.
const MAX_LEN: usize = 16 * 1024;
/// Deepest nesting followed in a mangled name; each level takes kilobytes of stack. (Of 121,038 names of LLVM and of the tests'
/// programs, 22 need more than 64, and none more than this.)
const MAX_DEPTH: u32 = 96;

/// The full source name of `symbol`: C++ (Itanium ABI) with parameters, Rust (legacy without its
/// hash, and v0). Any other name, and one that can't be read, is given back as it is.
#[must_use]
pub fn demangle(symbol: &str) -> Cow<'_, str> {
    // Legacy Rust symbols are valid Itanium ones, so Rust is asked first; it insists on the hash.
    rust(symbol).or_else(|| cpp(symbol)).map_or(Cow::Borrowed(symbol), Cow::Owned)
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut text = Limited(String::new());
    std::fmt::Write::write_fmt(&mut text, format_args!("{name:#}")).ok()?;
    Some(text.0)
}

fn cpp(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") && !symbol.starts_with("___Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let parsed = Symbol::new_with_options(symbol, &parse).ok()?;
    let mut text = Limited(String::new());
    let options = DemangleOptions::default().recursion_limit(MAX_DEPTH);
    parsed.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// Which of the constructors or destructors it is that a compiler makes of one in the source, all of one name: for `complete`
/// objects, for the part of an object that is the `base` of another, or, of destructors, `deleting` the object, too.
#[must_use]
pub fn variant(symbol: &str) -> Option<&'static str> {
    const VARIANTS: [(&str, &str, &str); 5] = [
        ("C1E", "C2E", "complete"),
        ("C2E", "C1E", "base"),
        ("D0E", "D2E", "deleting"),
        ("D1E", "D2E", "complete"),
        ("D2E", "D1E", "base"),
    ];
    /// Each takes some time to read.
    const MOST: usize = 16;
    let name = cpp(symbol)?;
    // The letters may be a part of a name, which would be another one then.
    let is_marked = |mark: &str, other: &str| {
        let mut places = symbol.match_indices(mark).take(MOST).map(|(at, _)| at);
        places.any(|at| {
            let changed = [&symbol[..at], other, &symbol[at + mark.len()..]].concat();
            cpp(&changed).as_ref() == Some(&name)
        })
    };
    VARIANTS.iter().find(|(mark, other, _)| is_marked(mark, other)).map(|&(_, _, variant)| variant)
}

/// A string that refuses to grow beyond [`MAX_LEN`].
struct Limited(String);

impl std::fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MAX_LEN {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_three_kinds() {
        let cases = [
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            (
                "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
                "core::fmt::Formatter::write_str",
            ),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_RNCNvCs1234_7mycrate4main0", "mycrate::main::{closure#0}"),
            ("pthread_create", "pthread_create"),
            ("_Znonsense", "_Znonsense"),
            ("", ""),
        ];
        for (symbol, name) in cases {
            assert_eq!(demangle(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn constructors_of_one_name_are_told_apart() {
        let cases = [
            ("_ZN1AC1Ev", Some("complete")),
            ("_ZNSt6vectorIiSaIiEEC2ERKS1_", Some("base")),
            ("_ZN1AD0Ev", Some("deleting")),
            ("_ZN1AD1Ev", Some("complete")),
            ("_ZN1AD2Ev", Some("base")),
            // A function `C1E`, and one of a class `D2E`.
            ("_ZN1A3C1EEv", None),
            ("_ZN3D2E1fEv", None),
            ("_ZN3D2EC2Ev", Some("base")),
            ("C1E", None),
        ];
        for (symbol, expected) in cases {
            assert_eq!(variant(symbol), expected, "{symbol}");
        }
    }

    /// The type of what a thread of `std::async` runs, as GCC 10 makes it.
    #[test]
    fn nested_as_deep_as_libraries_nest() {
        let name = demangle(
            "_ZTSNSt6thread11_State_implINS_8_InvokerISt5tupleIJZNSt13__future_base17_Async_state_implI\
             NS1_IS2_IJZ4mainEUlvE2_EEEEvEC4EOS7_EUlvE_EEEEEE",
        );
        assert!(name.contains("std::tuple<main::{lambda()#4}>"), "{name}");
    }

    /// Each level names the one before twice, so the full text has 2^levels parts.
    #[test]
    fn a_name_that_explodes_is_left_alone() {
        let nested = |levels: usize| {
            let mut symbol = String::from("_Z1fI");
            for level in 0..levels {
                // Each level adds two substitutions: the template and its instance.
                let id = if level == 0 { String::new() } else { base36(2 * level - 1) };
                symbol.push_str(&format!("1aIS{id}_S{id}_E"));
            }
            symbol + "Evv"
        };
        assert!(demangle(&nested(4)).starts_with("void f<"), "{}", demangle(&nested(4)));
        assert_eq!(demangle(&nested(60)), nested(60));
    }

    /// Reading a name recurses: the limit must leave room on the stack of a thread, 2 MB, even in
    /// an unoptimised build.
    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        for nesting in ["P", "PF", "N1aI", "_RINvC1a"] {
            let symbol = format!("_Z1f{}i", nesting.repeat(50_000));
            assert_eq!(demangle(&symbol), symbol);
        }
        let symbol = format!("_RMC1a{}u", "P".repeat(50_000));
        assert!(demangle(&symbol).len() <= symbol.len());
    }

    fn base36(number: usize) -> String {
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let digit = |n: usize| char::from(digits[n % 36]);
        if number < 36 {
            digit(number).into()
        } else {
            [digit(number / 36), digit(number)].iter().collect()
        }
    }
}
