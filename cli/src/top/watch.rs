//! Looks at a run, again and again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use chase_analyzer::{Analysis, Ending, Groups, Loaded, Moment, Selection, load_run};

use super::target::Target;
use crate::places::Places;
use crate::report::{Report, of_process};

/// A look takes at most this part of the time.
const PART: u32 = 10;
/// Earlier looks in a window, about.
const LOOKS: u32 = 5;

/// Looks at one target.
pub(super) struct Watch {
    target: Target,
    /// Only this process.
    process: Option<u32>,
    window: Duration,
    places: Places,
    earlier: VecDeque<(Instant, Moment)>,
}

/// What was seen.
pub(super) struct Look {
    /// All of it, since the start.
    pub(super) all: Report,
    /// The last seconds, once there were some.
    pub(super) recent: Option<Recent>,
    /// How many processors there are here.
    pub(super) processors: u64,
    /// Whether any of its processes runs.
    pub(super) is_running: bool,
    /// The time that it took.
    pub(super) took: Duration,
}

/// The last seconds.
pub(super) struct Recent {
    pub(super) analysis: Analysis,
    pub(super) groups: Groups,
    pub(super) seconds: f64,
}

impl Watch {
    pub(super) fn new(target: Target, window: Duration, places: Places) -> Self {
        Self { target, process: None, window, places, earlier: VecDeque::new() }
    }

    /// Of several processes, only this one from now on; or all again.
    pub(super) fn choose(&mut self, process: Option<u32>) {
        self.process = process;
        self.earlier.clear();
    }

    /// How the run is now.
    ///
    /// # Errors
    /// If nothing can be read.
    pub(super) fn look(&mut self) -> anyhow::Result<Look> {
        let start = Instant::now();
        let (run, only) = self.target.run()?;
        let mut loaded = load_run(&run)?;
        if let Some(pid) = self.process.or(only) {
            loaded.images = of_process(loaded.images, pid)?;
        }
        let mut look = look(loaded, self.places.again());
        self.compare(&mut look, start);
        look.took = start.elapsed();
        Ok(look)
    }

    /// Adds what happened since a look that is a window ago, or since the first.
    fn compare(&mut self, look: &mut Look, at: Instant) {
        while self.earlier.get(1).is_some_and(|(then, _)| at - *then >= self.window) {
            self.earlier.pop_front();
        }
        if let Some((_, then)) = self.earlier.front() {
            look.recent = recent(&look.all, then);
        }
        // More often than so, the window has enough of them.
        let last = self.earlier.back().map(|(then, _)| *then);
        if last.is_none_or(|last| at - last >= self.window / LOOKS) {
            self.earlier.push_back((at, look.all.analysis.moment()));
        }
    }
}

impl Look {
    /// When to look again at the earliest, after this one.
    pub(super) fn pause(&self, interval: Duration) -> Duration {
        interval.max(self.took * PART)
    }
}

/// What is in a run that was read.
pub(super) fn look(loaded: Loaded, places: Places) -> Look {
    let analysis = Analysis::new(&loaded.images, Selection::All);
    let is_running = analysis.processes.iter().any(|row| row.ending == Ending::Running);
    let path = analysis.processes.first().map(|row| row.path.clone()).unwrap_or_default();
    let all = Report::of_analysis(vec![path], loaded, analysis, places);
    let processors = std::thread::available_parallelism().map_or(1, |found| found.get() as u64);
    Look { all, recent: None, processors, is_running, took: Duration::ZERO }
}

/// What happened since an earlier look, if any time went by.
pub(super) fn recent(all: &Report, then: &Moment) -> Option<Recent> {
    let analysis = all.analysis.since(then);
    let seconds = analysis.wall_ns.seconds();
    let groups = Groups::new(&analysis, &all.routines());
    (seconds > 0.0).then_some(Recent { analysis, groups, seconds })
}
