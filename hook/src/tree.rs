//! The calling-context tree of a thread, and the table that finds a node by (scope, slot).
//!
//! The call path itself looks up nodes (`call.S`); this module adds nodes and histogram pages. It does so with
//! signals blocked, since a handler may call libraries, too.

mod arguments;
mod callers;
mod durations;
mod texts;

use core::cell::{Cell, UnsafeCell};
use core::ptr;

use chase_format::layout::{
    CallerRow, ChunkKind, FRAMED, NONE, Node, PAGE, ROOT_SLOT, SAMPLED, UNIT,
};
use chase_format::writer::{NodeSpace, RowSpace};

use chase_logic::hash;

pub(crate) use self::arguments::Kept;
pub(crate) use self::texts::{Text, has_text};
use crate::abi::Entry;
use crate::node::{SLOT_MASK, is_sampled, node_at, reference, samples_of};
use crate::recording::{self, Lost};
use crate::signals::SignalsBlocked;
use crate::{pages, sites, traits};

/// How many contexts a thread may have before further ones are put under its root.
const MANY_NODES: usize = 1 << 14;
/// How many entries a thread's table may have; then calls in new contexts are not recorded any more.
const MANY_ENTRIES: usize = 1 << 21;
/// How often a table can double.
const DOUBLINGS: usize = (MANY_ENTRIES / FIRST_ENTRIES).ilog2() as usize;
/// The number of entries of a thread's first table, which is in the thread's own page.
pub(crate) const FIRST_ENTRIES: usize = 128;

/// What the call path reads of the table: the table itself, or [`CLOSED`] to send every call through the slow path.
#[repr(C)]
pub(crate) struct Shown {
    /// Size of the table less one entry, in bytes.
    pub(crate) mask: Cell<usize>,
    pub(crate) table: Cell<*const Entry>,
}

/// An empty table.
struct Closed(Entry);
// SAFETY: it is never written.
unsafe impl Sync for Closed {}
static CLOSED: Closed = Closed(Entry { key: 0, node: ptr::null_mut() });

/// A thread's tree. A signal handler may change it between any two instructions that run without signals blocked. So
/// its fields are cells: no reference to the tree promises that they stay the same.
#[repr(C)]
pub(crate) struct Tree {
    pub(crate) shown: Shown,
    table: Cell<*mut Entry>,
    entries: Cell<usize>,
    /// The thread's number in the recording.
    pub(crate) owner: Cell<u32>,
    pub(crate) root: Cell<*mut Node>,
    /// Used only with signals blocked.
    space: UnsafeCell<NodeSpace>,
    /// Space for rows of arguments; likewise used with signals blocked.
    rows: UnsafeCell<RowSpace>,
    /// The same for rows of texts.
    texts: UnsafeCell<RowSpace>,
    /// Tables of the places that sampled calls are made from; null until they are needed.
    callers: [Cell<*mut CallerRow>; callers::TABLES],
    nodes: Cell<usize>,
    used: Cell<usize>,
    /// Outgrown tables, each twice the size of the one before. They are kept, because a signal handler may enlarge
    /// the table while the call path is reading it.
    outgrown: [Cell<*mut Entry>; DOUBLINGS],
}

fn key(caller: *const Node, slot: u32) -> u64 {
    hash::key(caller.addr(), slot)
}

/// Returns the node in whose scope the calls of `caller` are.
fn scope_of(caller: *const Node) -> *mut Node {
    // SAFETY: nodes live as long as the mapping.
    node_at(unsafe { (*caller).scope_ref })
}

impl Tree {
    /// A tree without a root and without a table.
    pub(crate) const fn new() -> Self {
        Self {
            shown: Shown { mask: Cell::new(0), table: Cell::new(&raw const CLOSED.0) },
            table: Cell::new(ptr::null_mut()),
            entries: Cell::new(0),
            owner: Cell::new(NONE),
            root: Cell::new(ptr::null_mut()),
            space: UnsafeCell::new(NodeSpace::none()),
            rows: UnsafeCell::new(RowSpace::none()),
            texts: UnsafeCell::new(RowSpace::none()),
            callers: [const { Cell::new(ptr::null_mut()) }; callers::TABLES],
            nodes: Cell::new(0),
            used: Cell::new(0),
            outgrown: [const { Cell::new(ptr::null_mut()) }; DOUBLINGS],
        }
    }

