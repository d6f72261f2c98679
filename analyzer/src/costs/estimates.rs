//! Times based on only some of the calls: what they lack, their upper bounds, and estimates for contexts without any
//! timed call.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Cost, Lacking, OffCpuTicks};
use crate::evidence::NORMAL_95;
use crate::uncertainty::Uncertainty;
use crate::walk::NOBODY;

/// Adds to estimates the time off the CPU that they lack, as far as it was measured: it would otherwise seem to be
/// their callers'. Only calls that get frames are affected; the time off the CPU of others is measured as their
/// callers'. If calls were made in a scope in several ways, what happened in the calls inside is attributed to each in
/// proportion to their number.
pub(super) fn add_off_cpu(contexts: &mut [Cost], lacking: Lacking<'_>) {
    let is_lacking = |context: &Cost| context.framed && context.samples < context.timed;
    // For each scope: the contexts that lack time, and the number of all calls with frames.
    let mut lack: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, context) in contexts.iter().enumerate().filter(|(_, context)| is_lacking(context)) {
        lack.entry(context.scope).or_default().push(at);
    }
    if lack.is_empty() {
        return;
    }
    let mut calls: HashMap<u32, u64> = HashMap::new();
    for context in contexts.iter().filter(|context| context.framed || !context.sampled) {
        let calls = calls.entry(context.scope).or_default();
        *calls = calls.saturating_add(context.calls);
    }
    let mut added = vec![Uncertain::default(); contexts.len()];
    for at in 0..contexts.len() {
        let mut add = |to: usize, share: f64| {
            let Some((ticks, variance)) = lacking(at, &contexts[to]) else { return };
            added[to].ticks += share * ticks;
            added[to].variance += share * variance;
        };
        if is_lacking(&contexts[at]) {
            add(at, 1.0);
        }
        let mut caller = contexts[at].caller;
        while caller != NOBODY {
            for &around in lack.get(&caller).into_iter().flatten() {
                let all = calls.get(&caller).copied().unwrap_or(0).max(1);
                add(around, contexts[around].calls as f64 / all as f64);
            }
            caller = contexts[caller as usize].caller;
        }
    }
    for (context, added) in contexts.iter_mut().zip(added) {
        context.measured += added.ticks;
        context.uncertainty.variance += added.variance;
    }
}

/// A time in ticks, and its variance.
#[derive(Clone, Copy, Default)]
struct Uncertain {
    ticks: f64,
    variance: f64,
}

/// Bounds estimates by the available time: of the calls made in a call, or in a thread's own code, the times of those
/// that were all timed are certain, and the others can have taken at most the rest. The excess is subtracted from
/// each in proportion to its variance, which is the least-squares solution for estimates with a known sum. (The cost
/// of samples is not part of the estimates: it is subtracted as far as there is room.) Nor is a call shorter than what it has certainly
/// called.
///
/// While a thread is off the CPU in calls without frames, this is measured as their caller's, and their estimates, which leave out
/// samples that were interrupted, don't have it. So it is no time that they can have taken.
pub(super) fn bound(contexts: &mut [Cost], lifetime: f64, off_cpu: &OffCpuTicks) {
    let place_of = |caller: u32| if caller == NOBODY { 0 } else { caller as usize + 1 };
    let least = raise(contexts);
    let room = |at: usize, context: &Cost| (context.measured - least[at]).max(0.0);
    // For the thread, then for each scope: the time in it, the time of the calls made in it, and which of these may
    // be reduced.
    let mut inside = vec![0.0; contexts.len() + 1];
    let mut outside = vec![0.0; contexts.len() + 1];
    let mut estimates: Vec<Vec<usize>> = vec![Vec::new(); contexts.len() + 1];
    inside[0] = lifetime - off_cpu.in_own_code;
    for (at, context) in contexts.iter().enumerate() {
        let off_cpu = off_cpu.in_contexts.get(at).copied().unwrap_or(0.0).min(duration(context));
        inside[place_of(context.scope)] += duration(context) - off_cpu;
        let caller = place_of(context.caller);
        outside[caller] += duration(context);
        let folds = context.scope as usize != at && !context.framed;
        if !folds && context.samples < context.timed {
            estimates[caller].push(at);
        }
    }
    // Callers come before callees, so a call's available time is final before those inside are processed.
    for caller in 0..estimates.len() {
        let mut excess = outside[caller] - inside[caller];
        let mut lowered = std::mem::take(&mut estimates[caller]);
        // Estimates that have reached 0 leave the rest to the others.
        while excess > 0.0 && !lowered.is_empty() {
            let weight = |context: &Cost| {
                let Uncertainty { variance, common, clock } = context.uncertainty;
                let common = common + clock;
                (variance + common * common).max(f64::MIN_POSITIVE)
            };
            let all: f64 = lowered.iter().map(|&at| weight(&contexts[at])).sum();
            let mut taken = 0.0;
            for &at in &lowered {
                let context = &mut contexts[at];
                let part = (excess * weight(context) / all).min(room(at, context));
                context.measured -= part;
                inside[place_of(context.scope)] -= part;
                taken += part;
            }
            if taken <= excess * 1e-9 {
                break;
            }
            excess -= taken;
            lowered.retain(|&at| room(at, &contexts[at]) > 0.0);
        }
    }
}

fn duration(context: &Cost) -> f64 {
    context.measured + context.open_time
}

fn is_estimate(context: &Cost) -> bool {
    context.samples < context.timed
}

