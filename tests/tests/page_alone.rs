//! The page alone tells what is wrong with a program: the cause, the object, and the line, as the walk in `docs/page.md` goes.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use chase_tests::planted::{Answer, page, trial};
use chase_tests::steal::attempts;
use chase_tests::tagged::{alone, companion};

const ATTEMPTS: usize = 3;

/// The words of a piece of HTML. Names have places where a line may end, which are none.
fn words(html: &str) -> String {
    let mut words = String::new();
    for piece in html.split('<') {
        let (tag, rest) = piece.split_once('>').unwrap_or(("", piece));
        if tag != "wbr" {
            words.push(' ');
        }
        words.push_str(rest);
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ").replace("&amp;", "&")
}

/// The words of the section with this identifier.
fn section(page: &str, id: &str) -> String {
    let (_, section) = page.split_once(&format!("<section id=\"{id}\"")).expect("a section");
    words(section.split_once("</section>").expect("its end").0)
}

/// Records a planted program, and looks into its page: in the findings for all of `found`, then in a section for all of `there`.
fn walk(source: &str, found: &[&str], (id, there): (&str, &[&str])) {
    let _alone = alone();
    let Some(_) = companion(source) else { return };
    let Some(trial) = trial(source, &Answer::of(source)) else { return };
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let failures = attempts(ATTEMPTS, || {
        let page = page(&trial);
        for (id, wanted) in [("findings", found), (id, there)] {
            let said = section(&page, id);
            if let Some(missing) = wanted.iter().find(|words| !said.contains(**words)) {
                return Err(format!("{missing} is not in {id}: {said}"));
            }
        }
        Ok(())
    });
    assert!(failures.is_empty(), "{source}: {}", failures.join("\n"));
}

#[test]
fn a_lock() {
    walk(
        "convoy.c",
        &["A lock serialises worker", "stats_mu at update_stats convoy.c:18", "in nanosleep at"],
        ("blocked", &["pthread_mutex_lock update_stats convoy.c:18", "stats_mu"]),
    );
}

#[test]
fn small_writes() {
    walk(
        "small_fields.c",
        &["uses table.csv in small pieces", "by fprintf (libc.so.6) at emit_row small_fields.c:25"],
        ("syscalls", &["fprintf libc.so.6", "write, 100 %"]),
    );
}

#[test]
fn an_event_loop_held_up() {
    walk(
        "held_up.c",
        &["The event loop of main of held_up is held up", "most often slow_request (held_up)"],
        ("processor", &["slow_request"]),
    );
}

#[test]
fn a_consumer_that_sleeps() {
    walk(
        "sleepy_consumer.c",
        &["consume sleeps for each thing", "in usleep (libc.so.6) at handle sleepy_consumer.c:36"],
        ("blocked", &["usleep handle sleepy_consumer.c:36 consume"]),
    );
}

#[test]
fn a_file_that_is_not_there() {
    walk(
        "missing_file.c",
        &["looks in vain for overrides.conf", "stat (libc.so.6) at override_of missing_file.c:14"],
        ("syscalls", &["stat newfstatat files", "ENOENT"]),
    );
}
