//! The call that begins the recording (`CHASE_START_ON`). Until it comes, only the entries that it may go through lead to stubs of
//! ours, and those of functions that may forbid system calls.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::Slots;
use super::entries::{Entries, read_entry};
use super::imports::{Import, Uses, Verdict, verdict_on};
use crate::abi::STUBS;
use crate::objects::{Object, Objects};
use crate::stubs;
use chase_logic::config::Config;
use chase_logic::elf::ImportVersions;
use chase_logic::kinds::{Kind, kind_of};

/// The maximum number of these entries.
const MOST: usize = 1024;

/// By number of the special stub: the entry, what it held, and its object; the entry is 0 if none is watched.
#[unsafe(link_section = ".bss.large")]
static WATCHED: [[AtomicUsize; 3]; MOST] = [const { [const { AtomicUsize::new(0) }; 3] }; MOST];

/// Returns what a watched entry leads to now, and `real` as long as that is the special stub with this number.
pub(crate) fn watched_target(number: usize, real: usize) -> usize {
    let got = WATCHED.get(number).map_or(0, |[got, ..]| got.load(Ordering::Acquire));
    if got == 0 {
        return real;
    }
    let now = read_entry(got);
    if now == stubs::special_stub(number) { real } else { now }
}

impl Slots {
    /// Watches the entries of object `id` through which the call may go that begins the recording; returns how many there are. The
    /// caller holds the lock.
    pub(crate) fn watch(&mut self, objects: &mut Objects, id: u32, config: &Config) -> usize {
        let Some(object) = objects.get(id).copied().filter(|object| !object.is_chase) else {
            return 0;
        };
        let image = &object.image;
        let forbids = |name: &[u8]| matches!(kind_of(name), Kind::System | Kind::Control);
        let wanted = || {
            image.relocations().filter(|relocation| {
                let name = image.name(image.symbol(relocation.symbol()));
                relocation.symbol() != 0 && (config.may_begin_with(name) || forbids(name))
            })
        };
        if wanted().next().is_none() {
            return 0;
        }
        objects.prepare_for(id);
        let uses = Uses::found_in(objects, &object);
        let mut versions = ImportVersions::new(image);
        let mut count = 0;
        for relocation in wanted() {
            let verdict =
                verdict_on(objects, id, relocation, &Config::DEFAULT, &uses, &mut versions);
            let Verdict::Hook(import) = verdict else { continue };
            let provider = objects.get(import.provider).map_or(&b""[..], |object| object.name());
            if config.begins_with(provider, import.name) {
                count += usize::from(self.watch_entry((id, &object), &import, Kind::Begin));
            } else if forbids(import.name) {
                self.watch_entry((id, &object), &import, import.kind);
            }
        }
        count
    }

    fn watch_entry(&mut self, (id, object): (u32, &Object), import: &Import, kind: Kind) -> bool {
        let (slot, number) = (self.count, self.special_count);
        let Some([got, held, object_id]) = WATCHED.get(number) else { return false };
        if slot >= STUBS || !stubs::set_target(slot, import.real) {
            return false;
        }
        let stub = self.special_stub(slot as u32, kind);
        // (The slot is in no object's description. Its stub stays in use for threads that are about to call it.)
        self.count += 1;
        held.store(read_entry(import.got), Ordering::Relaxed);
        object_id.store(id as usize, Ordering::Relaxed);
        got.store(import.got, Ordering::Release);
        Entries::new(object).store(import.got, stub)
    }

    /// Restores the watched entries. The caller holds the lock.
    pub(crate) fn unwatch(&mut self, objects: &Objects) {
        for (number, [got, held, object_id]) in WATCHED.iter().enumerate().take(self.special_count)
        {
            let (entry, held) = (got.load(Ordering::Relaxed), held.load(Ordering::Relaxed));
            let object = objects.get(object_id.load(Ordering::Relaxed) as u32);
            let Some(object) = object.filter(|object| entry != 0 && object.loaded) else {
                continue;
            };
            if read_entry(entry) == stubs::special_stub(number) {
                Entries::new(object).store(entry, held);
            }
        }
    }
}
