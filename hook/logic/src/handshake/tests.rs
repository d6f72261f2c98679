//! Processes that look for a companion, in every order of their steps.

mod model;

use std::cell::Cell;
use std::format;
use std::vec::Vec;

use model::*;

use super::*;
use crate::every_order::every_order;

type Actor<'a> = &'a (dyn Fn(&World) + Sync);

/// Runs processes beside a companion of one kind in every order; gives the number of runs.
fn run(make: impl Fn() -> World, actors: &[Actor<'_>], check: impl Fn(&State)) -> usize {
    every_order(SWITCHES, make, actors, |world| {
        world.is_left_well();
        check(&world.state());
    })
}

const ALL: &[Deed] = if cfg!(miri) {
    &[Deed::Listens, Deed::Hangs]
} else {
    &[
        Deed::Listens,
        Deed::ListensAndEnds,
        Deed::TakesSamples,
        Deed::Refuses,
        Deed::Hangs,
        Deed::Dribbles,
        Deed::Lies,
        Deed::Babbles,
    ]
};

/// One, or two at once, with a file in which a companion that is gone has left its session. What each of them must hold is asserted where
/// it happens: nobody waits too long, nobody accepts the session of a companion that has not listened meanwhile, there are no two
/// companions, and nobody's lock outlives it.
#[test]
fn whatever_the_companion_does() {
    for &deed in ALL {
        // (One is enough where they would do the same one after the other.)
        let is_one =
            matches!(deed, Deed::TakesSamples | Deed::Dribbles | Deed::Lies | Deed::Babbles);
        let seekers = if is_one { 1 } else { 2 };
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        let best = Cell::new(0);
        let runs = run(
            || World::new(STALE, deed, seekers),
            &[companion, seek, seek][..=seekers],
            |state| {
                best.set(best.get().max(state.found.iter().flatten().count()));
                assert!(deed == Deed::ListensAndEnds || state.companions.len() < 3);
                assert!(deed != Deed::Listens || state.companions.len() == 1);
            },
        );
        let listens = matches!(deed, Deed::Listens | Deed::ListensAndEnds);
        assert_eq!(best.get(), if listens { 2 } else { 0 }, "that find one");
        assert!(runs >= LEAST, "{runs}");
    }
}

/// The companion is killed at each of its steps, and so is one of the processes.
#[test]
fn whoever_dies_at_any_step() {
    // A companion listens from its sixth step on, and has said so at the eighth; a process has the lock at its seventh, starts
    // one at the eighth, and has heard from it at the tenth. (Between the others, nobody sees a difference.)
    let of_companion = [0, 3, 4, 5, 6, 7].map(|steps| (FOR_EVER, steps));
    let of_process = [4, 6, 7, 8, 9, 10].map(|steps| (steps, FOR_EVER));
    let deaths = [of_companion, of_process].concat();
    let few = deaths.get(4..5).filter(|_| cfg!(miri));
    for &(own, others) in few.unwrap_or(&deaths) {
        let dies: Actor<'_> = &|world| world.seek(PATIENT, own);
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(others);
        let make = || World::new(STALE, Deed::Listens, 2);
        assert!(run(make, &[dies, seek, companion], |_| ()) >= LEAST);
    }
}

/// Where the program must not run without it, a companion that hangs is killed, and the next process knows why.
#[test]
fn a_companion_that_hangs_is_killed_where_it_is_required() {
    for &deed in ALL {
        let seek: Actor<'_> = &|world| world.seek(REQUIRED, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        // (One that has not yet said which process it is can't be killed.)
        let is_killed = Cell::new(false);
        run(
            || World::new("", deed, 1),
            &[seek, companion],
            |state| {
                let [it] = &state.companions[..] else { panic!("one is started") };
                let is_known = state.text.windows(FAILED.len()).any(|at| at == FAILED.as_bytes());
                assert!(is_known || !it.is_killed, "the next one does not know why");
                is_killed.set(is_killed.get() || it.is_killed);
            },
        );
        assert!(is_killed.get() || !matches!(deed, Deed::Hangs | Deed::Dribbles), "all live");
    }
}

/// Files of other users and of other programs stay as they are, and those of another version of this one.
#[test]
fn what_is_not_ours_is_left_alone() {
    let texts = ["precious", "chase companion 2\nsession 1\n", "chase companion 10\nsession 1\n"];
    for (text, is_own) in [(texts[0], true), (texts[1], true), (texts[2], true), (STALE, false)] {
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        run(
            || World { is_own, ..World::new(text, Deed::Listens, 2) },
            &[seek, seek],
            |state| {
                assert_eq!(state.text, text.as_bytes());
                assert_eq!(state.found, [None, None]);
                assert!(state.companions.is_empty());
            },
        );
    }
}

/// A fork's child may have the file open for ever: the lock does not stay.
#[test]
fn without_a_companion_no_lock_stays_in_a_forks_child() {
    let failed = format!("chase companion 1\nfailed {NOW_S} because\n");
    for text in [STALE, "", "precious", &failed] {
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        run(
            || {
                let world = World::new(text, Deed::Listens, 2);
                World { is_installed: false, forks: true, ..world }
            },
            &[seek, seek],
            |state| assert_eq!(state.found, [None, None]),
        );
    }
}

/// One that failed a short time ago is not tried again, unless it is required.
#[test]
fn a_failure_holds_for_a_while() {
    let at = |time_s: u64| format!("chase companion 1\nfailed {time_s} because\n");
    let cases = [(NOW_S, PATIENT, 0), (NOW_S - 100, PATIENT, 1), (NOW_S, REQUIRED, 1)];
    for (time_s, patience, started) in cases {
        let text = at(time_s);
        let seek: Actor<'_> = &|world| world.seek(patience, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        run(
            || World::new(&text, Deed::Listens, 1),
            &[seek, companion],
            |state| {
                assert_eq!(state.companions.len(), started);
                assert!(started == 1 || state.reasons == ["because"], "{:?}", state.reasons);
            },
        );
    }
}

/// A companion that was started by hand, or by `chase record`, at the same time as a program.
#[test]
fn a_companion_that_announces_itself() {
    let announces: Actor<'_> = &|world| {
        let process = Process::new(world, None, FOR_EVER);
        let seeker = &process;
        let file = seeker.open(&mut Reason::new()).expect("open");
        if claim(&file).expect("locked") {
            let mut state = world.state();
            // Not among those that a process has started.
            assert_eq!(state.begun, state.companions.len(), "two companions at once");
            state.companions.push(Companion {
                file: file.number,
                answer: Vec::new(),
                heard: 0,
                is_alive: true,
                is_killed: false,
                listened: None,
            });
            state.begun += 1;
            let number = state.companions.len() - 1;
            drop(state);
            let line = format!("session {}", FIRST_SESSION + number as u64);
            write_line(&file, line.as_bytes()).expect("written");
            let mut state = world.state();
            state.companions[number].listened = Some((state.now, usize::MAX));
            drop(state);
            process.stay();
            let mut state = world.state();
            state.ends_listening(number);
            state.companions[number].is_alive = false;
        }
    };
    let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
    let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
    let make = || World::new(STALE, Deed::Listens, 1);
    assert!(run(make, &[announces, seek, companion], |_| ()) >= LEAST);
}
