//! Resolves references, thread ids and addresses in files.

use std::collections::{HashMap, HashSet};

use chase_recorder::reader::Object;
use chase_recorder::syscalls::{
    CauseRow as Recorded, NO_SYSCALL, WAKER_INTERRUPT, WAKER_KERNEL, WAKER_PROCESS, WAKER_THREAD,
    WAKER_TIME,
};

use super::purpose::{Seen, is_parked, is_written};
use super::python_joins::{self, Join, Known, join};
use super::shared_words::{FUTEX, SharedWords};
use super::{
    Key, NamingPlaces, PartyKey, PartyKind, PartySums, PathWait, Purpose, Sums, WaitObject, add,
};
use crate::address::CodeAddress;
use crate::address_map::AddressMap;
use crate::analysis::Analysis;
use crate::common_time::CommonTime;
use crate::groups::Groups;
use crate::image::{Ending, Image};
use crate::overhead;
use crate::rows::ObjectRow;
use crate::run_start::start;
use crate::syscalls::Places;

/// Offsets of the words that threads wait on in a `pthread_cond_t`, and in a `pthread_rwlock_t`: two words each, in
/// an object that is aligned to 8 (glibc since 2.25, `struct_mutex.h` and `bits/thread-shared-types.h`). Who signals a condition may have to
/// wait until those that an earlier signal has woken are gone (until 2.41), who destroys one, until all are.
const IN_CONDITION: u64 = 40;
/// The same since 2.41, and in older ones that have its correction.
const IN_NEW_CONDITION: u64 = 32;
const IN_SIGNALLED_CONDITION: u64 = 16;
/// So much in front of these words is what whoever destroys one waits for.
const DESTROYED: u64 = 8;
const IN_RWLOCK: u64 = 8;
/// Who is to write waits at the second word of a read-write lock of Rust's (`std::sys::sync::rwlock::futex`).
const WRITERS: u64 = 4;
/// Of sampled calls, so many are made at a place that stands for all.
const MOSTLY: f64 = 0.5;

/// The threads, contexts and addresses of all images.
pub(crate) struct Run<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    naming: &'a dyn NamingPlaces,
    images: Vec<Option<OfImage>>,
    shared_words: SharedWords,
    /// Images by process id and the time at which watching began.
    by_began: HashMap<(u32, u64), usize>,
    /// The latest image by process id.
    by_pid: HashMap<u32, usize>,
}

