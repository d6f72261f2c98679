//! Times that rest on some of the calls: what they can't exceed, and what stands for those of which none was timed.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Cost;
use crate::evidence::NORMAL_95;
use crate::uncertainty::Uncertainty;
use crate::walk::NOBODY;

/// What may be wrong of each call alike, in ticks: a clock read doesn't wait for what the processor still has to finish, and a function of a
/// few nanoseconds takes less where nothing waits for it.
const PER_CALL_TICKS: f64 = 5.0;

/// Makes estimates no longer than what there was: of the calls made in a call, or in a thread's own code, those that
/// were all timed are certain, and the others have taken what is left at most. What is too much is taken off each in proportion
/// to its variance, which is what least squares say of estimates with a known sum.
/// (What a sample costs is no part of it: it is subtracted, as far as there is room.)
pub(super) fn bound(contexts: &mut [Cost], lifetime: f64) {
    let place_of = |caller: u32| if caller == NOBODY { 0 } else { caller as usize + 1 };
    let duration = |context: &Cost| context.measured + context.open_time;
    // Of the thread, then of each scope: time in it, that of the calls made in it, and which of them may be lowered.
    let mut inside = vec![0.0; contexts.len() + 1];
    let mut outside = vec![0.0; contexts.len() + 1];
    let mut estimates: Vec<Vec<usize>> = vec![Vec::new(); contexts.len() + 1];
    inside[0] = lifetime;
    for (at, context) in contexts.iter().enumerate() {
        inside[place_of(context.scope)] += duration(context);
        let caller = place_of(context.caller);
        outside[caller] += duration(context);
        let folds = context.scope as usize != at && !context.framed;
        if !folds && context.samples < context.timed {
            estimates[caller].push(at);
        }
    }
    // Callers come before callees, so that what is left of a call is known when those inside are looked at.
    for caller in 0..estimates.len() {
        let mut excess = outside[caller] - inside[caller];
        let mut lowered = std::mem::take(&mut estimates[caller]);
        // Whoever has no time left leaves the rest to the others.
        while excess > 0.0 && !lowered.is_empty() {
            let weight = |context: &Cost| {
                let Uncertainty { variance, common } = context.uncertainty;
                let common = common + PER_CALL_TICKS * context.timed as f64;
                (variance + common * common).max(f64::MIN_POSITIVE)
            };
            let all: f64 = lowered.iter().map(|&at| weight(&contexts[at])).sum();
            let mut taken = 0.0;
            for &at in &lowered {
                let context = &mut contexts[at];
                let part = (excess * weight(context) / all).min(context.measured.max(0.0));
                context.measured -= part;
                inside[place_of(context.scope)] -= part;
                taken += part;
            }
            if taken <= excess * 1e-9 {
                break;
            }
            excess -= taken;
            lowered.retain(|&at| contexts[at].measured > 0.0);
        }
    }
}

/// Limits errors to what there was: neither the estimate nor what is left beside it can be wrong by more than all of it.
pub(super) fn limit_errors(contexts: &mut [Cost], application: &mut Uncertainty, lifetime: f64) {
    let limit = |uncertainty: &mut Uncertainty| {
        let most = lifetime / NORMAL_95;
        let variance = uncertainty.variance + uncertainty.common * uncertainty.common;
        if variance > most * most {
            *uncertainty = *uncertainty * (most / variance.sqrt());
        }
    };
    contexts.iter_mut().for_each(|context| limit(&mut context.uncertainty));
    limit(application);
}

/// Estimates the time of framed calls in contexts where none of them was timed: the self time of a call
/// is taken to be the mean over the thread's other contexts of the slot. (Their callees are known, and
/// what was called more often than a few hundred times was timed.) They can't have taken longer than the call that they
/// are in, if that is known. The error may be all of it.
pub(super) fn fill_in(
    contexts: &mut [Cost],
    application: &mut f64,
    application_uncertainty: &mut Uncertainty,
) {
    let is_unknown = |context: &Cost| context.framed && context.timed == 0 && context.calls > 0;
    if !contexts.iter().any(is_unknown) {
        return;
    }
    // Self time and calls of each slot where it is known, and calls in each scope.
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
    // Callees first: what their callers have to give is known then. (A context may have come later than its scope.)
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
        let all_of_it = Uncertainty { variance: missing * missing, common: 0.0 };
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

/// Time that calls made in `caller` may have taken beside what is known: its own, and, as long as that is unknown, that
/// of those further out.
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