    /// Begins a tree of thread `owner`. Its first table is the `FIRST_ENTRIES` entries at `table`, zeroed; the tables
    /// of an earlier tree are freed. Returns false if the recording has no room. Signals are blocked.
    pub(crate) fn plant(&self, owner: u32, table: *mut Entry) -> bool {
        self.release();
        self.owner.set(owner);
        self.nodes.set(0);
        self.table.set(table);
        self.entries.set(FIRST_ENTRIES);
        self.used.set(0);
        self.callers.iter().for_each(|table| table.set(ptr::null_mut()));
        // SAFETY: signals are blocked.
        unsafe {
            *self.space.get() = NodeSpace::none();
            *self.rows.get() = RowSpace::none();
            *self.texts.get() = RowSpace::none();
        }
        self.open();
        self.root.set(self.push_node(0, ROOT_SLOT, None));
        !self.root.get().is_null()
    }

    /// Shows the table to the call path, unless contexts are told apart by the places of calls, which it can't do.
    pub(crate) fn open(&self) {
        if sites::are_on() {
            return self.close();
        }
        self.shown.table.set(self.table.get());
        self.shown.mask.set((self.entries.get() - 1) * size_of::<Entry>());
    }

    /// Sends every call of this thread through the slow path, until [`Tree::open`].
    pub(crate) fn close(&self) {
        self.shown.mask.set(0);
        self.shown.table.set(&raw const CLOSED.0);
    }

    /// Whether the call path uses the table, because nothing is pending.
    pub(crate) fn is_open(&self) -> bool {
        self.shown.table.get() == self.table.get().cast_const()
    }

    /// Frees all tables but the first.
    pub(crate) fn release(&self) {
        let mut entries = FIRST_ENTRIES;
        for place in &self.outgrown {
            let table = place.replace(ptr::null_mut());
            if table.is_null() {
                break;
            }
            if entries > FIRST_ENTRIES {
                pages::give_back(table.cast(), entries * size_of::<Entry>());
            }
            entries *= 2;
        }
        if entries > FIRST_ENTRIES {
            pages::give_back(self.table.get().cast(), entries * size_of::<Entry>());
        }
    }

    /// Returns the node of calls of `slot` in the context of `parent`; null if there is none.
    pub(crate) fn find(&self, parent: *const Node, slot: u32) -> *mut Node {
        self.entry_of(scope_of(parent), slot)
    }

    fn entry_of(&self, caller: *const Node, slot: u32) -> *mut Node {
        let key = key(caller, slot);
        let entry = if arguments::are_noted(slot) {
            self.with_argument(key).unwrap_or_else(|| self.place(key))
        } else {
            self.place(key)
        };
        // SAFETY: `place` stays inside the table.
        unsafe { if (*entry).key == 0 { ptr::null_mut() } else { arguments::node_of(&*entry) } }
    }

    /// Returns the node of calls of `slot` in the context of `parent`. Adds it if it is missing, and enters it where
    /// the call path looks for it. Returns null if the recording has no room.
    pub(crate) fn find_or_add(&self, parent: *mut Node, slot: u32) -> *mut Node {
        let found = self.find(parent, slot);
        let is_complete = !found.is_null() && self.is_found_from(parent, slot);
        if is_complete || found.is_null() && recording::stopped() {
            return found;
        }
        let _signals = SignalsBlocked::new();
        // A handler may have added it before the signals were blocked.
        let found = self.find(parent, slot);
        let node = if found.is_null() { self.add(parent, slot) } else { found };
        if !node.is_null() && !self.is_found_from(parent, slot) {
            self.insert_node(parent, slot, node);
        }
        node
    }

    /// Whether the call path finds the node of `parent`'s scope from this caller, too, or never looks for it there.
    fn is_found_from(&self, parent: *const Node, slot: u32) -> bool {
        slot & (SAMPLED | FRAMED) == SAMPLED
            || ptr::eq(scope_of(parent), parent)
            || !self.entry_of(parent, slot).is_null()
    }

