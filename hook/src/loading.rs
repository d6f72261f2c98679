//! Keeps track of what is loaded: at the start, and after each `dlopen`, `dlmopen` and `dlclose`.
//!
//! These functions look at the object that they return to. So the work is not done when they return, but at the
//! thread's next call: nothing can use a new object before that. Calls that constructors make earlier are not seen.

mod interposed;
mod list_lock;

use core::ffi::{CStr, c_void};
use core::ptr;

use chase_format::layout::{OBJECT_CHASE, OBJECT_DLOPENED, OBJECT_EXECUTABLE, TIMING_ALL};

pub(crate) use self::interposed::{find_real, is_interposed, real};
use self::list_lock::Candidates;
use crate::arch::{is_late, vector_area_len, with_vectors_saved};
use crate::images::address_of;
use crate::lock::{Fork, Held, Lock};
use crate::objects::Objects;
use crate::recording::Lost;
use crate::signals::SignalsBlocked;
use crate::slots::{Slots, restore, write_description};
use crate::stubs::{is_exit, make_direct};
use crate::thread::Thread;
use crate::{clock, cost, pages, recording, sampling, sys};
use chase_logic::config::Config;
use chase_logic::dependencies::{Loaded, mark_loaded_later};
use chase_logic::elf::{Image, Version};
use chase_logic::pending::{Look, Pending};
use chase_logic::resolve::{Wanted, find_in};
use chase_logic::text::{c_bytes, file_name};

/// What is loaded, and how it is hooked.
pub(crate) struct State {
    objects: Objects,
    slots: Slots,
    config: Config,
    /// The C library's `dl_iterate_phdr`, during which the list of objects doesn't change.
    iterate: usize,
}

static LOADING: Lock<State> = Lock::new(State {
    objects: Objects::new(),
    slots: Slots::new(),
    config: Config::DEFAULT,
    iterate: 0,
});

/// Finds the objects that were loaded at the start. Returns false if the program can't be hooked. Called while there
/// is only one thread.
pub(crate) fn find_objects(
    executable: Image,
    vdso: usize,
    path: &'static [u8],
    config: Config,
) -> bool {
    let state = &mut *LOADING.hold();
    state.config = config;
    if !state.objects.open(executable, vdso, path) {
        return false;
    }
    state.objects.refresh(0, true);
    if is_late() {
        mark_loaded_later(state.objects.all_mut());
    }
    interposed::find_real_in(&state.objects);
    if !state.objects.is_first_chase() {
        return false;
    }
    let find = |name| find_among(&state.objects, &Wanted::new(name, None));
    state.iterate = find(b"dl_iterate_phdr");
    state.iterate != 0 && find(b"gnu_get_libc_version") != 0
}

/// Sets the configuration when chase attaches again to a process that it had detached from.
pub(crate) fn set_config(config: Config) {
    LOADING.hold().config = config;
}

/// Hooks again the objects that were hooked before, and those loaded since.
pub(crate) fn hook_again() {
    describe_again();
    update_objects(OBJECT_DLOPENED, false, false);
}

/// Watches the entries through which the call may go that begins the recording; returns how many there are.
pub(crate) fn watch_first_call() -> usize {
    let (mut entries, mut locks) = (0, Candidates::NONE);
    walk(|State { objects, slots, config, .. }| {
        locks.find(objects);
        objects.prepare();
        for id in 0..objects.count as u32 {
            entries += slots.watch(objects, id, config);
        }
    });
    locks.choose();
    entries
}

/// Restores the watched entries: the call has come.
pub(crate) fn stop_watching() {
    walk(|State { objects, slots, .. }| {
        objects.refresh(OBJECT_DLOPENED, false);
        slots.unwatch(objects);
    });
}

/// Hooks all objects, when the call has come that begins the recording.
pub(crate) fn hook_from_first_call() {
    stop_watching();
    update_objects(OBJECT_DLOPENED, false, false);
}

/// Whether the list of objects can be read by a thread that may have interrupted itself in the dynamic linker: it may be taking the
/// list's lock, or have unmapped objects that are still in the list. `None` if that is not known.
pub(crate) fn can_read_list() -> Option<bool> {
    let _signals = SignalsBlocked::new();
    if LOADING.hold().objects.are_changing() { Some(false) } else { list_lock::can_be_taken() }
}

/// Returns the configuration.
pub(crate) fn config() -> Config {
    LOADING.hold().config
}

/// Restores all GOT entries to what was found in them; returns how many. The caller has been called as a function, so that vector
/// registers may change.
pub(crate) fn unhook_all() -> u64 {
    let mut restored = 0;
    let _signals = SignalsBlocked::new();
    walk_without_vectors(|State { objects, .. }| {
        objects.refresh(OBJECT_DLOPENED, false);
        for object in objects.all_mut() {
            if object.loaded && object.described {
                restored += restore(object);
            }
            object.described = false;
            object.witness = (0, 0);
            object.record = ptr::null_mut();
        }
    });
    restored
}

