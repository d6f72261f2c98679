//! `chase record` in a terminal: keys, jobs, and the shell's word on them.

use std::thread::sleep;
use std::time::Duration;

use chase_tests::session::Session;
use tempfile::TempDir;

#[test]
fn keys_of_the_terminal_are_the_programs() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    // The words that are looked for are not in what is typed, which the terminal shows too.
    session.send("$CHASE record -- sh -c 'trap \"echo caught; exit 5\" INT; echo u\"\"p; while :; do sleep 0.05; done'; echo status=$?\n");
    session.expect("up\r\n");
    session.send("\x03");
    session.expect("caught\r\n");
    session.expect("Recorded in");
    session.expect("status=5");

    // By default it kills: the shell sees a job that was, and gives up the line.
    session.send("$CHASE record -- sleep 30\n");
    sleep(Duration::from_millis(500));
    session.send("\x03");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=130");
}

#[test]
fn jobs_stop_and_go_on() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    session.send("$CHASE record -- sh -c 'echo u\"\"p; read line; echo got=$line; exit 4'\n");
    session.expect("up\r\n");
    for _ in 0..2 {
        session.send("\x1a");
        session.expect("Stopped");
        session.send("jobs; echo free=$?\n");
        session.expect("free=0");
        session.send("fg\n");
        session.expect("sh -c");
        sleep(Duration::from_millis(100));
    }
    session.send("word\n");
    session.expect("got=word");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=4");
}

/// A stop that the terminal has nothing to do with.
#[test]
fn stops_when_the_program_stops() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    session.send("$CHASE record -- sh -c 'kill -STOP $$; echo o\"\"n; exit 6'\n");
    session.expect("Stopped");
    session.send("fg\n");
    session.expect("on\r\n");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=6");
}
