//! The loaded objects: read from the dynamic linker's list, and kept in a table of our own.
//!
//! The table only changes under the lock of [`crate::loading`].

mod lookup;

use core::ops::{Deref, DerefMut};
use core::ptr;

use chase_format::layout::{NONE, OBJECT_CHASE, OBJECT_DLOPENED, OBJECT_EXECUTABLE, OBJECT_FIXED};

use crate::arch::is_late;
use crate::index::Index;
use crate::readable::is_mapped;
use crate::{clock, pages, sys};
use chase_logic::definers::OBJECTS;
use chase_logic::dependencies::{Dependencies, Loaded, forget_lost_roots};
use chase_logic::elf::Image;
use chase_logic::resolve::{Wanted, find_in};
use chase_logic::text::c_bytes;

/// The name of this library if the dynamic linker has none.
const OWN_NAME: &[u8] = b"libchase.so";

/// The dynamic linker's entry for an object.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: usize,
    dynamic: usize,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// The dynamic linker's list of a namespace's objects.
#[repr(C)]
struct DebugList {
    version: i32,
    first: *const LinkMap,
    breakpoint: usize,
    state: i32,
    linker_base: usize,
    /// Only valid from version 2 on.
    next: *const DebugList,
}

/// An object that is or was loaded.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    map: *const LinkMap,
    searched: Loaded,
    seen: bool,
    /// Whether it is, or contains, a sanitizer's run-time library.
    pub(crate) is_sanitizer: bool,
    /// Whether its chunk is in the recording and its slots are patched.
    pub(crate) described: bool,
    /// How many chunks it has had.
    pub(crate) chunks: u32,
    pub(crate) first_slot: u32,
    pub(crate) slot_count: u32,
    /// The address of one of its GOT entries, and the value that was stored there; or zeros.
    pub(crate) witness: (usize, usize),
    /// Address and length of its chunk's contents, kept for forks and for when it is loaded again.
    description: (usize, usize),
    /// Its record in the recording, or null.
    pub(crate) record: *mut chase_format::layout::ObjectRecord,
    /// Whether its names are in the index.
    indexed: bool,
}

impl Deref for Object {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.searched
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Loaded {
        &mut self.searched
    }
}

impl Object {
    /// Returns its chunk's contents; empty if it has none.
    pub(crate) fn description(&self) -> &[u8] {
        let (at, len) = self.description;
        if at == 0 {
            return &[];
        }
        // SAFETY: they are only freed when they are replaced, which takes the lock and the table's entry.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(at), len) }
    }

    /// Keeps the contents at this address, of this length, in memory of its own, and frees the previous ones.
    pub(crate) fn replace_description(&mut self, place: (usize, usize)) {
        let (old, old_len) = core::mem::replace(&mut self.description, place);
        if old != 0 {
            sys::unmap(ptr::with_exposed_provenance_mut(old), old_len);
        }
    }

    /// Whether `handle` is what `dlopen` returns for this object.
    pub(crate) fn is_handle(&self, handle: usize) -> bool {
        self.map as usize == handle
    }

    /// Whether its GOT still is as we left it.
    fn is_patched(&self) -> bool {
        let (got, stub) = self.witness;
        // SAFETY: the object is in the dynamic linker's list, so its GOT is mapped.
        got == 0 || unsafe { ptr::with_exposed_provenance::<usize>(got).read_volatile() } == stub
    }

    /// Marks the object as unloaded.
    fn retire(&mut self) {
        self.loaded = false;
        if !self.record.is_null() {
            // SAFETY: the record is in the mapping.
            unsafe { (*self.record).unload_ticks = clock::now() };
        }
    }

    /// Marks the object as loaded again, just as it was.
    pub(crate) fn reinstate(&mut self, witness: (usize, usize)) {
        self.described = true;
        self.witness = witness;
        if !self.record.is_null() {
            // SAFETY: the record is in the mapping.
            unsafe { (*self.record).unload_ticks = 0 };
        }
    }
}