/// Finds a definition of the C library that the program uses; returns 0 if there is none. Only looks in the C library
/// itself: other definitions that come first in the global scope are for the program's calls, not for ours. A
/// sanitizer's replacement, perhaps in the executable, is not initialised yet when we call it, and one of another
/// library may do anything.
pub(crate) fn find(name: &CStr) -> usize {
    find_among(&LOADING.hold().objects, &Wanted::new(name.to_bytes(), None))
}

/// Finds a function in the same way: of this version, or as programs got it before there were versions.
///
/// # Safety
/// `F` is its type.
pub(crate) unsafe fn function<F: Copy>(name: &CStr, version: Option<Version>) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let wanted = Wanted::new(name.to_bytes(), version);
    let address = find_among(&LOADING.hold().objects, &wanted);
    // SAFETY: the caller vouches for the type, which has the size of an address.
    (address != 0).then(|| unsafe { core::mem::transmute_copy(&address) })
}

fn find_among(objects: &Objects, wanted: &Wanted<'_>) -> usize {
    objects
        .c_library()
        .find_map(|object| Some(address_of(&object.image, find_in(&object.image, wanted)?)))
        .unwrap_or(0)
}

/// Returns the path of this library as the dynamic linker knows it.
pub(crate) fn library_path() -> &'static [u8] {
    let loading = LOADING.hold();
    let found = loading.objects.all().iter().find(|object| object.flags & OBJECT_CHASE != 0);
    found.map_or(b"", |object| object.path)
}

/// Hooks the objects that were loaded at the start.
pub(crate) fn hook_all() {
    update_objects(0, true, false);
}

/// Reads the list again, retires objects that are gone and hooks new ones that are ready. Returns false if that has
/// to be done later: the signal handler that calls this may have interrupted a `dlopen` or `dlclose`.
fn update_objects(flags: u32, global: bool, may_be_inside: bool) -> bool {
    let _signals = SignalsBlocked::new();
    if may_be_inside && !can_read_list().unwrap_or(false) {
        return false;
    }
    let mut locks = Candidates::NONE;
    let is_done = walk(|state| {
        let unreadable = state.objects.refresh(flags, global);
        recording::add_unseen(Lost::Object, unreadable);
        locks.find(&state.objects);
        if !sys::is_confined() {
            hook_new(state);
        }
    });
    if !is_done {
        recording::unseen(Lost::Object);
    }
    locks.choose();
    true
}

/// Hooks the objects that are ready and not hooked yet.
fn hook_new(State { objects, slots, config, .. }: &mut State) {
    objects.prepare();
    // (With the first of them, the slot of the calibration.)
    let first_new = slots.first_new();
    for id in 0..objects.count as u32 {
        if objects.get(id).is_some_and(|object| object.loaded && !object.described) {
            slots.hook(objects, id, config);
        }
    }
    // All in one go, since it takes a few system calls; their GOT entries point to the stubs already.
    if sampling::mode() != TIMING_ALL {
        make_direct(first_new..slots.count());
    }
}

/// Calls `visit` with the dynamic linker's list locked, by the C library. Returns false if there is no memory for keeping
/// vector registers, which the C library may change.
fn walk(visit: impl FnMut(&mut State)) -> bool {
    let _signals = SignalsBlocked::new();
    let area_len = vector_area_len();
    let area = pages::allocate(area_len);
    if area.is_null() {
        return false;
    }
    // SAFETY: the area is ours, zeroed, and aligned to a page.
    unsafe { with_vectors_saved(area, || walk_without_vectors(visit)) };
    pages::give_back(area, area_len);
    true
}

/// The same where vector registers may change. Signals are blocked.
fn walk_without_vectors<F: FnMut(&mut State)>(mut visit: F) {
    /// Called back once.
    unsafe extern "C" fn visit_once<F: FnMut(&mut State)>(
        _info: *mut c_void,
        _len: usize,
        visit: *mut c_void,
    ) -> i32 {
        // SAFETY: `walk_without_vectors` passes it.
        let visit = unsafe { &mut *visit.cast::<F>() };
        // Takes the C library's lock first, then ours: an application's own callback may fork, or load objects.
        visit(&mut LOADING.hold());
        1
    }
    let iterate = LOADING.hold().iterate;
    // SAFETY: the function is the C library's.
    unsafe {
        let iterate: Iterate = core::mem::transmute(iterate);
        iterate(visit_once::<F>, (&raw mut visit).cast());
    }
}

type Visit = unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> i32;
type Iterate = unsafe extern "C" fn(Visit, *mut c_void) -> i32;

/// An object is about to be loaded into this namespace. Until glibc 2.35, which has `epoll_pwait2` too, only those of the first one
/// are listed.
pub(crate) fn note_namespace(namespace: usize) {
    if namespace != libc::LM_ID_BASE as usize && find(c"epoll_pwait2") == 0 {
        recording::unseen(Lost::Object);
    }
}

