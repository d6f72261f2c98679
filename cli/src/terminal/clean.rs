//! Names come from other people's files: none may steer the terminal.

use std::borrow::Cow;

/// `text` with control characters and invisible direction marks written out (`\x1b`, `\u{202e}`).
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !is_unsafe(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
        }
    }
    Cow::Owned(out)
}

/// JSON with the control characters escaped that JSON itself lets pass; they only occur in strings.
pub(crate) fn clean_json(json: String) -> String {
    let passes = |c: char| c != '\n' && is_unsafe(c);
    if !json.contains(passes) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if passes(c) { out.push_str(&format!("\\u{:04x}", c as u32)) } else { out.push(c) }
    }
    out
}

/// Controls (C0, DEL, C1) and marks that change the direction or the place of what follows.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(clean("std::vector<…>"), "std::vector<…>");
        assert_eq!(
            clean("\x1b[2Jboo\x07\n\u{9b}1m\u{202e}"),
            "\\x1b[2Jboo\\x07\\n\\x9b1m\\u{202e}"
        );
        let json = clean_json("{\n\"a\": \"\u{9b}\u{7f}\u{202e}é\"}".to_owned());
        assert_eq!(json, "{\n\"a\": \"\\u009b\\u007f\\u202eé\"}");
    }
}