/// All objects that were ever loaded.
pub(crate) struct Objects {
    list: *const DebugList,
    objects: *mut Object,
    pub(crate) count: usize,
    /// Address ranges of the loaded objects, sorted: start, end, object.
    ranges: *mut (usize, usize, u32),
    range_count: usize,
    /// The vDSO, which is in the list but in no scope.
    vdso: usize,
    executable: Option<Image>,
    pub(crate) executable_path: &'static [u8],
    /// Index of the names of all objects; may be empty.
    index: Index,
    /// The dependencies of the object that was last looked up for.
    dependencies: Dependencies,
}

impl Objects {
    pub(crate) const fn new() -> Self {
        Self {
            list: ptr::null(),
            objects: ptr::null_mut(),
            count: 0,
            ranges: ptr::null_mut(),
            range_count: 0,
            vdso: 0,
            executable: None,
            executable_path: b"",
            index: Index::new(),
            dependencies: Dependencies::UNKNOWN,
        }
    }

    /// Prepares for reading the list that the executable's image points to. Returns false if it points to none, or if
    /// there is no memory.
    pub(crate) fn open(&mut self, executable: Image, vdso: usize, path: &'static [u8]) -> bool {
        // (An attempt that failed may have left some, and the memory for them.)
        (self.count, self.range_count) = (0, 0);
        self.list = ptr::with_exposed_provenance(executable.debug_address());
        (self.executable, self.executable_path, self.vdso) = (Some(executable), path, vdso);
        if self.objects.is_null() {
            let objects_len = OBJECTS * size_of::<Object>();
            let ranges_len = OBJECTS * size_of::<(usize, usize, u32)>();
            self.objects = sys::map_anonymous(objects_len + ranges_len).cast();
            self.ranges = self.objects.wrapping_byte_add(objects_len).cast();
        }
        !self.list.is_null() && !self.objects.is_null()
    }