/// Announces a call at `sp` that may change what is loaded. If it gets a frame, its own entry is the thread's next
/// call.
pub(crate) fn announce_load(thread: &Thread, sp: usize, mode: usize, gets_frame: bool) {
    let global = mode & libc::RTLD_GLOBAL as usize != 0;
    // SAFETY: the call's return address is at `sp`.
    let return_address = unsafe { *(sp as *const usize) };
    thread.defer(thread.pending.get().with_load(sp, return_address, global, gets_frame));
}

/// The call at `sp` has got its frame, or runs without one. If it may change what is loaded, it does so from now on.
pub(crate) fn load_entered(thread: &Thread, sp: usize) {
    if let Some(entered) = thread.pending.get().entered(sp) {
        thread.pending.set(entered);
    }
}

/// Updates the list of objects if that is pending and a call at `sp` shows that the load may be over.
pub(crate) fn catch_up(thread: &Thread, sp: usize) {
    let pending = thread.pending.get();
    let is_own = thread.holds(sp) && thread.holds(pending.load_sp);
    if !pending.may_be_over(sp, is_own) {
        return;
    }
    // SAFETY: the place is on a stack that this thread has been on.
    let there = unsafe { *(pending.load_sp as *const usize) };
    let runs = if pending.return_address == 0 {
        // (A frame's return address is stored on the stack once the frame is claimed.)
        is_exit(there) || thread.has_frame_at(pending.load_sp)
    } else {
        there == pending.return_address
    };
    let Some(Look { is_over, then }) = pending.look(sp, is_own, runs) else { return };
    {
        let _cost = cost::Start::begin();
        if !update_objects(OBJECT_DLOPENED, pending.global, !is_over) {
            return;
        }
    }
    if then == Pending::NONE {
        thread.clear_pending();
    } else {
        thread.pending.set(then);
    }
}

/// Whether `dlopen(name)` may find another object when it seems to be called from this library instead of from
/// `caller`.
pub(crate) fn depends_on_caller(name: usize, caller: usize) -> bool {
    let name = c_bytes(name);
    if name.is_empty() {
        return false;
    }
    let _signals = SignalsBlocked::new();
    let depends = LOADING.hold().objects.object_at(caller).is_none_or(|object| {
        let image = &object.image;
        // An object's RPATH, but not its RUNPATH, also applies to what its dependencies load. A RUNPATH disables the
        // RPATH.
        let (rpath, own) = image.has_paths();
        let inherited = rpath && !own;
        object.namespace != 0 || inherited || own && !name.contains(&b'/') || name.contains(&b'$')
    });
    if depends {
        recording::unseen(Lost::LateLoad);
    }
    depends
}

/// Applies `look` to the image of the object that contains `address`; returns `None` if there is none.
pub(crate) fn with_image<T>(address: usize, look: impl FnOnce(&Image) -> T) -> Option<T> {
    LOADING.hold().objects.object_at(address).map(|object| look(&object.image))
}

/// A place in a loaded object.
pub(crate) struct Place {
    /// The object: its number, its path, and its soname or file name.
    pub(crate) object: u32,
    pub(crate) path: &'static [u8],
    pub(crate) name: &'static [u8],
    /// The address as in the file.
    pub(crate) svma: u64,
}

/// Returns the place of an address in code, or in data that stays as the dynamic linker has made it.
pub(crate) fn place_of(address: usize) -> Option<Place> {
    let objects = &LOADING.hold().objects;
    let id = objects.at(address)?;
    let object = objects.get(id)?;
    let Loaded { image, path, flags, .. } = **object;
    let is_executable = flags & OBJECT_EXECUTABLE != 0;
    (image.executes(address) || image.is_relro(address)).then(|| Place {
        object: id,
        path,
        name: if is_executable { file_name(path) } else { object.name() },
        svma: address.wrapping_sub(image.bias()) as u64,
    })
}

/// Returns the path of the executable.
pub(crate) fn executable_path() -> &'static [u8] {
    LOADING.hold().objects.executable_path
}

/// Returns the list of threads that are recorded (`CHASE_THREADS`).
pub(crate) fn wanted_threads() -> &'static [u8] {
    LOADING.hold().config.threads
}

/// Zeroes the words that are neither addresses in loaded objects nor smaller than `small`.
pub(crate) fn keep_addresses(words: &mut [u64], small: u64) {
    let objects = &LOADING.hold().objects;
    for word in words {
        if *word >= small && objects.at(*word as usize).is_none() {
            *word = 0;
        }
    }
}

/// Keeps all GOT entries unchanged as long as the result lives. Signals are blocked.
pub(crate) fn hold() -> Held<'static, State> {
    LOADING.hold()
}

/// Describes the objects in a new recording, in a fork's child or after a return.
pub(crate) fn describe_again() {
    for (id, object) in LOADING.hold().objects.all_mut().iter_mut().enumerate() {
        object.record = ptr::null_mut();
        if object.description().is_empty() || !object.loaded && object.slot_count == 0 {
            continue;
        }
        object.record = write_description(object.description(), id as u32);
        if !object.loaded && !object.record.is_null() {
            // SAFETY: the record is in the mapping.
            unsafe { (*object.record).unload_ticks = clock::now() };
        }
    }
}

/// Handles the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    LOADING.fork(moment);
}
