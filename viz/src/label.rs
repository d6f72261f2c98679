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
    fn control_and_reordering_characters_become_visible() {
        assert_eq!(visible("a\u{1b}[31m\0\n\u{202e}b"), r"a\u{1b}[31m\u{0}\u{a}\u{202e}b");
        assert_eq!(visible("\u{ffff}\u{85}"), r"\u{ffff}\u{85}");
        assert_eq!(visible("operator<<(漢字, µ)"), "operator<<(漢字, µ)");
    }
}