/// Raises estimates of calls with frames where calls made inside, which were all timed, certainly took longer: a few calls that were
/// not timed themselves may be where most of the time is. Returns the least that each such estimate can be.
fn raise(contexts: &mut [Cost]) -> Vec<f64> {
    let mut least = vec![0.0; contexts.len()];
    if !contexts.iter().any(|context| context.framed && is_estimate(context)) {
        return least;
    }
    // By scope: the contexts in it, and the least time of the calls made in it.
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); contexts.len()];
    let mut inside = vec![0.0; contexts.len()];
    for (at, context) in contexts.iter().enumerate() {
        members[context.scope as usize].push(at);
    }
    // Callees come after callers, and what shares a scope after the first in it.
    for at in (0..contexts.len()).rev() {
        let Cost { caller, scope, .. } = contexts[at];
        let own: f64 = if scope as usize == at {
            let (estimates, certain): (Vec<usize>, Vec<usize>) =
                members[at].iter().partition(|&&member| is_estimate(&contexts[member]));
            let sum = |members: &[usize]| members.iter().map(|&at| duration(&contexts[at])).sum();
            let known: f64 = sum(&certain);
            let missing = inside[at] - known;
            let estimated: f64 = sum(&estimates);
            if let (Some(&first), true) = (estimates.first(), missing > estimated) {
                let more = missing - estimated;
                contexts[first].measured += more;
                contexts[first].uncertainty.variance += more * more;
            }
            if let &[only] = &*estimates {
                least[only] = (missing - contexts[only].open_time).max(0.0);
            }
            known.max(inside[at])
        } else if is_estimate(&contexts[at]) || contexts[at].framed {
            // It is in the sum of its scope.
            0.0
        } else {
            duration(&contexts[at])
        };
        if caller != NOBODY {
            inside[caller as usize] += own;
        }
    }
    least
}

/// Bounds errors: neither an estimate nor the remaining time can be wrong by more than both together, `time`.
pub(super) fn limit_errors(contexts: &mut [Cost], application: &mut Uncertainty, time: f64) {
    let limit = |uncertainty: &mut Uncertainty| {
        let most = time / NORMAL_95;
        uncertainty.clock = uncertainty.clock.clamp(-most, most);
        let variance = uncertainty.variance + uncertainty.common * uncertainty.common;
        if variance > most * most {
            let Uncertainty { clock, .. } = *uncertainty;
            *uncertainty = Uncertainty { clock, ..*uncertainty * (most / variance.sqrt()) };
        }
    };
    contexts.iter_mut().for_each(|context| limit(&mut context.uncertainty));
    limit(application);
}

/// Estimates the time of framed calls in contexts where none was timed: the self time of a call is assumed to be the
/// mean over the thread's other contexts of the slot. (Their callees are known, and whatever was called more than a
/// few hundred times was timed.) It can't exceed that of the enclosing call, if known. The error may be as large as
/// the estimate.
pub(super) fn fill_in(
    contexts: &mut [Cost],
    application: &mut f64,
    application_uncertainty: &mut Uncertainty,
) {
    let is_unknown = |context: &Cost| context.framed && context.timed == 0 && context.calls > 0;
    if !contexts.iter().any(is_unknown) {
        return;
    }
    // Self time and calls of each slot where these are known, and the number of calls in each scope.
    let mut known: HashMap<u32, (f64, u64)> = HashMap::new();
    let mut calls = vec![0_u64; contexts.len()];
    let mut is_whole = vec![true; contexts.len()];
    for context in contexts.iter() {
        let calls = &mut calls[context.scope as usize];
        *calls = calls.saturating_add(context.calls);
        is_whole[context.scope as usize] &= !is_unknown(context);
    }
    for (at, context) in contexts.iter().enumerate() {
        if context.scope as usize == at && is_whole[at] {
            let (time, of) = known.entry(context.slot).or_default();
            *time += context.self_time.max(0.0);
            *of = of.saturating_add(calls[at]);
        }
    }
    // Callees first: then it is known how much time their callers have left. (A context may be newer than its scope.)
    let mut unknown: Vec<_> = (0..contexts.len()).filter(|&at| is_unknown(&contexts[at])).collect();
    unknown.sort_by_key(|&at| Reverse(contexts[at].scope));
    for at in unknown {
        let context = contexts[at];
        let scope = context.scope as usize;
        let mean = match known.get(&context.slot) {
            Some(&(time, of)) if of > 0 => time / of as f64,
            _ => 0.0,
        };
        let most = time_around(contexts, &is_whole, context.caller, *application);
        let missing = (mean * calls[scope] as f64 - contexts[scope].self_time).min(most).max(0.0);
        contexts[at].measured = missing;
        contexts[at].timed = context.calls;
        contexts[scope].self_time += missing;
        let all_of_it = Uncertainty { variance: missing * missing, ..Uncertainty::default() };
        contexts[scope].uncertainty += all_of_it;
        match context.caller {
            NOBODY => {
                *application -= missing;
                *application_uncertainty -= all_of_it;
            }
            caller => {
                contexts[caller as usize].self_time -= missing;
                contexts[caller as usize].uncertainty -= all_of_it;
            }
        }
    }
}

/// Returns how much time calls made in `caller` can have taken beside what is known: the caller's own, and, as long
/// as that is unknown, that of its callers.
fn time_around(contexts: &[Cost], is_whole: &[bool], caller: u32, application: f64) -> f64 {
    let (mut caller, mut time) = (caller, 0.0);
    while caller != NOBODY {
        let context = &contexts[caller as usize];
        time += context.self_time;
        if is_whole[context.scope as usize] {
            return time;
        }
        caller = context.caller;
    }
    time + application
}
