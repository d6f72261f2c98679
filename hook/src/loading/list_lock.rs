//! Whether the lock of the dynamic linker's list of objects is held. `dl_iterate_phdr` takes that lock.
//!
//! The lock is recursive: its owner may take it again. But a signal handler may interrupt its thread after the instruction that
//! takes the lock, and before those that store who owns it. If the handler then takes the lock, it waits for ever. (The linker's
//! own state doesn't help: while `dlopen` adds its first object to the list, it still says that the list is consistent, with glibc
//! 2.36.) So chase looks at the lock before it takes it. It finds the lock once: of the linker's recursive locks, it is the one
//! whose count is higher in a callback of `dl_iterate_phdr` than afterwards.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::images::address_of;
use crate::objects::Objects;
use crate::sys;
use chase_logic::resolve::{Wanted, find_in};

/// A recursive lock of the C library, as far as it is the same in all versions.
#[repr(C)]
struct Mutex {
    word: AtomicU32,
    count: AtomicU32,
    owner: AtomicU32,
    users: AtomicU32,
    kind: AtomicU32,
}

static LIST_LOCK: AtomicPtr<Mutex> = AtomicPtr::new(core::ptr::null_mut());

/// Locks of the dynamic linker that are held while the list is.
pub(super) struct Candidates([(*const Mutex, u32); 8]);

/// Whether the calling thread, which may have interrupted itself in the dynamic linker, can take the lock, perhaps after another
/// thread; `None` if it is not known which lock that is.
pub(super) fn can_be_taken() -> Option<bool> {
    const LOOKS: u32 = 1000;
    // SAFETY: null, or in the dynamic linker's data, which stay.
    let lock = unsafe { LIST_LOCK.load(Ordering::Relaxed).as_ref() }?;
    for _ in 0..LOOKS {
        if lock.word.load(Ordering::Relaxed) == 0 {
            return Some(true);
        }
        match lock.owner.load(Ordering::Relaxed) {
            // Just taken, or about to be released: by another thread, which goes on, or by this one.
            0 => spin_loop(),
            owner => {
                // The list may be half changed where this thread has its lock.
                return Some(!sys::is_confined() && owner != sys::gettid());
            }
        }
    }
    Some(false)
}

impl Candidates {
    pub(super) const NONE: Self = Self([(core::ptr::null(), 0); 8]);

    /// Finds the locks that are held. Called by a callback of `dl_iterate_phdr`.
    pub(super) fn find(&mut self, objects: &Objects) {
        const RECURSIVE: u32 = 1;
        if !LIST_LOCK.load(Ordering::Relaxed).is_null() {
            return;
        }
        let wanted = Wanted::new(b"_rtld_global", None);
        let data =
            objects.all().iter().filter(|it| it.loaded && it.namespace == 0).find_map(|it| {
                let symbol = find_in(&it.image, &wanted)?;
                Some((address_of(&it.image, symbol), symbol.size as usize))
            });
        let Some((start, size)) = data else { return };
        let mut found = self.0.iter_mut();
        for offset in (0..size.saturating_sub(size_of::<Mutex>())).step_by(align_of::<usize>()) {
            // SAFETY: it is in the dynamic linker's data, all of which can be read.
            let lock = unsafe { &*((start + offset) as *const Mutex) };
            let count = lock.count.load(Ordering::Relaxed);
            // (Before version 2.34, programs without threads only count.)
            let is_held = lock.word.load(Ordering::Relaxed) <= 2
                && lock.users.load(Ordering::Relaxed) <= 1
                && lock.kind.load(Ordering::Relaxed) == RECURSIVE
                && (1..=8).contains(&count);
            if is_held {
                let Some(place) = found.next() else { return };
                *place = (lock, count);
            }
        }
    }

    /// After the callback: the lock that is held no more is the list's, if there is just one.
    pub(super) fn choose(&self) {
        let mut released = self.0.iter().filter(|(lock, count)| {
            // SAFETY: as in `can_be_taken`.
            let lock = unsafe { lock.as_ref() };
            lock.is_some_and(|lock| lock.count.load(Ordering::Relaxed) + 1 == *count)
        });
        if let (Some((lock, _)), None) = (released.next(), released.next()) {
            LIST_LOCK.store(lock.cast_mut(), Ordering::Relaxed);
        }
    }
}