/// An image that was watched: its threads and contexts by number in the analysis.
struct OfImage {
    in_condition: u64,
    /// Waits for ends of threads that only time tells.
    joins: HashSet<Join>,
    places: Places,
    addresses: AddressMap,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        images: &[Image],
        analysis: &'a Analysis,
        groups: &'a Groups,
        naming: &'a dyn NamingPlaces,
    ) -> Self {
        let rows: HashMap<(usize, u32), usize> = (0..)
            .zip(&analysis.threads)
            .map(|(number, row)| ((row.process, row.thread), number))
            .collect();
        let objects: HashMap<&str, u32> =
            (0..).zip(&analysis.objects).map(|(number, row)| (&*row.path, number)).collect();
        let builds: HashMap<&str, u32> =
            (0..).zip(&analysis.objects).map(|(number, row)| (&*row.build_id, number)).collect();
        let mut of_images = Vec::with_capacity(images.len());
        let (mut by_began, mut by_pid) = (HashMap::new(), HashMap::new());
        for (process, image) in images.iter().enumerate() {
            let Some(file) = &image.syscalls else {
                of_images.push(None);
                continue;
            };
            by_began.insert((file.header().pid, file.header().began_ns), process);
            by_pid.insert(file.header().pid, process);
            let mut places = Places::default();
            for thread in image.recording.threads() {
                let record = thread.record();
                let Some(&number) = rows.get(&(process, record.index)) else { continue };
                places.add_thread(number as u32, record.tid, record.root_ref);
                for (context, part) in thread.contexts().zip(&analysis.threads[number].contexts) {
                    let (number, reference) = (number as u32, context.reference);
                    places.add_context(number, record.tid, reference, part.context);
                }
            }
            let object_of = |object: &Object<'_>| {
                let by_build = || {
                    let build_id: String =
                        object.build_id().iter().map(|byte| format!("{byte:02x}")).collect();
                    builds.get(&*build_id).filter(|_| !build_id.is_empty())
                };
                objects.get(&*object.path()).or_else(by_build).copied()
            };
            let addresses = AddressMap::new(&image.recording, object_of);
            let in_condition = match image.recording.header().condition_words {
                IN_NEW_CONDITION => IN_NEW_CONDITION,
                _ => IN_CONDITION,
            };
            of_images.push(Some(OfImage {
                in_condition,
                joins: HashSet::new(),
                places,
                addresses,
            }));
        }
        let shared_words = SharedWords::new(images);
        let mut run =
            Self { analysis, groups, naming, images: of_images, shared_words, by_began, by_pid };
        let time = CommonTime::new(images);
        let in_python = analysis.objects.iter().any(|object| object.name.contains("python"));
        if let Some(start) = start(images, analysis, &time).filter(|_| in_python) {
            for image in images.iter().enumerate() {
                let joins = python_joins::find(&run, image, (&time, start));
                if let Some(of_image) = &mut run.images[image.0] {
                    of_image.joins = joins;
                }
            }
        }
        run
    }

    pub(super) fn is_join(&self, process: usize, row: &Recorded) -> bool {
        self.images[process].as_ref().is_some_and(|image| image.joins.contains(&join(row)))
    }

    pub(super) fn add(&self, process: usize, row: &Recorded, sums: &mut HashMap<Key, Sums>) {
        let (Some(thread), api) = self.place(process, row.context_ref, row.tid) else { return };
        let Some(&group) = self.groups.of_thread.get(thread as usize) else { return };
        let object = self.object(process, row, api);
        let site = self.address(process, row.site);
        let of_object = self.process_of(process, row, &object);
        // Addresses in no file are specific to this process.
        let own = match (&object, &site) {
            (WaitObject::Memory(address) | WaitObject::Parked(address), _) if !in_file(address) => {
                Some(of_object)
            }
            (_, Some(site)) if !in_file(site) => Some(process),
            _ => None,
        };
        let syscall = (row.number != NO_SYSCALL).then_some(row.number);
        let purpose = self.purpose(process, row, api, site.as_ref(), &object);
        let site = self.of_program(process, (row.context_ref, row.tid), site);
        let site = match self.shared_words.first(process, row) {
            Some(_) => site_of_all(site, of_object == process),
            None => site.map(|site| shared(site, own)),
        };
        let key = (group, api, site, syscall, of_all(object, own), purpose, own);
        let sums =
            sums.entry(key).or_insert_with(|| Sums { process: of_object, ..Sums::default() });
        add(&mut sums.waits, row.waits);
        add(&mut sums.calls, row.calls);
        add(&mut sums.wait_ns, row.total_ns);
        add(&mut sums.ready_ns, row.ready_ns);
        sums.max_ns = sums.max_ns.max(row.max_ns);
        add(sums.by_thread.entry(thread).or_default(), row.total_ns);
        let note = |parties: &mut HashMap<PartyKey, PartySums>, (key, thread)| {
            let sums: &mut PartySums = parties.entry(key).or_default();
            add(&mut sums.waits, row.waits);
            add(&mut sums.wait_ns, row.total_ns);
            if let Some(thread) = thread {
                add(sums.by_thread.entry(thread).or_default(), row.total_ns);
            }
        };
        if row.holder != 0 {
            let holder = self.thread(process, row.holder_context_ref, row.holder, row.holder_site);
            note(&mut sums.holders, holder);
        }
        note(&mut sums.wakers, self.waker(row));
    }

    /// Returns the process in which the address of what is waited for is valid: the first one of those that share it.
    pub(super) fn process_of(&self, process: usize, row: &Recorded, object: &WaitObject) -> usize {
        let is_memory = matches!(object, WaitObject::Memory(_));
        let first = self.shared_words.first(process, row).filter(|_| is_memory);
        first.map_or(process, |(first, _)| first)
    }

    /// Describes a wait of a thread in `api`.
    pub(crate) fn wait(&self, process: usize, row: &Recorded, api: Option<u32>) -> PathWait {
        let (object, site) = (self.object(process, row, api), self.address(process, row.site));
        let purpose = self.purpose(process, row, api, site.as_ref(), &object);
        let site = self.of_program(process, (row.context_ref, row.tid), site);
        let of_object = self.process_of(process, row, &object);
        let site = site_of_all(site, of_object == process);
        PathWait { api, site, process: of_object, object: of_all(object, None), purpose }
    }

    fn purpose(
        &self,
        process: usize,
        row: &Recorded,
        api: Option<u32>,
        site: Option<&CodeAddress>,
        object: &WaitObject,
    ) -> Purpose {
        if self.is_join(process, row) {
            return Purpose::Join;
        }
        let symbol = api.map_or("", |api| &*self.analysis.apis[api as usize].symbol);
        let variable = || match object {
            WaitObject::Memory(address) => {
                self.naming.variable(self.process_of(process, row, object), address)
            }
            _ => None,
        };
        let functions = || site.map_or_else(Vec::new, |site| self.naming.functions(process, site));
        let waker_functions = || {
            let waker = self.by_began.get(&(row.waker_pid, row.waker_began_ns));
            let own = row.waker_kind == WAKER_THREAD && waker == Some(&process);
            let site = self.address(process, row.waker_site).filter(|_| own);
            site.map_or_else(Vec::new, |site| self.naming.functions(process, &site))
        };
        let file = match object {
            WaitObject::File { name } => Some(&**name),
            _ => None,
        };
        Purpose::from_wait(&Seen {
            syscall: row.number,
            detail: row.detail,
            symbol,
            by_own_process: row.waker_kind == WAKER_THREAD
                && self.by_began.get(&(row.waker_pid, row.waker_began_ns)) == Some(&process),
            is_owned: row.holder != 0,
            file,
            variable: &variable,
            functions: &functions,
            waker_functions: &waker_functions,
        })
    }

    /// Returns who ended a wait, and the thread's number.
    pub(crate) fn waker(&self, row: &Recorded) -> (PartyKey, Option<u32>) {
        let name = until_nul(&row.waker_name);
        match row.waker_kind {
            WAKER_THREAD => match self.process_of_waker(row) {
                Some(at) => self.thread(at, row.waker_context_ref, row.waker, row.waker_site),
                None => ((PartyKind::Process, None, None, None, name, None), None),
            },
            // A process that is ending is not watched any more when it wakes those that wait for its end: its first
            // thread stands for it. After an exec, a program that is not recorded has its place.
            WAKER_PROCESS => match self.by_pid.get(&row.waker_pid) {
                Some(&at) if self.analysis.processes[at].ending != Ending::Exec => {
                    self.thread(at, 0, row.waker_pid, 0)
                }
                _ => ((PartyKind::Process, None, None, None, name, None), None),
            },
            WAKER_KERNEL => (nobody(PartyKind::Kernel), None),
            WAKER_INTERRUPT => (nobody(PartyKind::Interrupt), None),
            WAKER_TIME => (nobody(PartyKind::Time), None),
            _ => (nobody(PartyKind::Unknown), None),
        }
    }

    /// The process of a thread that ended a wait. Where it was gone by the time that the wait was written, or another one had
    /// its place already, the thread is not in the process that is told; a main thread is known by its number all the same.
    fn process_of_waker(&self, row: &Recorded) -> Option<usize> {
        let told = self.by_began.get(&(row.waker_pid, row.waker_began_ns)).copied();
        let has_it = |&at: &usize| self.place(at, 0, row.waker).0.is_some();
        let by_number = || self.by_pid.get(&row.waker).copied();
        told.filter(has_it).or_else(by_number).or(told)
    }

    fn thread(
        &self,
        process: usize,
        reference: u32,
        tid: u32,
        site: u64,
    ) -> (PartyKey, Option<u32>) {
        let (thread, api) = self.place(process, reference, tid);
        let group = thread.and_then(|thread| self.groups.of_thread.get(thread as usize).copied());
        let site = self.of_program(process, (reference, tid), self.address(process, site));
        let site = site.map(|site| shared(site, None));
        // Addresses in no file are specific to this process.
        let own = site.filter(|site| site.svma.is_none()).map(|_| process);
        ((PartyKind::Thread, group, api, site, String::new(), own), thread)
    }

    /// Returns the thread, by number in the analysis, and the API.
    pub(crate) fn place(
        &self,
        process: usize,
        reference: u32,
        tid: u32,
    ) -> (Option<u32>, Option<u32>) {
        let Some(image) = &self.images[process] else { return (None, None) };
        let (thread, place) = image.places.place_of(reference, tid);
        // The place for no context is beyond all of them.
        (thread, self.analysis.contexts.get(place as usize).map(|context| context.api))
    }

    /// The place in the program nearest to a call: its own; or, where that is not known, since a library made the call by a jump
    /// at its function's end, or where it is in the library of C++, that of the call around it. Only contexts that are told apart by
    /// places have that (`CHASE_SITES`), and those of which calls were sampled, or took long.
    fn of_program(
        &self,
        process: usize,
        (reference, tid): (u32, u32),
        site: Option<CodeAddress>,
    ) -> Option<CodeAddress> {
        if site.is_some_and(|site| !self.is_in_runtime(&site)) {
            return site;
        }
        let (_, mut place) = self.images[process].as_ref()?.places.place_of(reference, tid);
        let contexts = &self.analysis.contexts;
        while let Some(context) = contexts.get(place as usize) {
            let most = || context.places_by_time().iter().find(|place| place.share >= MOSTLY);
            let around = context.site.or_else(|| most().and_then(|place| place.address));
            // (Elsewhere an address in no file is another.)
            let is_known = |at: &CodeAddress| at.svma.is_some() && !self.is_in_runtime(at);
            if let Some(around) = around.filter(is_known) {
                return Some(around);
            }
            let Some(parent) = context.parent else { break };
            place = parent;
        }
        site
    }

    /// Whether a place is in the library of C++, whose functions stand for what the program does.
    fn is_in_runtime(&self, site: &CodeAddress) -> bool {
        let object = site.object.and_then(|object| self.analysis.objects.get(object as usize));
        object.is_some_and(ObjectRow::is_library_of_cpp)
    }

    /// What was loaded where in a process that was watched.
    pub(crate) fn addresses(&self, process: usize) -> Option<&AddressMap> {
        self.images[process].as_ref().map(|image| &image.addresses)
    }

    /// Where a call returns to. A call by a jump, at a function's end, returns to where its caller does: if that is a landing pad,
    /// it is no place of the program.
    pub(crate) fn address(&self, process: usize, avma: u64) -> Option<CodeAddress> {
        let image = self.images[process].as_ref().filter(|_| avma != 0)?;
        let address = image.addresses.find_ever(avma);
        let object = address.object.and_then(|object| self.analysis.objects.get(object as usize));
        object.is_none_or(|object| object.name != overhead::OWN).then_some(address)
    }

    /// What a thread waits for that calls `futex` itself: a lock at a word of the thread's own is known by the place where it waits.
    fn of_runtime(&self, process: usize, row: &Recorded, word: u64) -> Result<CodeAddress, u64> {
        let Some(site) = self.address(process, row.site) else { return Err(word) };
        let functions = self.naming.functions(process, &site);
        match () {
            () if is_parked(&functions) => Ok(site),
            () if is_written(&functions) => Err(word.saturating_sub(WRITERS)),
            () => Err(word),
        }
    }

    pub(crate) fn object(&self, process: usize, row: &Recorded, api: Option<u32>) -> WaitObject {
        if row.number != FUTEX {
            return match row.object {
                0 => WaitObject::None,
                _ => WaitObject::File { name: until_nul(&row.name) },
            };
        }
        let first = self.shared_words.first(process, row);
        let (of_word, word) = first.unwrap_or((process, row.object));
        // A thread that waits for a condition also waits for the mutex before it continues, and that has an owner.
        let symbol = api.map_or("", |api| &*self.analysis.apis[api as usize].symbol);
        let symbol = symbol.trim_start_matches('_');
        let start = match () {
            () if symbol.contains("join") || self.is_join(process, row) => return WaitObject::None,
            () if row.holder != 0 => word,
            () if matches!(symbol, "" | "syscall") => match self.of_runtime(process, row, word) {
                Ok(site) => return WaitObject::Parked(site),
                Err(word) => word,
            },
            () if symbol.starts_with("pthread_cond_") => {
                let image = self.images[process].as_ref();
                let in_condition = image.map_or(IN_CONDITION, |image| image.in_condition);
                let offset = match symbol {
                    "pthread_cond_signal" | "pthread_cond_broadcast" => IN_SIGNALLED_CONDITION,
                    "pthread_cond_destroy" => in_condition - DESTROYED,
                    _ => in_condition,
                };
                word.saturating_sub(offset) & !7
            }
            () if symbol.starts_with("pthread_rwlock_") => word.saturating_sub(IN_RWLOCK) & !7,
            () if symbol.starts_with("pthread_barrier_") => word & !7,
            () => word,
        };
        self.address(of_word, start).map_or(WaitObject::None, WaitObject::Memory)
    }
}

