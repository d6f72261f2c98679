//! What can be typed, by command. A test runs each of them (`tests/tests/documented.rs`).

use clap::Command;

/// By command; those that have more to say after their help have it where they are defined.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "libs",
        "
  chase-report libs                       of the newest run in chase.data
  chase-report libs --sort calls --top 5  the five that are called most
  chase-report libs --lib 'libc.so*' --csv",
    ),
    (
        "apis",
        "
  chase-report apis --lib 'libz*'         the functions of one library
  chase-report apis --api 'pthread_*'     functions by name
  chase-report apis --sort p99.9          those with the slowest calls first",
    ),
    (
        "hot",
        "
  chase-report hot --top 10
  chase-report hot --lib 'libz*'          in one library",
    ),
    (
        "threads",
        "
  chase-report threads --groups           how evenly threads share work
  chase-report threads --thread worker    those of one name
  chase-report threads --json",
    ),
    (
        "tail",
        "
  chase-report tail --top 10
  chase-report tail --api crc32 --group worker",
    ),
    (
        "waits",
        "
  chase-report waits
  chase-report waits --api 'pthread_mutex_*' --group worker",
    ),
    ("findings", "\n  chase-report findings\n  chase-report findings --json"),
    (
        "graph",
        "
  chase-report graph
  chase-report graph --format svg -o waits.svg
  chase-report graph --format dot         for Graphviz",
    ),
    (
        "path",
        "
  chase-report path
  chase-report path --to 2s                    the part of it in the first two seconds
  chase-report path --without 'lib:libc.so*'   what the run would save at most without its calls
  chase-report path --json",
    ),
    (
        "tree",
        "
  chase-report tree --top 20
  chase-report tree --api crc32           with the contexts that it is called in
  chase-report tree --group worker        where the threads of one group differ",
    ),
    (
        "syscalls",
        "
  chase-report syscalls
  chase-report syscalls --api fread       which system calls fread makes, and how often
  chase-report syscalls --by thread",
    ),
    (
        "narrate",
        "
  chase record --narrate ./app
  chase-report narrate --from 0s --to 20ms
  chase-report narrate --thread worker",
    ),
    (
        "components",
        "
  chase record --narrate ./app
  chase-report components
  chase-report components --graph svg -o parts.svg",
    ),
    ("not-seen", "\n  chase-report not-seen\n  chase-report not-seen --json"),
    (
        "html",
        "
  chase-report html -o report.html        the newest run in chase.data
  chase-report html --force old.data new.data -o report.html
                                          new.data, with what changed since old.data",
    ),
    (
        "export",
        "
  chase-report export --format speedscope -o app.speedscope.json
  chase-report export --format perfetto -o app.pftrace
  chase-report export --format folded     to standard output",
    ),
    ("charts", "\n  chase-report charts -o charts"),
];

/// Adds its examples to a command.
pub(super) fn add(command: Command) -> Command {
    let found = EXAMPLES.iter().find(|(name, _)| *name == command.get_name());
    match found {
        Some((_, examples)) => command.after_help(format!("Examples:{examples}")),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Cli;

    #[test]
    fn every_command_has_examples() {
        let command = Cli::command();
        for view in command.get_subcommands().filter(|view| !view.is_hide_set()) {
            let help = view.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n"), "{}: {help}", view.get_name());
            assert!(help.lines().all(|line| line.chars().count() <= 130), "{}", view.get_name());
        }
    }
}
