//! What the figures do not contain.

use std::collections::HashMap;
use std::path::PathBuf;

use chase_recorder::layout::{
    SKIP_REASONS, STOP_LIMIT, STOP_NO_MEMORY, STOP_NO_SPACE, STOP_NONE, ThreadRecord,
};
use serde::Serialize;

use crate::clock::{Ns, Ticks};
use crate::image::Image;

/// What was not seen, over all processes selected. Counts are lower bounds where a recording
/// stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotSeen {
    /// Calls by threads that had no record: starting, ending, or none could be made.
    pub calls_without_thread: u64,
    /// Calls for whose context the recording had no room.
    pub calls_without_space: u64,
    /// Calls that found the shadow stack full.
    pub calls_too_deep: u64,
    /// Other calls that threads know they made unrecorded.
    pub lost_calls: u64,
    /// Threads without a record.
    pub threads: u64,
    /// Imports for which no stub was left.
    pub slots_without_stub: u64,
    /// Objects whose tables could not be read.
    pub objects: u64,
    /// `dlopen` calls whose new objects were patched only at the thread's next call.
    pub late_loads: u64,
    /// Contexts whose callers were not kept: their time counts as their callers' self time too.
    pub contexts_under_root: u64,
    /// Imports that were left alone, by reason; most first.
    pub skipped: Vec<Skipped>,
    /// Recordings that stopped before the process did.
    pub stopped: Vec<Stopped>,
    /// Damaged parts of recordings.
    pub unreadable: Vec<Unreadable>,
}

/// Imports that were left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub imports: u64,
}

/// A recording that stopped early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// Process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// Why.
    pub reason: &'static str,
    /// The system's error number, or 0.
    pub errno: u32,
    /// When, since the start of the process.
    pub after_ns: Ns,
}

/// A damaged part of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The file. In JSON, bytes that are not UTF-8 are U+FFFD.
    #[serde(serialize_with = "crate::rows::lossy")]
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

impl NotSeen {
    pub(crate) fn add_thread(&mut self, thread: &ThreadRecord) {
        self.lost_calls = self.lost_calls.saturating_add(thread.untimed_calls);
    }

    pub(crate) fn add_image(&mut self, process: usize, image: &Image) {
        let header = image.recording.header();
        let unseen = &header.unseen;
        for (sum, count) in [
            (&mut self.calls_without_thread, unseen.calls_without_thread),
            (&mut self.calls_without_space, unseen.calls_without_space),
            (&mut self.calls_too_deep, unseen.calls_too_deep),
            (&mut self.threads, unseen.threads),
            (&mut self.slots_without_stub, unseen.slots_without_stub),
            (&mut self.objects, unseen.objects),
            (&mut self.late_loads, unseen.late_loads),
            (&mut self.contexts_under_root, unseen.contexts_under_root),
        ] {
            *sum = sum.saturating_add(count);
        }
        self.add_skipped(image);
        if header.stop_reason != STOP_NONE {
            let start = image.clock.monotonic(image.start());
            let stop = image.clock.monotonic(Ticks(header.stop_ticks));
            self.stopped.push(Stopped {
                process,
                reason: match header.stop_reason {
                    STOP_NO_SPACE => "no more space on the disk",
                    STOP_LIMIT => "size limit of a recording reached",
                    STOP_NO_MEMORY => "no more memory could be mapped",
                    _ => "reason unknown to this version",
                },
                errno: header.stop_errno,
                after_ns: Ns(stop.0.saturating_sub(start.0)),
            });
        }
        self.unreadable.extend(
            image.recording.problems().iter().map(|problem| Unreadable {
                path: image.path.clone(),
                problem: problem.to_string(),
            }),
        );
    }

    fn add_skipped(&mut self, image: &Image) {
        // An object that was loaded several times has the same imports each time.
        let objects: HashMap<u32, _> =
            image.recording.objects().map(|o| (o.record().id, o.record().skipped)).collect();
        for counts in objects.values() {
            for (reason, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
                let reason = SKIP_REASONS.get(reason).copied().unwrap_or("another reason");
                match self.skipped.iter_mut().find(|skipped| skipped.reason == reason) {
                    Some(skipped) => skipped.imports += u64::from(count),
                    None => self.skipped.push(Skipped { reason, imports: count.into() }),
                }
            }
        }
        self.skipped.sort_by_key(|skipped| (std::cmp::Reverse(skipped.imports), skipped.reason));
    }
}
