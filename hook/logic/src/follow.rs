//! Whether a program is one of those that `CHASE_FOLLOW` lists.

use crate::text::{Text, file_name, glob};

/// The maximum length of a command line; longer ones are cut before patterns are applied.
const COMMAND: usize = 4096;

/// Whether an item of the comma-separated list matches the program. Items are globs: with a space, for the command
/// line; with a slash, for the executable's path; otherwise for its file name, or that of the first or second
/// argument (an interpreter's script).
pub fn is_named<'a>(
    list: &[u8],
    executable: &'a [u8],
    arguments: impl Iterator<Item = &'a [u8]>,
) -> bool {
    let mut command = Text::<COMMAND>::new();
    let mut names = [file_name(executable), b"", b""];
    for (i, argument) in arguments.enumerate() {
        command.push(if i > 0 { b" " } else { b"" }).push(argument);
        if let Some(name) = names.get_mut(1 + i) {
            *name = file_name(argument);
        }
    }
    list.split(|&byte| byte == b',').filter(|item| !item.is_empty()).any(|item| {
        if item.contains(&b' ') {
            glob(item, command.as_bytes())
        } else if item.contains(&b'/') {
            glob(item, executable)
        } else {
            names.iter().any(|name| !name.is_empty() && glob(item, name))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listed(list: &str) -> bool {
        let arguments = ["python3", "/srv/app/serve.py", "--port", "80"];
        let arguments = arguments.iter().map(|argument| argument.as_bytes());
        is_named(list.as_bytes(), b"/usr/bin/python3.11", arguments)
    }

    #[test]
    fn a_program_is_named_by_its_file_its_path_its_script_or_its_command() {
        for list in ["python3*", "sh,serve.py", "/usr/bin/*", "python3 *serve.py --port 80", "*"] {
            assert!(is_listed(list), "{list}");
        }
    }

    #[test]
    fn an_item_is_whole() {
        // The third argument is no script; a path is that of the executable, and not of the script.
        for list in ["", ",,", "python", "--port", "/srv/app/serve.py", "serve.py --port"] {
            assert!(!is_listed(list), "{list}");
        }
    }
}
