//! Times that rest on some of the calls: what they can't exceed, and what stands for those of which none was timed.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Cost;
use crate::evidence::NORMAL_95;
use crate::uncertainty::Uncertainty;
use crate::walk::NOBODY;

/// Makes estimates no longer than what there was: of the calls made in a call, or in a thread's own code, those that
/// were all timed are certain, and the others have taken what is left at most. They are lowered all by the same factor.
/// (What a sample costs is no part of it: it is subtracted, as far as there is room.)
pub(super) fn bound(contexts: &mut [Cost], lifetime: f64) {
    let place_of = |caller: u32| if caller == NOBODY { 0 } else { caller as usize + 1 };
    let duration = |context: &Cost| context.measured + context.open_time;
    // Of the thread, then of each scope: time in it, that of the calls made in it, and the part that may be lowered.
    let mut inside = vec![0.0; contexts.len() + 1];
    let mut outside = vec![0.0; contexts.len() + 1];
    let mut estimated = vec![0.0; contexts.len() + 1];
    let is_estimate = |at: usize, context: &Cost| {
        let folds = context.scope as usize != at && !context.framed;
        !folds && context.samples < context.timed
    };
    inside[0] = lifetime;
    for (at, context) in contexts.iter().enumerate() {
        inside[place_of(context.scope)] += duration(context);
        outside[place_of(context.caller)] += duration(context);
        if is_estimate(at, context) {
            estimated[place_of(context.caller)] += context.measured;
        }
    }
    // Callers come before callees, so that what is left of a call is known when those inside are looked at.
    for (at, context) in contexts.iter_mut().enumerate() {
        let caller = place_of(context.caller);
        let excess = outside[caller] - inside[caller];
        if excess <= 0.0 || estimated[caller] <= 0.0 || !is_estimate(at, context) {
            continue;
        }
        let factor = (1.0 - excess / estimated[caller]).max(0.0);
        let scope = place_of(context.scope);
        inside[scope] -= context.measured * (1.0 - factor);
        context.measured *= factor;
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
