//! Keeping up with what is loaded: at the start, and after each `dlopen`, `dlmopen` and `dlclose`.
//!
//! Those functions look at the object that they return to, so the work is done not when they
//! return but at the thread's next call: nothing can use a new object before it has been looked
//! for. What constructors call before such a call is not seen.

mod interposed;

use core::ffi::{CStr, c_void};
use core::ptr;

use chase_format::layout::{OBJECT_CHASE, OBJECT_DLOPENED, TIMING_ALL};

pub(crate) use self::interposed::{find_real, is_interposed, real};
use crate::arch::{is_late, vector_area_len, with_vectors_saved};
use crate::elf::Image;
use crate::lock::{Fork, Held, Lock};
use crate::objects::Objects;
use crate::recording::Lost;
use crate::resolve::{Wanted, address_of, find_in};
use crate::signals::SignalsBlocked;
use crate::slots::{Slots, restore, write_description};
use crate::stubs::{is_exit, make_direct};
use crate::thread::{Pending, Thread};
use crate::{clock, cost, pages, recording, sampling, sys};
use chase_logic::config::Config;
use chase_logic::text::c_bytes;

/// What is loaded, and what is done with it.
pub(crate) struct State {
    objects: Objects,
    slots: Slots,
    config: Config,
    executable: Option<Image>,
    /// The C library's `dl_iterate_phdr`, inside of which the list of objects stays as it is.
    iterate: usize,
}

static LOADING: Lock<State> = Lock::new(State {
    objects: Objects::new(),
    slots: Slots::new(),
    config: Config::DEFAULT,
    executable: None,
    iterate: 0,
});

/// Finds the objects that were loaded at the start. False if the program is none that can be
/// hooked. Called while there is one thread.
pub(crate) fn survey(executable: Image, vdso: usize, path: &'static [u8], config: Config) -> bool {
    let state = &mut *LOADING.hold();
    state.config = config;
    state.executable = Some(executable);
    if !state.objects.open(&executable, vdso, path) {
        return false;
    }
    state.objects.refresh(&executable, 0, true);
    if is_late() {
        state.objects.tell_who_came_later();
    }
    interposed::find_in_place(&state.objects);
    if !state.objects.is_first_chase() {
        return false;
    }
    state.iterate = find_among(&state.objects, c"dl_iterate_phdr");
    state.iterate != 0 && find_among(&state.objects, c"gnu_get_libc_version") != 0
}

/// What is to be recorded from now on, in a process that was left before.
pub(crate) fn set_config(config: Config) {
    LOADING.hold().config = config;
}

/// Hooks again what was hooked before, and what was loaded since.
pub(crate) fn hook_again() {
    describe_again();
    pass(OBJECT_DLOPENED, false, false);
}

/// Leaves all GOT entries as they were found; gives how many.
pub(crate) fn unhook_all() -> u64 {
    let mut restored = 0u64;
    walk(restore_all, (&raw mut restored).cast());
    restored
}

/// Called back once by the C library, with the list locked.
unsafe extern "C" fn restore_all(_info: *mut c_void, _len: usize, restored: *mut c_void) -> i32 {
    let State { objects, executable, .. } = &mut *LOADING.hold();
    // SAFETY: `unhook_all` passes it.
    let restored = unsafe { &mut *restored.cast::<u64>() };
    let Some(executable) = executable else { return 1 };
    objects.refresh(executable, OBJECT_DLOPENED, false);
    for id in 0..objects.count as u32 {
        let Some(object) = objects.get_mut(id) else { continue };
        if object.loaded && object.described {
            *restored += restore(object);
        }
        object.described = false;
        object.witness = (0, 0);
        object.record = ptr::null_mut();
    }
    1
}

/// A function of the C library that the program uses; 0 if it has none. Whatever stands before it in
/// the scope of all is for the program's calls and not for ours: a sanitizer's function of this name,
/// in the executable perhaps, is not ready yet when we call it, and one of a library may do anything.
pub(crate) fn find(name: &CStr) -> usize {
    find_among(&LOADING.hold().objects, name)
}