    fn add(&self, parent: *mut Node, slot: u32) -> *mut Node {
        // SAFETY: nodes live as long as the mapping.
        let scope = unsafe { (*parent).scope_ref };
        let node = if self.nodes.get() < MANY_NODES || scope == reference(self.root.get()) {
            if scope != reference(self.root.get()) {
                traits::note_child(parent);
            }
            let folded = if slot & FRAMED == 0 {
                ancestor_with(scope, slot)
            } else {
                self.scope_of_timed(parent, slot)
            };
            self.push_node(scope, slot, folded)
        } else {
            recording::unseen(Lost::ContextUnderRoot);
            let found = self.find(self.root.get(), slot);
            if found.is_null() { self.add(self.root.get(), slot) } else { found }
        };
        if node.is_null() || !self.insert_node(node_at(scope), slot, node) {
            return ptr::null_mut();
        }
        node
    }

    /// Returns the node of calls of `slot` that get frames and are not all timed. Adds it if it is missing, beside
    /// that of timed calls. Returns null if the recording has no room.
    pub(crate) fn find_or_add_framed(&self, parent: *mut Node, slot: u32) -> *mut Node {
        let framed = slot | SAMPLED | FRAMED;
        if self.find(parent, framed).is_null() && self.find_or_add(parent, slot).is_null() {
            return ptr::null_mut();
        }
        self.find_or_add(parent, framed)
    }

    /// Returns the scope of the timed calls beside those that get frames and are not all timed.
    fn scope_of_timed(&self, parent: *const Node, slot: u32) -> Option<u32> {
        let timed = self.find(parent, slot & SLOT_MASK);
        // SAFETY: nodes live as long as the mapping.
        (!timed.is_null()).then(|| unsafe { (*timed).scope_ref })
    }

    fn push_node(&self, parent_ref: u32, slot: u32, scope: Option<u32>) -> *mut Node {
        // SAFETY: signals are blocked.
        let space = unsafe { &mut *self.space.get() };
        let is_sampled = slot & SAMPLED != 0 && slot != ROOT_SLOT;
        let add = |space: &mut NodeSpace| {
            if is_sampled {
                space.sampled_node(parent_ref, slot)
            } else {
                space.node(parent_ref, slot)
            }
        };
        let mut node = add(space);
        if node.is_none() && self.more_space(space) {
            node = add(space);
        }
        let Some(node) = node else { return ptr::null_mut() };
        // SAFETY: the node is new and ours; nobody reads it before it is published.
        unsafe { (*node).scope_ref = scope.unwrap_or_else(|| reference(node)) };
        space.publish();
        self.nodes.set(self.nodes.get() + 1);
        node
    }

    /// Continues in a new chunk: of one page for a thread's first contexts, and of several for those with many.
    /// Returns false if there is no room.
    fn more_space(&self, space: &mut NodeSpace) -> bool {
        let nodes = self.nodes.get();
        let len = if nodes == 0 { PAGE } else { (nodes * UNIT * 2).clamp(2 * PAGE, 16 * PAGE) };
        let len = len.next_multiple_of(PAGE);
        let chunk = recording::chunk(ChunkKind::Nodes, self.owner.get(), len);
        chunk.inspect(|&chunk| space.enter(chunk)).is_some()
    }

    /// Returns the number of calls made in these scopes (0: none); `None` if there are too many contexts to search.
    pub(crate) fn calls_in<const N: usize>(&self, scopes: [u32; N]) -> Option<u64> {
        const MANY: usize = 1 << 12;
        let (table, entries) = (self.table.get(), self.entries.get());
        if entries > MANY {
            return None;
        }
        let callers = scopes.map(|scope| node_at(scope).addr() as u32);
        let mut calls = 0;
        for i in 0..entries {
            // SAFETY: `i` is inside the table; nodes live as long as the mapping.
            unsafe {
                let entry = *table.add(i);
                let caller = hash::caller_of(entry.key);
                if entry.key != 0 && callers.contains(&caller) && !entry.node.is_null() {
                    calls += (*arguments::node_of(&entry)).calls;
                }
            }
        }
        Some(calls)
    }

    /// Completes samples when no call is open any more: a cancellation may have come between two instructions, one
    /// that counts a sample as begun or ended, and one that makes its frame live or dead.
    pub(crate) fn close_samples(&self) {
        for i in 0..self.entries.get() {
            // SAFETY: `i` is inside the table; nodes live as long as the mapping.
            unsafe {
                let entry = *self.table.get().add(i);
                let node = arguments::node_of(&entry);
                if !node.is_null() && is_sampled(node) {
                    let samples = samples_of(node);
                    (*samples).begun = (*samples).ended;
                }
            }
        }
    }

