//! Maps an address in a process to an object and an address in its file.

use chase_recorder::reader::{Object, Recording};

use crate::address::CodeAddress;
use crate::clock::Ticks;

/// The segments of a process, over its whole life.
pub(crate) struct AddressMap {
    segments: Vec<Mapped>,
}

struct Mapped {
    start: u64,
    end: u64,
    bias: u64,
    load: u64,
    unload: u64,
    object: Option<u32>,
}

impl AddressMap {
    /// `object_of` maps the number of an object in the recording to that among the objects of the run.
    pub(crate) fn new(
        recording: &Recording<'static>,
        object_of: impl Fn(&Object<'_>) -> Option<u32>,
    ) -> Self {
        let mut segments = Vec::new();
        for object in recording.objects() {
            let record = *object.record();
            let number = object_of(&object);
            segments.extend(object.segments().map(|segment| {
                let start = segment.svma.wrapping_add(record.bias);
                Mapped {
                    start,
                    end: start.saturating_add(segment.len),
                    bias: record.bias,
                    load: record.load_ticks,
                    unload: if record.unload_ticks == 0 { u64::MAX } else { record.unload_ticks },
                    object: number,
                }
            }));
        }
        Self { segments }
    }

    /// Finds what was loaded at `avma` at any time. If that were several objects one after the other, it is not known which of them
    /// is meant, and none is taken; of one that was loaded at several places, not which part of it.
    pub(crate) fn find_ever(&self, avma: u64) -> CodeAddress {
        let found = self.ever(avma).next();
        let is_one = |of: fn(&Mapped, &Mapped) -> bool| {
            found.filter(|first| self.ever(avma).all(|other| of(first, other)))
        };
        CodeAddress {
            avma,
            object: is_one(|a, b| a.object == b.object).and_then(|mapped| mapped.object),
            svma: is_one(|a, b| (a.object, a.bias) == (b.object, b.bias))
                .map(|mapped| avma.wrapping_sub(mapped.bias)),
        }
    }

    /// Whether several objects were loaded at `avma` one after the other.
    pub(crate) fn has_several(&self, avma: u64) -> bool {
        let mut all = self.ever(avma);
        let first = all.next();
        first.is_some_and(|first| all.any(|other| other.object != first.object))
    }

    fn ever(&self, avma: u64) -> impl Iterator<Item = &Mapped> {
        self.segments.iter().filter(move |m| (m.start..m.end).contains(&avma))
    }

    /// Finds what was loaded at `avma` at `moment`. If nothing was, takes an object that was found loaded later:
    /// loads are noticed with a delay.
    pub(crate) fn find(&self, avma: u64, moment: Ticks) -> CodeAddress {
        let candidates = || {
            let holds = move |m: &&Mapped| (m.start..m.end).contains(&avma);
            self.segments.iter().filter(holds).filter(|m| moment.0 <= m.unload)
        };
        let at_the_time = candidates().rfind(|mapped| mapped.load <= moment.0);
        let found = at_the_time.or_else(|| candidates().next());
        CodeAddress {
            avma,
            object: found.and_then(|mapped| mapped.object),
            svma: found.map(|mapped| avma.wrapping_sub(mapped.bias)),
        }
    }
}
