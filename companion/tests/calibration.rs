//! What tracing costs is measured on busy machines, too.
//!
//! Needs root (or the capabilities) and BTF; says so and passes where they are missing.

mod target;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use chase_companion::calibrate::{Cost, untraced_ns};
use chase_companion::program::Program;

use target::possible;

/// Most of each millisecond is another's; what is left is enough for a round.
const PERIOD: Duration = Duration::from_millis(1);
const DISTURBANCE: Duration = Duration::from_micros(800);

extern "C" fn disturb(_: i32) {
    let start = Instant::now();
    while start.elapsed() < DISTURBANCE {}
}

/// Loads and attaches the program, and gives what it costs; `meanwhile` is called when it is loaded.
fn measure(meanwhile: impl FnOnce()) -> Cost {
    const SESSION: u64 = 7;
    // SAFETY: it only asks for a number.
    let mut program = Program::load(SESSION, unsafe { libc::getuid() }).expect("it can be loaded");
    meanwhile();
    let before_ns = untraced_ns();
    program.attach().expect("it can be attached");
    Cost::measure(&mut program, SESSION, before_ns)
}

/// The same while this thread has the processor for a part of the time only.
fn measure_disturbed() -> Cost {
    let over = AtomicBool::new(false);
    // SAFETY: the handler only asks for the time; and it only asks for numbers.
    let (process, thread) = unsafe {
        libc::signal(libc::SIGUSR1, disturb as extern "C" fn(i32) as libc::sighandler_t);
        (libc::getpid(), libc::gettid())
    };
    let disturb_on = || {
        while !over.load(Ordering::Relaxed) {
            // SAFETY: the thread lives, and has a handler.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
            sleep(PERIOD);
        }
    };
    scope(|scope| {
        let cost = measure(|| drop(scope.spawn(disturb_on)));
        over.store(true, Ordering::Relaxed);
        cost
    })
}

#[test]
fn what_tracing_costs_does_not_depend_on_who_else_runs() {
    if !possible() {
        return;
    }
    let sum_ns = |cost: Cost| cost.inside_ns + cost.outside_ns;
    let (alone, disturbed) = (measure(|| ()), measure_disturbed());
    assert!(sum_ns(disturbed) < 2 * sum_ns(alone), "{disturbed:?} against {alone:?}");
    assert!(sum_ns(alone) < 2 * sum_ns(disturbed), "{disturbed:?} against {alone:?}");
}