    pub(crate) fn all(&self) -> &[Object] {
        if self.count == 0 {
            return &[];
        }
        // SAFETY: the first `count` entries are initialised.
        unsafe { core::slice::from_raw_parts(self.objects, self.count) }
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Object] {
        if self.count == 0 {
            return &mut [];
        }
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.objects, self.count) }
    }

    /// Returns the parts of the program's own C library.
    pub(crate) fn c_library(&self) -> impl Iterator<Item = &Object> {
        // Before version 2.34, functions for threads were in a library beside it.
        const PARTS: [&[u8]; 2] = [b"libc.so.6", b"libpthread.so.0"];
        PARTS.iter().filter_map(|part| {
            let is_part = |object: &&Object| {
                object.loaded && object.namespace == 0 && object.image.soname() == *part
            };
            self.all().iter().find(is_part)
        })
    }

    /// Returns the objects after this library in the order of look-ups, without other copies of it.
    pub(crate) fn behind_chase(&self) -> impl Iterator<Item = &Object> {
        let others = self.all().iter().skip_while(|object| object.flags & OBJECT_CHASE == 0);
        others.filter(|object| object.loaded && object.namespace == 0 && !object.is_chase)
    }

    /// Returns the objects before this library in that order.
    pub(crate) fn before_chase(&self) -> impl Iterator<Item = &Object> {
        self.all().iter().take_while(|object| object.flags & OBJECT_CHASE == 0)
    }

    /// Whether this is the first copy of the library: it may have been loaded from two places.
    pub(crate) fn is_first_chase(&self) -> bool {
        let first = self.all().iter().find(|object| object.loaded && object.is_chase);
        first.is_none_or(|object| object.flags & OBJECT_CHASE != 0)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Object> {
        self.all().get(id as usize)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Object> {
        self.all_mut().get_mut(id as usize)
    }

    /// Whether some thread is adding objects to the list or unloading them. (While constructors run, it is not.)
    pub(crate) fn are_changing(&self) -> bool {
        const RT_CONSISTENT: i32 = 0;
        // SAFETY: the lists are the dynamic linker's, and stay.
        let state = |list: *const DebugList| unsafe { (&raw const (*list).state).read_volatile() };
        self.lists().any(|list| state(list) != RT_CONSISTENT)
    }

    /// Returns the lists of all namespaces.
    fn lists(&self) -> impl Iterator<Item = *const DebugList> + use<> {
        let first = Some(self.list).filter(|list| !list.is_null());
        core::iter::successors(first, |&list| {
            // SAFETY: the lists are the dynamic linker's, and stay.
            let next = unsafe { if (*list).version >= 2 { (*list).next } else { ptr::null() } };
            Some(next).filter(|list| !list.is_null())
        })
    }

    /// Reads the list: adds new objects, and marks those that are gone as unloaded. Returns how many could not be
    /// read. The caller makes sure that the list doesn't change meanwhile.
    pub(crate) fn refresh(&mut self, new_flags: u32, global: bool) -> u64 {
        self.dependencies = Dependencies::UNKNOWN;
        let mut unreadable = 0;
        self.all_mut().iter_mut().for_each(|object| object.seen = false);
        for (namespace, list) in self.lists().enumerate() {
            // SAFETY: the lists and entries belong to the dynamic linker, which is kept from changing them.
            unsafe {
                let mut map = (*list).first;
                while !map.is_null() {
                    let is_known = self.add_or_update(map, namespace as u32, new_flags, global);
                    unreadable += u64::from(!is_known);
                    map = (*map).next;
                }
            }
        }
        for object in self.all_mut().iter_mut().filter(|object| object.loaded && !object.seen) {
            object.retire();
        }
        forget_lost_roots(self.all_mut());
        self.sort_ranges();
        unreadable
    }

    /// Adds or updates the object of one entry of the list. Returns false if it can't be read.
    unsafe fn add_or_update(
        &mut self,
        map: *const LinkMap,
        namespace: u32,
        new_flags: u32,
        global: bool,
    ) -> bool {
        // SAFETY: vouched for by `refresh`.
        let entry = unsafe { &*map };
        if self.is_still_loaded(map, entry) {
            return true;
        }
        let executable = self.executable.filter(|it| it.dynamic_address() == entry.dynamic);
        let is_executable = executable.is_some();
        let image = if is_executable {
            executable
        } else if entry.bias == self.vdso || !is_mapped(entry.bias) {
            return entry.bias == self.vdso;
        } else {
            // SAFETY: the first page of a shared object, at its bias, is its ELF header.
            unsafe { Image::at_header(entry.bias, entry.bias) }
        };
        let Some(image) = image else { return false };
        if self.count == OBJECTS {
            return false;
        }
        let is_own = image.contains(crate::stubs::stub(0));
        let path = match () {
            () if is_executable => self.executable_path,
            // If attached, this library was loaded from a file descriptor, so its path is meaningless.
            () if is_own && is_late() => OWN_NAME,
            () => c_bytes(entry.name),
        };
        let root = self.root_of_new(namespace, new_flags);
        let is_same = |it: &Object| !it.loaded && it.path == path && it.namespace == namespace;
        let before = self.all().iter().position(is_same);
        let id = before.unwrap_or(self.count);
        // An object that is loaded again keeps its number and its slots.
        let (first_slot, slot_count, chunks, description, record, path) = match self.all().get(id) {
            Some(it) => {
                (it.first_slot, it.slot_count, it.chunks, it.description, it.record, it.path)
            }
            None => (NONE, 0, 0, (0, 0), ptr::null_mut(), pages::keep(path)),
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let searched = Loaded {
            image,
            path,
            namespace,
            flags: new_flags
                | flag(is_executable, OBJECT_EXECUTABLE)
                | flag(is_executable && image.bias() == 0, OBJECT_FIXED)
                | flag(is_own, OBJECT_CHASE),
            loaded: true,
            global: global || new_flags & OBJECT_DLOPENED == 0,
            is_chase: is_chase(&image),
            root: root.unwrap_or(id as u32),
            returned: before.is_some(),
        };
        let object = Object {
            map,
            searched,
            seen: true,
            is_sanitizer: has_sanitizer(&image),
            described: false,
            chunks,
            first_slot,
            slot_count,
            witness: (0, 0),
            description,
            record,
            indexed: false,
        };
        // SAFETY: there is room, and the entry is not in use.
        unsafe { self.objects.add(id).write(object) };
        self.count = self.count.max(id + 1);
        true
    }

    /// Marks the object of this entry as seen if it is in the table and has not been loaded anew since. Otherwise returns false.
    fn is_still_loaded(&mut self, map: *const LinkMap, entry: &LinkMap) -> bool {
        let is_same = |object: &&mut Object| {
            object.loaded
                && object.map == map
                && object.image.dynamic_address() == entry.dynamic
                && object.image.bias() == entry.bias
        };
        let Some(object) = self.all_mut().iter_mut().find(is_same) else { return false };
        object.seen = object.is_patched();
        if !object.seen {
            // It was unloaded and loaded again at the same address unnoticed.
            object.retire();
        }
        object.seen
    }

    /// Returns the object whose loading loads the one that is added next; `None` if it is that one itself. (The list has the object
    /// that `dlopen` was called for first, then its dependencies.)
    fn root_of_new(&self, namespace: u32, new_flags: u32) -> Option<u32> {
        let is_loaded_with = |last: &&Object| {
            new_flags & last.flags & OBJECT_DLOPENED != 0
                && last.seen
                && last.root != NONE
                && last.namespace == namespace
                && !last.described
        };
        self.all().last().filter(is_loaded_with).map(|last| last.root)
    }

    /// Sorts the address ranges.
    fn sort_ranges(&mut self) {
        let mut count = 0;
        for (id, object) in self.all().iter().enumerate().filter(|(_, object)| object.loaded) {
            let core::ops::Range { start, end } = object.image.range();
            let range = (start, end, id as u32);
            let mut at = count;
            // SAFETY: there are as many places as objects.
            unsafe {
                while at > 0 && (*self.ranges.add(at - 1)).0 > range.0 {
                    *self.ranges.add(at) = *self.ranges.add(at - 1);
                    at -= 1;
                }
                *self.ranges.add(at) = range;
            }
            count += 1;
        }
        self.range_count = count;
    }

    /// Returns the loaded object that contains `address`.
    pub(crate) fn at(&self, address: usize) -> Option<u32> {
        // SAFETY: the first `range_count` ranges are initialised.
        let ranges = unsafe { core::slice::from_raw_parts(self.ranges, self.range_count) };
        let after = ranges.partition_point(|range| range.0 <= address);
        let range = ranges.get(after.checked_sub(1)?)?;
        (address < range.1).then_some(range.2)
    }

    /// Returns that object itself, not its number.
    pub(crate) fn object_at(&self, address: usize) -> Option<&Object> {
        self.get(self.at(address)?)
    }
}

/// A note in the file, by which one copy of this library recognises another. It is no symbol, so nobody can bind to
/// it.
#[used]
#[unsafe(link_section = ".note.chase")]
static MARK: Note = Note { name_len: 6, len: 0, kind: 1, name: *NOTE_NAME };
const NOTE_NAME: &[u8; 8] = b"CHASE\0\0\0";

#[repr(C)]
struct Note {
    name_len: u32,
    len: u32,
    kind: u32,
    name: [u8; 8],
}

fn is_chase(image: &Image) -> bool {
    image.note(MARK.kind, NOTE_NAME).is_some()
}

/// Whether an object defines a function of a sanitizer's run-time library: either a shared one, or the executable
/// that it is linked into.
fn has_sanitizer(image: &Image) -> bool {
    const STARTS: [&[u8]; 6] = [
        b"__asan_init",
        b"__hwasan_init",
        b"__lsan_init",
        b"__lsan_do_leak_check",
        b"__msan_init",
        b"__tsan_init",
    ];
    STARTS.iter().any(|name| find_in(image, &Wanted::new(name, None)).is_some())
}