fn find_among(objects: &Objects, name: &CStr) -> usize {
    let wanted = Wanted::new(name.to_bytes(), None);
    objects
        .c_library()
        .find_map(|object| Some(address_of(&object.image, find_in(&object.image, &wanted)?)))
        .unwrap_or(0)
}

/// Path of this library, as the dynamic linker knows it.
pub(crate) fn library_path() -> &'static [u8] {
    let loading = LOADING.hold();
    let found = loading.objects.all().iter().find(|object| object.flags & OBJECT_CHASE != 0);
    found.map_or(b"", |object| object.path)
}

/// Hooks what was loaded at the start.
pub(crate) fn hook_all() {
    pass(0, true, false);
}

/// What a look at the list is for, and what came of it.
struct Look {
    flags: u32,
    global: bool,
}

/// Looks at the list again, retires what is gone and hooks what is new and ready. False if that has to be done later: a
/// signal handler that this is called in may have interrupted a `dlopen` or a `dlclose`.
fn pass(flags: u32, global: bool, may_be_inside: bool) -> bool {
    let _signals = SignalsBlocked::new();
    // The C library may be in the middle of taking the list's lock, or have unmapped what is in the list still.
    if may_be_inside && LOADING.hold().objects.are_changing() {
        return false;
    }
    let mut look = Look { flags, global };
    walk(update, (&raw mut look).cast());
    true
}

/// Has the C library call `visit` with the list locked.
fn walk(visit: Visit, argument: *mut c_void) {
    let _signals = SignalsBlocked::new();
    let area_len = vector_area_len();
    let area = pages::allocate(area_len);
    if area.is_null() {
        return;
    }
    let iterate = LOADING.hold().iterate;
    // SAFETY: the area is ours, zeroed, and aligned to a page; the function is the C library's.
    unsafe {
        with_vectors_saved(area, || {
            let iterate: Iterate = core::mem::transmute(iterate);
            iterate(visit, argument);
        });
    }
    pages::give_back(area, area_len);
}

type Visit = unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> i32;
type Iterate = unsafe extern "C" fn(Visit, *mut c_void) -> i32;

/// Called back once by the C library, with the list locked.
unsafe extern "C" fn update(_info: *mut c_void, _len: usize, look: *mut c_void) -> i32 {
    // The C library's lock first, then ours: an application's own walk may fork or load.
    let State { objects, slots, config, executable, .. } = &mut *LOADING.hold();
    // SAFETY: `pass` passes it.
    let look = unsafe { &mut *look.cast::<Look>() };
    let Some(executable) = executable else { return 1 };
    let unreadable = objects.refresh(executable, look.flags, look.global);
    for _ in 0..unreadable {
        recording::unseen(Lost::Object);
    }
    if sys::is_confined() {
        return 1;
    }
    objects.prepare();
    let first_new = slots.count();
    for id in 0..objects.count as u32 {
        if objects.get(id).is_some_and(|object| object.loaded && !object.described) {
            slots.hook(objects, id, config);
        }
    }
    // All at once, though their entries point to them already: it is a few system calls.
    if sampling::mode() != TIMING_ALL {
        make_direct(first_new..slots.count());
    }
    1
}

/// A call that may change what is loaded is about to be made at `sp`.
/// If it gets a frame, its own entry is the thread's next call.
pub(crate) fn expect(thread: &Thread, sp: usize, mode: usize, gets_frame: bool) {
    let global = mode & libc::RTLD_GLOBAL as usize != 0;
    let outer_sp = thread.pending.get().outer_sp.max(sp);
    // SAFETY: the call's return address is there.
    let own = unsafe { *(sp as *const usize) };
    // (Of one that gets a frame it is not known which.)
    let return_address = if gets_frame { 0 } else { own };
    thread.defer(Pending {
        load_sp: sp,
        return_address,
        outer_sp,
        global,
        entering: gets_frame,
        ..thread.pending.get()
    });
}

/// The call at `sp` has its frame, or runs without. If it may change what is loaded, it does that from now on.
pub(crate) fn entered(thread: &Thread, sp: usize) {
    let pending = thread.pending.get();
    if pending.entering && pending.load_sp == sp {
        thread.pending.set(Pending { entering: false, ..pending });
    }
}

