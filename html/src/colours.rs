//! One colour, one meaning, in all pictures of a page.

use std::collections::{HashMap, HashSet};

use chase_analyzer::WaitCause;
use chase_viz::{Group, GroupKind, State, state_colour};

use crate::Label;
use crate::model::{Library, RanObject, RanPlace, Report};

/// What chase's own time in a process is called. It is no library of the program, and has a colour of its own.
pub const CHASE_ITSELF: &str = "chase itself";

/// The colours of libraries and applications. Those that matter most, by the processor's time or by that of the calls, have
/// one of their own. A program whose functions its plug-ins call is a library, too, in the program's colour.
pub(crate) struct Colours<'r> {
    kinds: HashMap<&'r Label, GroupKind>,
}

impl<'r> Colours<'r> {
    pub(crate) fn new(report: &'r Report) -> Self {
        let mut shares: HashMap<(&Label, bool), f64> = HashMap::new();
        let mut add = |name, is_application, share: f64| {
            let known = shares.entry((name, is_application)).or_default();
            *known = known.max(share);
        };
        if let Some(ran) = &report.processor {
            let whole = ran.on_cpu_ns.max(1.0);
            ran.objects.iter().for_each(|o| add(&o.name, o.is_application, o.ns / whole));
        }
        let whole = report.header.whole_ns.max(1.0);
        for library in &report.libraries {
            // What is mostly waited in is not what the processor is in.
            let waiting: f64 = library.waiting.iter().map(|waiting| waiting.ns).sum();
            add(&library.name, library.is_application, (library.self_ns - waiting) / whole);
        }
        let is_own = |name: &Label| name.as_str() == CHASE_ITSELF;
        let mut ranked: Vec<_> = shares.into_iter().filter(|(key, _)| !is_own(key.0)).collect();
        ranked.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then_with(|| a.cmp(b)));
        let of_applications: HashSet<&Label> =
            ranked.iter().filter(|(key, _)| key.1).map(|(key, _)| key.0).collect();
        ranked.retain(|((name, is_application), _)| {
            *is_application || !of_applications.contains(name)
        });
        let (mut libraries, mut applications) = (0.., 0..);
        let kind = |(key, _): ((&'r Label, bool), f64)| {
            let kind = if key.1 {
                GroupKind::ApplicationNumber(applications.next().unwrap_or(usize::MAX))
            } else {
                GroupKind::LibraryNumber(libraries.next().unwrap_or(usize::MAX))
            };
            (key.0, kind)
        };
        Self { kinds: ranked.into_iter().map(kind).collect() }
    }

    /// What charts call a library.
    pub(crate) fn library(&self, library: &Library) -> Group {
        Group {
            name: library.name.to_string(),
            kind: self.named_kind(&library.name),
            value: library.self_ns,
        }
    }

    /// What charts call an object that ran.
    pub(crate) fn object(&self, object: &RanObject) -> Group {
        Group {
            name: object.name.to_string(),
            kind: self.named_kind(&object.name),
            value: object.ns,
        }
    }

    /// How the code of a library or program that ran is coloured, as `#RRGGBB`.
    pub(crate) fn ran(&self, place: &RanPlace) -> String {
        self.named(&place.library)
    }

    /// How the library or program of this name is coloured.
    pub(crate) fn named_kind(&self, name: &Label) -> GroupKind {
        let own = (name.as_str() == CHASE_ITSELF).then_some(GroupKind::Recorder);
        own.or_else(|| self.kinds.get(name).copied()).unwrap_or(GroupKind::Rest)
    }

    /// How a part of it is coloured, for black text to be read on it, as `#RRGGBB`.
    pub(crate) fn part(&self, name: &Label) -> String {
        chase_viz::part_colour(self.named_kind(name))
    }

    /// The same as `#RRGGBB`.
    pub(crate) fn named(&self, name: &Label) -> String {
        colour(&Group { name: String::new(), kind: self.named_kind(name), value: 0.0 })
    }
}

/// The colour of one group, as `#RRGGBB`.
pub(crate) fn colour(group: &Group) -> String {
    chase_viz::colours(std::slice::from_ref(group)).pop().unwrap_or_default()
}

/// What charts call the libraries of the report, in its order.
#[must_use]
pub fn library_groups(report: &Report) -> Vec<Group> {
    let colours = Colours::new(report);
    report.libraries.iter().map(|library| colours.library(library)).collect()
}

/// What a thread does that is blocked by `cause`.
pub(crate) fn state(cause: WaitCause) -> State {
    match cause {
        WaitCause::Lock => State::Lock,
        WaitCause::Condition => State::Condition,
        WaitCause::Barrier => State::Barrier,
        WaitCause::Join => State::Join,
        WaitCause::Sleep => State::Sleep,
        WaitCause::Io => State::Io,
        WaitCause::Page => State::Page,
        WaitCause::Other => State::Blocked,
    }
}

/// The same as a series of charts.
pub(crate) fn series(name: &str, state: State) -> Group {
    Group { name: name.to_owned(), kind: GroupKind::State(state), value: 0.0 }
}

/// The colour of waiting for `cause`.
pub(crate) fn cause_colour(cause: WaitCause) -> String {
    state_colour(state(cause))
}

/// What is waited for, in words.
pub(crate) fn cause_words(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Lock => "a lock",
        WaitCause::Condition => "a condition",
        WaitCause::Barrier => "a barrier",
        WaitCause::Join => "a thread or process to end",
        WaitCause::Sleep => "time or a signal",
        WaitCause::Io => "input or output",
        WaitCause::Page => "a page of memory",
        WaitCause::Other => "other things",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has no colour of its own is grey: chase is not told as one of these.
    #[test]
    fn chase_itself_is_not_coloured_as_what_was_put_together() {
        let colours = Colours { kinds: HashMap::new() };
        let [own, other] =
            [CHASE_ITSELF, "libother.so"].map(|name| colours.named(&Label::from(name)));
        assert_ne!(own, other);
    }
}
