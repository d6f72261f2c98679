//! Times at which nothing of the run was recorded, between two attachments to a process.

use crate::clock::Ns;
use crate::image::Ending;
use crate::rows::ProcessRow;

/// Those times, in order, since the start of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses(Vec<(Ns, Ns)>);

impl Pauses {
    /// Finds them: from when chase left the last of the processes until it came again.
    pub(crate) fn of(processes: &[ProcessRow]) -> Self {
        let mut lives: Vec<_> = processes
            .iter()
            .map(|row| (row.start_ns, Ns(row.start_ns.0.saturating_add(row.wall_ns.0)), row.ending))
            .collect();
        lives.sort_by_key(|&(start, end, _)| (start, end));
        let mut pauses = Vec::new();
        let mut latest: Option<(Ns, Ending)> = None;
        for (start, end, ending) in lives {
            match latest {
                Some((last, Ending::Detached)) if start > last => pauses.push((last, start)),
                _ => {}
            }
            if latest.is_none_or(|(last, _)| end >= last) {
                latest = Some((end, ending));
            }
        }
        Self(pauses)
    }

    /// Returns how much of the time between two moments they are.
    pub(crate) fn between(&self, from: Ns, to: Ns) -> Ns {
        let part = |&(begin, end): &(Ns, Ns)| end.min(to).0.saturating_sub(begin.max(from).0);
        Ns(self.0.iter().map(part).sum())
    }

    /// Returns what is recorded of the time between two moments, latest first.
    pub(crate) fn cut(&self, from: Ns, to: Ns) -> Vec<(Ns, Ns)> {
        let mut parts = Vec::new();
        let mut end = to;
        for &(pause, again) in self.0.iter().rev() {
            parts.push((again.max(from), end));
            end = end.min(pause);
        }
        parts.push((from, end));
        parts.retain(|(from, to)| from < to);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::Pauses;
    use crate::clock::Ns;

    fn pauses() -> Pauses {
        Pauses(vec![(Ns(10), Ns(20)), (Ns(30), Ns(50))])
    }

    #[test]
    fn parts_and_pauses_are_the_whole() {
        for (from, to) in [(0, 60), (5, 15), (12, 18), (15, 40), (0, 10), (10, 20), (50, 60)] {
            let parts = pauses().cut(Ns(from), Ns(to));
            let recorded: u64 = parts.iter().map(|(from, to)| to.0 - from.0).sum();
            let paused = pauses().between(Ns(from), Ns(to)).0;
            assert_eq!(recorded + paused, to - from, "{from}–{to}: {parts:?}");
        }
        let parts = pauses().cut(Ns(0), Ns(60));
        assert_eq!(parts, [(Ns(50), Ns(60)), (Ns(20), Ns(30)), (Ns(0), Ns(10))]);
        assert_eq!(Pauses::default().cut(Ns(3), Ns(7)), [(Ns(3), Ns(7))]);
    }
}
