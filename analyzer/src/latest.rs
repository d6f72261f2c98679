//! Calls that were not credited: those since the latest sample of each thread and slot, if the end was not seen.

use std::collections::HashMap;

use chase_recorder::layout::{
    END_NONE, Header, LONGEST_COUNTDOWN, THREAD_ENDED, TIMING_ADAPTIVE, TIMING_ALL,
    VERSION_COUNT_BLOCKS, longest_block,
};
use chase_recorder::reader::Thread;

use crate::image::Image;

/// The possible error of the number of calls of a slot in one thread, in either direction: a sample also stands for
/// the rest of its block, which may not have been called any more.
pub(crate) struct Latest {
    /// Number of the context with most of these calls; how they are distributed is an estimate anyway.
    pub(crate) context: u32,
    pub(crate) bound: u64,
}

/// Returns the uncredited calls of a thread; none if everything was credited.
pub(crate) fn uncredited(image: &Image, thread: Thread<'_>) -> Vec<Latest> {
    let Header { version, timing, end_kind, .. } = *image.recording.header();
    let record = thread.record();
    // A thread that ended has credited everything.
    let is_credited =
        record.state == THREAD_ENDED || end_kind != END_NONE && record.countdowns_lost == 0;
    if timing == TIMING_ALL || is_credited {
        return Vec::new();
    }
    let has_budget = image.recording.meta_value("budget").is_some_and(|it| it == "on");
    let has_blocks = !has_budget && (timing == TIMING_ADAPTIVE || version >= VERSION_COUNT_BLOCKS);
    // By slot: its calls, the context with most of them, and their number there.
    let mut slots: HashMap<u32, (u64, u32, u64)> = HashMap::new();
    // Framed calls are credited as they are made.
    for context in thread.contexts().filter(|it| it.is_sampled() && !it.is_framed()) {
        let (all, number, most) =
            slots.entry(context.slot()).or_insert((0, context.number, context.calls()));
        *all = all.saturating_add(context.calls());
        if context.calls() > *most {
            (*number, *most) = (context.number, context.calls());
        }
    }
    let bound = |calls| if has_blocks { longest_block(calls) } else { LONGEST_COUNTDOWN };
    let latest = |(calls, context, _)| Latest { context, bound: bound(calls) - 1 };
    slots.into_values().map(latest).collect()
}