    /// Makes `node`, which is in no recording, the node of `slot` under the root, with one histogram page for all
    /// durations. For calls that are not the application's. Returns false if there is no room.
    ///
    /// # Safety
    /// The node is never freed or used otherwise, and if `slot` has `SAMPLED`, neither is the sample data behind it.
    pub(crate) unsafe fn lend(&self, node: *mut Node, slot: u32) -> bool {
        let page = self.push_page();
        // SAFETY: the caller vouches for the node.
        unsafe {
            (*node).slot = slot;
            (*node).scope_ref = reference(self.root.get());
            if is_sampled(node) {
                (*samples_of(node)).page_refs.fill(page);
            } else {
                (*node).page_refs.fill(page);
            }
        }
        page != 0 && self.insert(key(self.root.get(), slot), node)
    }

    fn push_page(&self) -> u32 {
        // SAFETY: signals are blocked.
        let space = unsafe { &mut *self.space.get() };
        if let Some(page) = space.page() {
            return reference(page);
        }
        if recording::stopped() || !self.more_space(space) {
            return 0;
        }
        space.page().map_or(0, |page| reference(page))
    }

    /// Returns the node that has the same context in this tree as `node` has in another thread's; null if there is no
    /// room.
    pub(crate) fn translate(&self, node: *const Node) -> *mut Node {
        const DEEP: usize = 64;
        let mut path = [NONE; DEEP];
        let mut depth = 0;
        let mut at = node;
        // SAFETY: parents lead to the root, within the mapping.
        unsafe {
            while (*at).parent_ref != 0 && depth < DEEP {
                path[depth] = (*at).slot & !(SAMPLED | FRAMED);
                depth += 1;
                at = node_at((*at).parent_ref);
            }
        }
        if depth == 0 {
            return ptr::null_mut();
        }
        let mut parent = self.root.get();
        for &slot in path[..depth].iter().rev() {
            parent = self.find_or_add(parent, slot);
            if parent.is_null() {
                return parent;
            }
        }
        parent
    }

    fn insert(&self, key: u64, node: *mut Node) -> bool {
        if self.used.get() * 4 >= self.entries.get() && !self.enlarge() {
            return false;
        }
        let entry = self.place(key);
        // SAFETY: `place` found a free entry of the table. The key is stored last: a probe that sees it also sees the
        // node.
        unsafe {
            (*entry).node = node;
            ptr::write_volatile(&raw mut (*entry).key, key);
        }
        self.used.set(self.used.get() + 1);
        true
    }

    fn enlarge(&self) -> bool {
        let entries = self.entries.get() * 2;
        if entries > MANY_ENTRIES {
            return false;
        }
        let table = pages::allocate(entries * size_of::<Entry>()).cast::<Entry>();
        if table.is_null() {
            return false;
        }
        let (old, old_entries) = (self.table.get(), self.entries.get());
        let open = self.is_open();
        self.table.set(table);
        self.entries.set(entries);
        for i in 0..old_entries {
            // SAFETY: `i` is inside the old table, and the new one has room for all of it.
            unsafe {
                let entry = *old.add(i);
                if entry.key != 0 {
                    *self.place(entry.key) = entry;
                }
            }
        }
        if open {
            self.open();
        }
        if let Some(place) =
            self.outgrown.get((old_entries / FIRST_ENTRIES).trailing_zeros() as usize)
        {
            place.set(old);
        }
        true
    }

    /// Returns the entry with `key`, or the free one where it belongs.
    fn place(&self, key: u64) -> *mut Entry {
        let (table, mask) = (self.table.get(), self.entries.get() - 1);
        let mut index = hash::hash(key) as usize / size_of::<Entry>();
        loop {
            // SAFETY: the index is masked to the table, which is never full.
            let entry = unsafe { table.add(index & mask) };
            // SAFETY: as above.
            let found = unsafe { (*entry).key };
            if found == key || found == 0 {
                return entry;
            }
            index += 1;
        }
    }
}

/// Returns the scope into which a recursive call of `slot` is folded; `None` if the call is not recursive.
fn ancestor_with(scope: u32, slot: u32) -> Option<u32> {
    let mut at = scope;
    while at != 0 {
        let node = node_at(at);
        // SAFETY: parents lead to the root, within the mapping.
        unsafe {
            if (*node).slot & SLOT_MASK == slot & SLOT_MASK && (*node).parent_ref != 0 {
                return Some((*node).scope_ref);
            }
            at = (*node).parent_ref;
        }
    }
    None
}