impl Known for Run<'_> {
    fn symbol(&self, process: usize, row: &Recorded) -> Option<&str> {
        let (_, api) = self.place(process, row.context_ref, row.tid);
        api.map(|api| &*self.analysis.apis[api as usize].symbol)
    }

    fn functions(&self, process: usize, avma: u64) -> Vec<String> {
        let address = self.address(process, avma);
        address.map_or_else(Vec::new, |address| self.naming.functions(process, &address))
    }

    fn end_ns(&self, process: usize, tid: u32) -> Option<u64> {
        let (thread, _) = self.place(process, 0, tid);
        Some(self.analysis.threads.get(thread? as usize)?.end_ns.0)
    }
}

fn nobody(kind: PartyKind) -> PartyKey {
    (kind, None, None, None, String::new(), None)
}

/// Makes an address in a file independent of the process.
fn shared(address: CodeAddress, own: Option<usize>) -> CodeAddress {
    match address.svma {
        Some(svma) if own.is_none() => CodeAddress { avma: svma, ..address },
        _ => address,
    }
}

/// The same for a site of a wait, which tells nothing in another process if it is in no file.
fn site_of_all(site: Option<CodeAddress>, is_own: bool) -> Option<CodeAddress> {
    site.filter(|site| is_own || in_file(site)).map(|site| shared(site, None))
}

fn in_file(address: &CodeAddress) -> bool {
    address.svma.is_some()
}

fn of_all(object: WaitObject, own: Option<usize>) -> WaitObject {
    match object {
        WaitObject::Memory(address) => WaitObject::Memory(shared(address, own)),
        WaitObject::Parked(site) => WaitObject::Parked(shared(site, own)),
        other => other,
    }
}

fn until_nul(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
