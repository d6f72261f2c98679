//! Folded stacks: one line per stack, frames between semicolons, then the self time.

use crate::{Frame, Stacks};

/// `stacks` as folded lines; values are self times in nanoseconds. Stacks that took no time have no
/// line.
#[must_use]
pub fn folded(stacks: &Stacks) -> String {
    let names: Vec<String> = stacks.frames.iter().map(folded_frame).collect();
    let mut out = String::new();
    for (number, node) in stacks.with_values().filter(|(_, node)| node.self_ns > 0) {
        for (depth, &frame) in stacks.path(number).iter().enumerate() {
            out.push_str(if depth > 0 { ";" } else { "" });
            out.push_str(names.get(frame as usize).map_or("(unknown)", |name| name));
        }
        out.push_str(&format!(" {}\n", node.self_ns));
    }
    out
}

/// A frame as it stands in a line: `deflate [libz.so.1]`. What would end a frame or a line is
/// written otherwise.
#[must_use]
pub fn folded_frame(frame: &Frame) -> String {
    let plain = |text: &str| text.replace(';', ":").replace(steers, "?");
    if frame.function == frame.library {
        return plain(&frame.function);
    }
    format!("{} [{}]", plain(&frame.function), plain(&frame.library))
}

/// Whether a character steers a terminal: controls, and marks that change the direction or the place of what follows.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inferno_reads_what_was_written() {
        let text = folded(&crate::stacks::sample::stacks());
        let expected = "app 500\napp;deflate [libz.so.1] 70\n\
             app;deflate [libz.so.1];memcpy [libc.so.6] 30\n\
             app;odd:<img src=x>? 12 [libodd.so] 9\n";
        assert_eq!(text, expected);
        let mut svg = Vec::new();
        let mut options = inferno::flamegraph::Options::default();
        inferno::flamegraph::from_lines(&mut options, text.lines(), &mut svg).expect("drawn");
        let svg = String::from_utf8(svg).expect("UTF-8");
        assert!(svg.contains("deflate [libz.so.1] (100 samples, 16.42%)"), "{svg}");
    }
}
