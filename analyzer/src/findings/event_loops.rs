//! Event loops that are held up.

use super::{Blame, Evidence, Finding, FindingKind, MATERIAL_NS};
use crate::event_loops::{EventLoop, HeldUp, WaitInTurns};

/// With fewer turns than this, it is not known which are usual.
const MANY_TURNS: u64 = 50;
/// If more turns are long, they are part of what the loop does.
const RARE: f64 = 0.1;
/// The turns that hold a loop up take at least this part of the time of all its turns: of what the loop does, however long it
/// waits for something to do.
const NOTABLE: f64 = 0.1;

/// Finds threads whose event loops are held up by single long turns.
pub(super) fn held_up(evidence: &Evidence<'_>) -> Vec<Finding> {
    let loops = (0..).zip(&evidence.watched.event_loops);
    loops.filter_map(|(number, one)| of_loop(evidence, number, one)).collect()
}

fn of_loop(evidence: &Evidence<'_>, number: u32, one: &EventLoop) -> Option<Finding> {
    let own_ns = one.held_up_ns(HeldUp::own_ns);
    let all_own_ns = one.total_ns.0.saturating_sub(one.preempted_ns.0);
    let longest = one.held_up.iter().max_by_key(|turn| turn.own_ns())?;
    let held_up = one.held_up.len() as u64;
    if one.turns < MANY_TURNS
        || held_up as f64 > RARE * one.turns as f64
        || own_ns.as_f64() < NOTABLE * all_own_ns as f64
        || own_ns.as_f64() < MATERIAL_NS
    {
        return None;
    }
    let blocked_ns = one.held_up_ns(|turn| turn.blocked_ns);
    let kind = FindingKind::EventLoopHeldUp {
        turns: one.turns,
        held_up,
        usual_ns: one.usual_ns,
        longest_ns: longest.own_ns(),
        longest_at_ns: longest.at_ns,
        all_ns: own_ns,
        blocked_ns,
        ready: one.held_up.iter().map(|turn| turn.ready).max().unwrap_or_default(),
        event_loop: number,
    };
    let usual_ns = one.usual_ns.as_f64() * held_up as f64;
    let saves_ns = own_ns.as_f64() - usual_ns;
    let finding = evidence.finding(one.group, vec![one.thread], one.api, saves_ns, kind);
    // What it does in its own code, samples say.
    let mostly_waits = blocked_ns.0 > own_ns.0 / 2;
    let longest = one.waits.first().filter(|_| mostly_waits);
    let blame = longest.map(|WaitInTurns { wait, ns }| Blame {
        process: wait.process,
        object: Some(wait.object.clone()),
        api: wait.api,
        site: wait.site,
        wait_ns: *ns,
        ..Blame::default()
    });
    Some(Finding { blame, ..finding })
}
