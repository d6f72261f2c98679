//! When a run started, on the clock that is common to its images.

use crate::analysis::Analysis;
use crate::clock::Ticks;
use crate::common_time::CommonTime;
use crate::image::Image;

/// Returns the time at which the run started.
pub(crate) fn start(images: &[Image], analysis: &Analysis, time: &CommonTime) -> Option<u64> {
    let row = analysis.threads.first()?;
    let image = images.get(row.process)?;
    let mut threads = image.recording.threads();
    let record = *threads.find(|thread| thread.record().index == row.thread)?.record();
    Some(time.of_ticks(image, Ticks(record.start_ticks)).0.saturating_sub(row.start_ns.0))
}
