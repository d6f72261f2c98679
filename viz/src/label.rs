//! Labels as text that is safe to show.

/// `label` with everything that is not plain visible text written as `\u{…}`: control codes,
/// which XML does not allow, and invisible characters that reorder or hide what stands near them.
#[must_use]
pub fn visible(label: &str) -> String {
    let mut text = String::with_capacity(label.len());
    for c in label.chars() {
        if is_plain(c) { text.push(c) } else { text.extend(c.escape_unicode()) }
    }
    text
}

/// `text` as XML character data.
pub(crate) fn escape_xml(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '&' => xml.push_str("&amp;"),
            '"' => xml.push_str("&quot;"),
            '\'' => xml.push_str("&apos;"),
            c => xml.push(c),
        }
    }
    xml
}

/// `name`, and what is enough to know it by where there is less room, longest first: a library without its version, a place without its file, a function
/// without its arguments, and that without what it is in.
pub(crate) fn shorter_and_shorter(name: &str) -> Vec<String> {
    let mut forms = vec![name.to_owned()];
    let mut add = |form: &str| {
        if !form.is_empty() && forms.last().is_some_and(|last| form.len() < last.len()) {
            forms.push(form.to_owned());
        }
    };
    if let Some((_, place)) = name.rsplit_once("+0x") {
        add(&format!("+0x{place}"));
    } else if let Some(stem) = without_version(name) {
        add(stem);
    } else if !name.contains("operator") && !name.contains(".(") {
        let bare = without_arguments(name);
        add(bare.trim_start_matches("::").trim_end());
        add(bare.rsplit("::").next().unwrap_or_default().trim());
    }
    forms
}

/// The name of a library without its ending and version; `None` if it has none.
fn without_version(name: &str) -> Option<&str> {
    let is_ending =
        |&(at, so): &(usize, &str)| matches!(name.as_bytes().get(at + so.len()), None | Some(b'.'));
    let (at, _) = name.match_indices(".so").find(is_ending)?;
    name.get(..at)
}

/// `name` without what is in parentheses or angle brackets.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_usize;
    let mut bare = String::new();
    let mut before = ' ';
    for c in name.chars() {
        let is_arrow = std::mem::replace(&mut before, c) == '-' && c == '>';
        match c {
            _ if is_arrow => {}
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    bare
}

fn is_plain(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    // The last two of the basic plane are not XML characters.
    !c.is_control() && !invisible && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_shorter_forms() {
        for (name, shorter) in [
            ("libcrypto.so.3", &["libcrypto"][..]),
            ("libz.so.1+0x5d80", &["+0x5d80"]),
            ("deflate", &[]),
            ("net.socket", &[]),
            ("main.(*worker).add", &[]),
            ("<Box<dyn Fn() -> i32> as FnOnce>::call", &["call"]),
            (
                "std::vector<int, std::allocator<int>>::push_back(int&&)",
                &["std::vector::push_back", "push_back"],
            ),
            ("(anonymous namespace)::resolve(char const*)", &["resolve"]),
            ("<alloc::vec::Vec<T> as core::fmt::Debug>::fmt", &["fmt"]),
            ("std::ostream::operator<<(int)", &[]),
            ("<module>", &[]),
            (".so", &[]),
        ] {
            assert_eq!(shorter_and_shorter(name)[0], name);
            assert_eq!(&shorter_and_shorter(name)[1..], shorter);
        }
    }

    #[test]
    fn control_and_reordering_characters_become_visible() {
        assert_eq!(visible("a\u{1b}[31m\0\n\u{202e}b"), r"a\u{1b}[31m\u{0}\u{a}\u{202e}b");
        assert_eq!(visible("\u{ffff}\u{85}"), r"\u{ffff}\u{85}");
        assert_eq!(visible("operator<<(漢字, µ)"), "operator<<(漢字, µ)");
    }
}
