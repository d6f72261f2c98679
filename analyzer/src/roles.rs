//! Roles of processes, from the titles that servers set (`setproctitle`), without the parts that differ between
//! processes of the same role.

/// After this word, a title says what the process is doing at the moment, as in `is shutting down`.
const STATE: &str = "is";
/// Words that make no sense at the end of a role.
const JOINTS: [&str; 4] = ["for", "pid", "PID", "of"];
/// The role of PostgreSQL's processes that serve a client; their titles have the database, user and address.
const CLIENTS: &str = "postgres: client";
const POSTGRES: &str = "postgres";

/// Returns the role in a title: `nginx: worker process` from `nginx: worker process is shutting down`, `postgres:
/// autovacuum worker` from `postgres: 15/main: autovacuum worker template1`. `None` if it isn't a title, or has no
/// role.
pub(crate) fn role(title: &str) -> Option<String> {
    let title = title.split('\x1f').next()?.trim();
    let (program, rest) = title.split_once(": ")?;
    if program.is_empty() || program.contains(char::is_whitespace) {
        return None;
    }
    let words = || rest.split_whitespace();
    let is_address = |word: &str| word == "[local]" || word.ends_with(')') && word.contains('(');
    let is_sender = words().next().is_some_and(|word| word.starts_with("wal"));
    if program == POSTGRES && !is_sender && words().any(is_address) {
        return Some(CLIENTS.to_owned());
    }
    // A word with a colon is a cluster or a worker's number.
    let named = words().filter(|word| !word.ends_with(':'));
    let mut role: Vec<&str> = named.take_while(|word| *word != STATE && is_plain(word)).collect();
    // Drop the program's own name and connecting words from the end.
    while role.last().is_some_and(|last| *last == program || JOINTS.contains(last)) {
        role.pop();
    }
    (!role.is_empty()).then(|| format!("{program}: {}", role.join(" ")))
}

/// Returns whether this is an ordinary word: no path, option, number or host name.
fn is_plain(word: &str) -> bool {
    let inner = |c: char| c.is_alphabetic() || matches!(c, '-' | '_' | '/' | '.');
    word.starts_with(char::is_alphabetic) && word.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn what_differs_between_processes_that_do_the_same_is_left_out() {
        for (title, expected) in [
            ("postgres: checkpointer ", "postgres: checkpointer"),
            ("postgres: 15/main: background writer ", "postgres: background writer"),
            ("postgres: autovacuum worker template1", "postgres: autovacuum worker"),
            ("postgres: alice shop [local] idle in transaction", "postgres: client"),
            ("postgres: alice shop 10.0.0.7(51234) SELECT", "postgres: client"),
            (
                "postgres: walsender repl 10.0.0.7(51234) streaming 0/3000",
                "postgres: walsender repl",
            ),
            ("postgres: parallel worker for PID 4711 ", "postgres: parallel worker"),
            ("postgres: logical replication launcher", "postgres: logical replication launcher"),
            ("nginx: worker process", "nginx: worker process"),
            ("nginx: worker process is shutting down", "nginx: worker process"),
            ("nginx: master process nginx -g daemon off;", "nginx: master process"),
            ("nginx: master process /usr/sbin/nginx -c a", "nginx: master process"),
            ("nginx: cache manager process\x1f-c", "nginx: cache manager process"),
            ("php-fpm: master process (/etc/php/fpm.conf)", "php-fpm: master process"),
            ("php-fpm: pool www", "php-fpm: pool www"),
            ("gunicorn: worker [shop]", "gunicorn: worker"),
            ("puma: cluster worker 0: 4711 [shop]", "puma: cluster worker"),
            ("sshd: alice [priv]", "sshd: alice"),
        ] {
            assert_eq!(role(title).as_deref(), Some(expected), "{title:?}");
        }
    }

    #[test]
    fn a_command_is_no_title() {
        for command in [
            "",
            ":",
            ": a",
            "/bin/ls",
            "redis-server *:6379",
            "a b: c",
            "x: 17",
            "sh\x1f-c\x1fa: b",
        ] {
            assert_eq!(role(command), None, "{command:?}");
        }
    }
}
