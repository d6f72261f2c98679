//! Names that fit a table.

use std::borrow::Cow;

/// Template arguments up to this many characters are kept.
const KEEP_ARGUMENTS: usize = 20;
/// Suffixes that compilers add to the copies they make of a function.
const CLONES: [&str; 8] =
    [".part.", ".isra.", ".constprop.", ".cold", ".lto_priv.", ".llvm.", ".localalias", " [clone"];

/// A short form of a demangled name: without parameters, return type, compiler's suffixes and the
/// library's default template arguments; longer template arguments become `…`, lambdas lose their
/// parameters, and the paths in Rust's `<T as Trait>` keep their last part.
#[must_use]
pub fn shorten(name: &str) -> Cow<'_, str> {
    let bare = without_suffix(name);
    if !bare.contains(['<', '(', '{', ' ']) {
        return Cow::Borrowed(bare);
    }
    let chars: Vec<char> = bare.chars().collect();
    let text = sequence(&chars, 0);
    Cow::Owned(without_return_type(&text).to_owned())
}

/// The same with the parameters, which tell functions of one name apart: `std::locale::locale(std::locale const&)`. `None` if the
/// name has none.
#[must_use]
pub fn shorten_with_parameters(name: &str) -> Option<String> {
    let bare = without_suffix(name);
    let end = bare.rfind(')')? + 1;
    let chars: Vec<char> = bare[..end].chars().collect();
    // Backwards: names may be long, and of no language.
    let mut depth = 0_usize;
    let start = chars.iter().rposition(|&c| {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let parameters = arguments(&chars[start + 1..chars.len() - 1], 0).join(", ");
    // `const`, as behind a method that leaves its object as it is.
    Some(format!("{}({parameters}){}", shorten(name), &bare[end..]))
}

/// The name without what a compiler adds to that of a copy, or of a part that it moves away: `f` of `f.cold`.
#[must_use]
pub fn without_suffix(name: &str) -> &str {
    let end = CLONES.iter().filter_map(|suffix| name.find(suffix)).filter(|&at| at > 0).min();
    name[..end.unwrap_or(name.len())].trim_end()
}

/// Shortens `chars`, a path such as `a::b<c>::d(e) const`.
fn sequence(chars: &[char], depth: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        if let Some(operator) = operator_len(rest, &out) {
            out.extend(&rest[..operator]);
            at += operator;
            continue;
        }
        match rest[0] {
            open @ ('<' | '(' | '{') => {
                let Some(len) = group_len(rest) else {
                    out.extend(rest);
                    break;
                };
                let inside = &rest[1..len - 1];
                match open {
                    '<' => angle(&mut out, inside, depth),
                    '{' => brace(&mut out, inside),
                    _ if starts_with(rest, "(anonymous namespace)") => out.push_str("(anon)"),
                    // Go's type of a method: `main.(*worker).add`.
                    _ if out.ends_with('.') => out.extend(&rest[..len]),
                    // A parameter list ends the name, except that of an enclosing function.
                    _ if starts_with(&rest[len..], "::") => {}
                    _ if starts_with(&rest[len..], " const::") => at += " const".len(),
                    _ => break,
                }
                at += len;
            }
            c => {
                out.push(c);
                at += 1;
            }
        }
    }
    out.replace("std::__cxx11::", "std::").replace("std::__1::", "std::")
}

/// Length of an `operator…` token whose brackets are part of the name.
fn operator_len(rest: &[char], before: &str) -> Option<usize> {
    const TOKENS: [&str; 12] =
        ["<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"];
    let word = "operator";
    let inside_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if inside_word || !starts_with(rest, word) {
        return None;
    }
    let token = TOKENS.iter().find(|token| starts_with(&rest[word.len()..], token))?;
    Some(word.len() + token.len())
}

/// Template or generic arguments, or Rust's `<T as Trait>`.
fn angle(out: &mut String, inside: &[char], depth: usize) {
    let rust_path = out.is_empty() || out.ends_with([' ', '&', '<', ',']);
    if rust_path {
        let text: String = inside.iter().collect();
        let parts: Vec<String> = text.split(" as ").map(last_segment).collect();
        out.push('<');
        out.push_str(&parts.join(" as "));
        out.push('>');
        return;
    }
    if out.ends_with("::") {
        // Rust's turbofish: the path says enough.
        out.truncate(out.len() - 2);
        return;
    }
    let mut arguments = if depth < 8 { arguments(inside, depth) } else { vec!["…".to_owned()] };
    arguments.retain(|argument| !is_default(argument));
    let text = arguments.join(", ");
    let string = out.ends_with("std::basic_string") || out.ends_with("::__cxx11::basic_string");
    if string && text == "char" {
        out.truncate(out.len() - "basic_string".len());
        out.push_str("string");
        return;
    }
    out.push('<');
    out.push_str(if text.chars().count() <= KEEP_ARGUMENTS { &text } else { "…" });
    out.push('>');
}

/// `{lambda(int)#1}` and `{{closure}}`.
fn brace(out: &mut String, inside: &[char]) {
    let text: String = inside.iter().collect();
    let text = text.trim_matches(['{', '}']);
    let number = text.rfind('#').map_or("", |at| &text[at..]);
    let kind = text.split(['(', '#']).next().unwrap_or_default();
    out.push_str(&format!("{{{kind}{number}}}"));
}

fn is_default(argument: &str) -> bool {
    [
        "std::allocator<",
        "std::char_traits<",
        "std::less<",
        "std::default_delete<",
        "std::hash<",
        "std::equal_to<",
    ]
    .iter()
    .any(|prefix| argument.starts_with(prefix))
}

/// The arguments between the brackets, each shortened.
fn arguments(inside: &[char], depth: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at <= inside.len() {
        if at == inside.len() || inside[at] == ',' {
            let argument = sequence(&inside[start..at], depth + 1);
            out.push(argument.trim().to_owned());
            start = at + 1;
            at += 1;
        } else {
            at += group_len(&inside[at..]).unwrap_or(1);
        }
    }
    out
}

/// `alloc::vec::Vec<u8>` is `Vec`.
fn last_segment(path: &str) -> String {
    let generic = path.find('<').filter(|&at| at > 0).unwrap_or(path.len());
    let prefix_len = path.len() - path.trim_start_matches(['&', '*']).len();
    let bare = path[..generic].trim_end_matches("::");
    let start = bare.rfind("::").map_or(prefix_len, |at| at + 2);
    format!("{}{}", &path[..prefix_len], &bare[start.max(prefix_len)..])
}

/// Characters of the bracketed group that `rest` starts with, both brackets counted.
fn group_len(rest: &[char]) -> Option<usize> {
    let mut open = Vec::new();
    let mut previous = ' ';
    for (at, &c) in rest.iter().enumerate() {
        match c {
            '<' => open.push('>'),
            '(' => open.push(')'),
            '{' => open.push('}'),
            '[' => open.push(']'),
            '>' if previous == '-' => {}
            '>' | ')' | '}' | ']' if open.pop()? != c => return None,
            _ => {}
        }
        if open.is_empty() {
            return (at > 0).then_some(at + 1);
        }
        previous = c;
    }
    None
}

/// Templates carry their return type before the name: the last word outside brackets is the name.
fn without_return_type(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => {
                // `operator new`, `operator bool`, "vtable for": these spaces are the name's own.
                let word = text[start..at].rsplit("::").next().unwrap_or_default();
                if word == "operator" || text[at..].starts_with(" for ") || word == "for" {
                    return &text[start..];
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    &text[start..]
}

fn starts_with(chars: &[char], text: &str) -> bool {
    let mut chars = chars.iter();
    text.chars().all(|c| chars.next() == Some(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_in_a_table() {
        let cases = [
            ("pthread_create", "pthread_create"),
            ("main::worker(int)", "main::worker"),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector<int>::push_back",
            ),
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)",
                "std::string::append",
            ),
            (
                "std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, app::Record, std::less<void>>::find(int)",
                "std::map<…>::find",
            ),
            ("void app::each<int>(int (*)(int), int)", "app::each<int>"),
            ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<< <char>"),
            ("app::Less::operator<(app::Less const&) const", "app::Less::operator<"),
            (
                "main::{lambda(int, char)#2}::operator()(int, char) const",
                "main::{lambda#2}::operator()",
            ),
            ("run(int)::{lambda()#1}::operator()() const", "run::{lambda#1}::operator()"),
            ("(anonymous namespace)::hidden(int)", "(anon)::hidden"),
            ("operator new(unsigned long)", "operator new"),
            ("app::T::operator bool() const", "app::T::operator bool"),
            ("copy.part.0", "copy"),
            ("f(int) [clone .cold]", "f"),
            ("mycrate::run::{{closure}}", "mycrate::run::{closure}"),
            ("main.(*worker).add", "main.(*worker).add"),
            ("example.com/pool.(*Pool[...]).Get", "example.com/pool.(*Pool[...]).Get"),
            ("mycrate::run::{closure#0}", "mycrate::run::{closure#0}"),
            ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", "<Vec as Drop>::drop"),
            ("<&T as core::fmt::Debug>::fmt", "<&T as Debug>::fmt"),
            ("std::thread::spawn::<mycrate::main::{closure#0}, ()>", "std::thread::spawn"),
            ("a<b<c>", "a<b<c>"),
            ("", ""),
        ];
        for (name, short) in cases {
            assert_eq!(shorten(name), short, "{name}");
        }
    }

    #[test]
    fn parameters_tell_functions_of_one_name_apart() {
        let cases = [
            ("std::locale::locale()", Some("std::locale::locale()")),
            (
                "std::locale::locale(std::locale const&)",
                Some("std::locale::locale(std::locale const&)"),
            ),
            (
                "operator delete(void*, unsigned long)",
                Some("operator delete(void*, unsigned long)"),
            ),
            ("A::operator()(int) const", Some("A::operator()(int) const")),
            (
                "f(std::vector<int, std::allocator<int> > const&, B)",
                Some("f(std::vector<int> const&, B)"),
            ),
            ("malloc", None),
        ];
        for (name, told) in cases {
            assert_eq!(shorten_with_parameters(name).as_deref(), told);
        }
    }

    #[test]
    fn any_text_is_survived() {
        for text in [
            "<",
            ">",
            "((((",
            "a<>::",
            "{{{",
            "operator",
            "operator<",
            "::<>",
            "<as>",
            "…<…>…",
            " ( ",
            ")",
        ] {
            let _ = (shorten(text), shorten_with_parameters(text));
        }
        let _ = shorten_with_parameters(&format!("{})", "(".repeat(500_000)));
        let _ = shorten_with_parameters(&")".repeat(500_000));
        let _ = shorten(&"a<".repeat(5_000));
        let _ = shorten(&format!("{}{}", "a<".repeat(5_000), ">".repeat(5_000)));
    }
}