/// Looks at what was loaded, if that is pending and a call at `sp` shows that its time has come.
pub(crate) fn catch_up(thread: &Thread, sp: usize) {
    let pending = thread.pending.get();
    if pending == Pending::NONE {
        return;
    }
    if pending.load_sp == 0 {
        return;
    }
    // (A handler may have a stack of its own, above the one that it has interrupted.)
    let is_own = thread.holds(sp) && thread.holds(pending.load_sp);
    // It is that call's own entry, or a signal handler's, unless a handler has jumped out of that call.
    if pending.entering && (sp <= pending.load_sp || !is_own) {
        return;
    }
    // A call from above, or another return address in its place, shows that the load is over. If it
    // is not, what is new may be ready all the same, and its constructors running.
    const TRIES: u32 = 64;
    // SAFETY: the place is on a stack that this thread has been on.
    let there = unsafe { *(pending.load_sp as *const usize) };
    let runs = if pending.return_address == 0 {
        // (What returns to the frame is put there when it has been claimed.)
        is_exit(there) || thread.has_frame_at(pending.load_sp)
    } else {
        there == pending.return_address
    };
    let returned = sp >= pending.load_sp || !runs;
    if !returned && pending.tries >= TRIES {
        return;
    }
    let is_over = !runs || sp >= pending.load_sp && is_own;
    {
        let _cost = cost::Start::begin();
        if !pass(OBJECT_DLOPENED, pending.global, !is_over) {
            return;
        }
    }
    if !returned {
        return thread.pending.set(Pending { tries: pending.tries + 1, ..pending });
    }
    thread.settle();
    if pending.outer_sp > sp && pending.outer_sp != pending.load_sp {
        thread.defer(Pending { load_sp: pending.outer_sp, ..pending });
    }
}

/// Whether `dlopen(name)` may find something else when it seems to be called from here instead of
/// from `caller`.
pub(crate) fn depends_on_caller(name: usize, caller: usize) -> bool {
    let name = c_bytes(name);
    if name.is_empty() {
        return false;
    }
    let _signals = SignalsBlocked::new();
    let objects = &LOADING.hold().objects;
    let object = objects.at(caller).and_then(|id| objects.get(id));
    let depends = object.is_none_or(|object| {
        let image = &object.image;
        // What a loaded object needs is searched for along its loader's RPATH, but not RUNPATH.
        // A RUNPATH makes an RPATH void.
        let (inherited, own) = (image.has_rpath && !image.has_runpath, image.has_runpath);
        object.namespace != 0 || inherited || own && !name.contains(&b'/') || name.contains(&b'$')
    });
    if depends {
        recording::unseen(Lost::LateLoad);
    }
    depends
}

/// What `look` finds in the image of the object that `address` is in.
pub(crate) fn with_image<T>(address: usize, look: impl FnOnce(&Image) -> T) -> Option<T> {
    let objects = &LOADING.hold().objects;
    let object = objects.at(address).and_then(|id| objects.get(id))?;
    Some(look(&object.image))
}

/// Makes zero of the words that are neither addresses in loaded objects nor smaller than `small`.
pub(crate) fn keep_addresses(words: &mut [u64], small: u64) {
    let objects = &LOADING.hold().objects;
    for word in words {
        if *word >= small && objects.at(*word as usize).is_none() {
            *word = 0;
        }
    }
}

/// Keeps all GOT entries as they are as long as the result lives. Signals are blocked.
pub(crate) fn hold() -> Held<'static, State> {
    LOADING.hold()
}

/// In a fork's child: describes the objects in the new recording.
pub(crate) fn describe_again() {
    let objects = &mut LOADING.hold().objects;
    for id in 0..objects.count as u32 {
        let Some(object) = objects.get_mut(id) else { continue };
        let (at, len) = object.description;
        object.record = ptr::null_mut();
        if at == 0 || !object.loaded && object.slot_count == 0 {
            continue;
        }
        // SAFETY: descriptions are kept.
        let contents =
            unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(at), len) };
        object.record = write_description(contents, id);
        if !object.loaded && !object.record.is_null() {
            // SAFETY: the record is in the mapping.
            unsafe { (*object.record).unload_ticks = clock::now() };
        }
    }
}

/// Sees to the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    LOADING.fork(moment);
}
