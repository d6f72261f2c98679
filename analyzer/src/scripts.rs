//! The scripts that interpreters run: `hg` is what a user started, whatever `python3` its first line names.

/// What the options of an interpreter say of the script.
struct Interpreter {
    /// Its name, without a version.
    name: &'static str,
    /// Options, by letter, after which there is code in the place of a script.
    code: &'static str,
    /// Options that have a value: the rest of the argument, or else the next one.
    valued: &'static str,
    /// Long options whose value is the next argument.
    long_valued: &'static [&'static str],
    /// The option after which there is a module in the place of a script.
    module: Option<char>,
}

const fn shell(name: &'static str) -> Interpreter {
    Interpreter {
        name,
        code: "cs",
        valued: "oO",
        long_valued: &["--rcfile", "--init-file"],
        module: None,
    }
}

const fn python(name: &'static str) -> Interpreter {
    Interpreter {
        name,
        code: "c",
        valued: "WX",
        long_valued: &["--check-hash-based-pycs"],
        module: Some('m'),
    }
}

const fn node(name: &'static str) -> Interpreter {
    let long_valued = &["--require", "--import", "--loader", "--experimental-loader", "--env-file"];
    Interpreter { name, code: "ep", valued: "rC", long_valued, module: None }
}

const INTERPRETERS: &[Interpreter] = &[
    shell("sh"),
    shell("dash"),
    shell("bash"),
    shell("ksh"),
    shell("zsh"),
    python("python"),
    python("pypy"),
    node("node"),
    node("nodejs"),
    Interpreter { name: "perl", code: "eE", valued: "IMmFilxDCV0", long_valued: &[], module: None },
    Interpreter {
        name: "ruby",
        code: "e",
        valued: "IrCEFKTWix0",
        long_valued: &["--encoding", "--external-encoding", "--internal-encoding"],
        module: None,
    },
];

/// Of Perl and Ruby, options whose value is never the next argument.
const ATTACHED: &str = "MmFilxDCVKTWE0";
/// Code that a user has given with an option, in these long forms.
const LONG_CODE: [&str; 2] = ["--eval", "--print"];

/// The script, or the module, that an executable runs, by name; `None` if it is no interpreter, or runs no file.
pub(crate) fn script(executable: &str, command: &[String]) -> Option<String> {
    let name = file_name(executable);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let interpreter = INTERPRETERS.iter().find(|one| one.name == stem)?;
    let mut arguments = command.iter().skip(1).map(String::as_str);
    loop {
        let argument = arguments.next()?;
        if let Some(long) = argument.strip_prefix("--") {
            match () {
                () if long.is_empty() => return named(arguments.next()?),
                () if LONG_CODE.iter().any(|code| argument.starts_with(code)) => return None,
                () if interpreter.long_valued.contains(&argument) => drop(arguments.next()),
                () => {}
            }
            continue;
        }
        let Some(letters) = argument.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty())
        else {
            return named(argument);
        };
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            if interpreter.code.contains(letter) {
                return None;
            }
            let is_module = interpreter.module == Some(letter);
            if !is_module && !interpreter.valued.contains(letter) {
                continue;
            }
            let is_attached =
                matches!(interpreter.name, "perl" | "ruby") && ATTACHED.contains(letter);
            let value = if rest.is_empty() && !is_attached { arguments.next()? } else { rest };
            if is_module {
                return named(value);
            }
            break;
        }
    }
}

/// A script from a pipe or from standard input has no name.
fn named(path: &str) -> Option<String> {
    let is_file =
        !path.starts_with('-') && !path.starts_with("/dev/") && !path.starts_with("/proc/");
    is_file.then(|| file_name(path).to_owned())
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::script;

    fn of(line: &str) -> Option<String> {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        script(&command[0], &command)
    }

    #[test]
    fn the_first_argument_that_is_no_option_is_the_script() {
        for (line, expected) in [
            ("/usr/bin/python3 /usr/bin/hg log -p", "hg"),
            ("/usr/bin/python3.11 -I -X dev -Wignore /srv/bench.py -c x", "bench.py"),
            ("python3 -m pytest -q", "pytest"),
            ("python3 -Bmpytest", "pytest"),
            ("perl -w -I lib -Mstrict /usr/bin/ack x", "ack"),
            ("/usr/bin/perl5.36.0 -CS tool.pl", "tool.pl"),
            ("ruby -Ilib -rset test/all.rb", "all.rb"),
            ("node --max-old-space-size=100 --require ./a.js server.js", "server.js"),
            ("/bin/sh -e ./configure --prefix=/usr", "configure"),
            ("/usr/bin/bash -o pipefail +x build.sh", "build.sh"),
            ("bash -- -x", ""),
            ("/usr/bin/python3 app/", "app"),
        ] {
            let expected = Some(expected.to_owned()).filter(|name| !name.is_empty());
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn code_in_an_option_and_other_programs_have_none() {
        for line in [
            "/bin/sh -c ./configure",
            "bash -ec x",
            "bash -s x",
            "python3 -Bc pass",
            "python3",
            "python3 -",
            "bash /dev/fd/63",
            "perl -ne print file",
            "node --eval x y",
            "node -e x",
            "ruby -e x y",
            "/usr/bin/sort file",
            "/usr/bin/python3-config --libs",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
