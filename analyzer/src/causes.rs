//! What threads waited for, and who ended that, as the kernel saw it: where, for which lock or file, who held it, who woke them
//! doing what.

use std::collections::HashMap;

use chase_recorder::layout::OWN_CONTEXT_REF;
use chase_recorder::reader::Object;
use chase_recorder::syscalls::{
    CauseRow as Recorded, NO_SYSCALL, WAKER_INTERRUPT, WAKER_KERNEL, WAKER_PROCESS, WAKER_THREAD,
};
use serde::Serialize;

use crate::address::CodeAddress;
use crate::address_map::AddressMap;
use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::groups::Groups;
use crate::image::Image;
use crate::syscalls::Places;

/// `futex(2)`.
const FUTEX: u32 = 202;
/// Where the words that threads wait on are in a `pthread_cond_t`, and in a `pthread_rwlock_t`: two words each, in an object that is
/// aligned to 8 (glibc since 2.25, `struct_mutex.h` and `bits/thread-shared-types.h`).
const IN_CONDITION: u64 = 40;
const IN_RWLOCK: u64 = 8;
/// Holders and wakers that are told of a row.
const TOLD: usize = 4;

/// Waits of a group of threads, in one call at one place, for one thing.
#[derive(Clone, Debug, Serialize)]
pub struct CauseRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code.
    pub api: Option<u32>,
    /// Return address of the call; `None` where it is not known.
    pub site: Option<CodeAddress>,
    /// A process that addresses of this row are of, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// The system call that they waited in, if it was one.
    pub syscall: Option<u32>,
    /// What for.
    pub object: WaitObject,
    /// Waits.
    pub waits: u64,
    /// Their time, until the threads ran again.
    pub wait_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// The part of the time in which the threads had been woken already.
    pub ready_ns: Ns,
    /// Threads that waited.
    pub threads: usize,
    /// Who owned the mutex meanwhile, longest first; of very many some are left out.
    pub holders: Vec<Party>,
    /// Who ended the waits, longest first; of very many some are left out.
    pub wakers: Vec<Party>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum WaitObject {
    /// A lock, a condition, or whatever else is made of a futex, at this address.
    Memory(CodeAddress),
    /// A file, a connection, a pipe.
    File {
        /// Its path or its ends; empty if it was closed before that could be seen.
        name: String,
    },
    /// Not known, or nothing but time.
    None,
}

/// Who held what others waited for, or ended their waits.
#[derive(Clone, Debug, Serialize)]
pub struct Party {
    /// Who that is.
    pub kind: PartyKind,
    /// The group of threads, by number in [`Groups::rows`], where it is of a process of the run.
    pub group: Option<u32>,
    /// Name of another process or thread.
    pub name: String,
    /// The API that it was in, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// Return address of that call.
    pub site: Option<CodeAddress>,
    /// A process that the address is of.
    #[serde(skip)]
    pub process: usize,
    /// Waits.
    pub waits: u64,
    /// Their time.
    pub wait_ns: Ns,
}

/// Who may end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartyKind {
    /// A thread of the run.
    Thread,
    /// Another process.
    Process,
    /// A thread of the kernel's.
    Kernel,
    /// An interrupt: of a device, of the network, of a timer.
    Interrupt,
    /// Not known.
    Unknown,
}

type Key = (u32, Option<u32>, Option<CodeAddress>, Option<u32>, WaitObject, Option<usize>);
type PartyKey = (PartyKind, Option<u32>, Option<u32>, Option<CodeAddress>, String, Option<usize>);

#[derive(Default)]
struct Sums {
    process: usize,
    waits: u64,
    wait_ns: u64,
    max_ns: u64,
    ready_ns: u64,
    threads: Vec<u32>,
    holders: HashMap<PartyKey, (u64, u64)>,
    wakers: HashMap<PartyKey, (u64, u64)>,
}

/// All causes of waits, longest first; empty where no companion has seen them. `images` are those of `analysis`.
#[must_use]
pub fn causes(images: &[Image], analysis: &Analysis, groups: &Groups) -> Vec<CauseRow> {
    let run = Run::new(images, analysis, groups);
    let mut sums: HashMap<Key, Sums> = HashMap::new();
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        for row in file.causes() {
            if row.context_ref != OWN_CONTEXT_REF {
                run.add(process, &row, &mut sums);
            }
        }
    }
    let mut rows: Vec<CauseRow> = sums
        .into_iter()
        .map(|((group, api, site, syscall, object, _), sums)| CauseRow {
            group,
            api,
            site,
            process: sums.process,
            syscall,
            object,
            waits: sums.waits,
            wait_ns: Ns(sums.wait_ns),
            max_ns: Ns(sums.max_ns),
            ready_ns: Ns(sums.ready_ns),
            threads: sums.threads.len(),
            holders: parties(sums.holders, sums.process),
            wakers: parties(sums.wakers, sums.process),
        })
        .collect();
    let address = |site: Option<CodeAddress>| site.map(|site| site.avma);
    rows.sort_by(|a, b| {
        let key =
            |row: &CauseRow| (row.group, row.api, address(row.site), row.syscall, row.process);
        (b.wait_ns, key(a)).cmp(&(a.wait_ns, key(b)))
    });
    rows
}

/// `process` is one that addresses in files are of.
fn parties(of: HashMap<PartyKey, (u64, u64)>, process: usize) -> Vec<Party> {
    let mut parties: Vec<Party> = of
        .into_iter()
        .map(|((kind, group, api, site, name, own), (waits, ns))| Party {
            kind,
            group,
            name,
            api,
            site,
            process: own.unwrap_or(process),
            waits,
            wait_ns: Ns(ns),
        })
        .collect();
    let address = |site: Option<CodeAddress>| site.map(|site| site.avma);
    parties.sort_by(|a, b| {
        (b.wait_ns, a.kind, a.group, a.api, address(a.site), &a.name).cmp(&(
            a.wait_ns,
            b.kind,
            b.group,
            b.api,
            address(b.site),
            &b.name,
        ))
    });
    parties.truncate(TOLD);
    parties
}

/// What is known of the threads, contexts and addresses of all images.
struct Run<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    images: Vec<Option<OfImage>>,
    /// By process id and the moment when watching it began.
    by_began: HashMap<(u32, u64), usize>,
    /// By process id: the latest image.
    by_pid: HashMap<u32, usize>,
}

/// Of an image that was watched: its threads by number in the analysis, its contexts by API.
struct OfImage {
    places: Places,
    addresses: AddressMap,
}

impl<'a> Run<'a> {
    fn new(images: &[Image], analysis: &'a Analysis, groups: &'a Groups) -> Self {
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
                    let api = analysis.contexts[part.context as usize].api;
                    places.add_context(number as u32, record.tid, context.reference, api);
                }
            }
            let object_of = |object: &Object<'_>| {
                let build_id: String =
                    object.build_id().iter().map(|byte| format!("{byte:02x}")).collect();
                let by_build = || builds.get(&*build_id).filter(|_| !build_id.is_empty());
                objects.get(&*object.path()).or_else(by_build).copied()
            };
            let addresses = AddressMap::new(&image.recording, object_of);
            of_images.push(Some(OfImage { places, addresses }));
        }
        Self { analysis, groups, images: of_images, by_began, by_pid }
    }

    fn add(&self, process: usize, row: &Recorded, sums: &mut HashMap<Key, Sums>) {
        let (Some(thread), api) = self.place(process, row.context_ref, row.tid) else { return };
        let Some(&group) = self.groups.of_thread.get(thread as usize) else { return };
        let object = self.object(process, row, api);
        let site = self.address(process, row.site);
        // What is in no file is this process's own.
        let in_file = |address: &CodeAddress| address.svma.is_some();
        let own = match (&object, &site) {
            (WaitObject::Memory(address), _) if !in_file(address) => Some(process),
            (_, Some(site)) if !in_file(site) => Some(process),
            _ => None,
        };
        let syscall = (row.number != NO_SYSCALL).then_some(row.number);
        let key =
            (group, api, site.map(|site| shared(site, own)), syscall, of_all(object, own), own);
        let sums = sums.entry(key).or_insert_with(|| Sums { process, ..Sums::default() });
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut sums.waits, row.waits);
        add(&mut sums.wait_ns, row.total_ns);
        add(&mut sums.ready_ns, row.ready_ns);
        sums.max_ns = sums.max_ns.max(row.max_ns);
        if !sums.threads.contains(&thread) {
            sums.threads.push(thread);
        }
        let note = |parties: &mut HashMap<PartyKey, (u64, u64)>, key: PartyKey| {
            let (waits, ns) = parties.entry(key).or_default();
            add(waits, row.waits);
            add(ns, row.total_ns);
        };
        if row.holder != 0 {
            let key = self.thread(process, row.holder_context_ref, row.holder, row.holder_site);
            note(&mut sums.holders, key);
        }
        note(&mut sums.wakers, self.waker(row));
    }

    fn waker(&self, row: &Recorded) -> PartyKey {
        let name = until_nul(&row.waker_name);
        match row.waker_kind {
            WAKER_THREAD => {
                let at = self.by_began.get(&(row.waker_pid, row.waker_began_ns)).copied();
                match at {
                    Some(at) => self.thread(at, row.waker_context_ref, row.waker, row.waker_site),
                    None => (PartyKind::Process, None, None, None, name, None),
                }
            }
            // One that ends is no longer watched when it wakes who waits for that: its first thread stands for it.
            WAKER_PROCESS => match self.by_pid.get(&row.waker_pid) {
                Some(&at) => self.thread(at, 0, row.waker_pid, 0),
                None => (PartyKind::Process, None, None, None, name, None),
            },
            WAKER_KERNEL => (PartyKind::Kernel, None, None, None, String::new(), None),
            WAKER_INTERRUPT => (PartyKind::Interrupt, None, None, None, String::new(), None),
            _ => (PartyKind::Unknown, None, None, None, String::new(), None),
        }
    }

    fn thread(&self, process: usize, reference: u32, tid: u32, site: u64) -> PartyKey {
        let (thread, api) = self.place(process, reference, tid);
        let group = thread.and_then(|thread| self.groups.of_thread.get(thread as usize).copied());
        let site = self.address(process, site).map(|site| shared(site, None));
        // What is in no file is this process's own.
        let own = site.filter(|site| site.svma.is_none()).map(|_| process);
        (PartyKind::Thread, group, api, site, String::new(), own)
    }

    /// The thread, by number in the analysis, and the API.
    fn place(&self, process: usize, reference: u32, tid: u32) -> (Option<u32>, Option<u32>) {
        let Some(image) = &self.images[process] else { return (None, None) };
        let (thread, place) = image.places.of(reference, tid);
        // What stands for no context is beyond all numbers.
        (thread, Some(place).filter(|&api| (api as usize) < self.analysis.apis.len()))
    }

    fn address(&self, process: usize, avma: u64) -> Option<CodeAddress> {
        let image = self.images[process].as_ref().filter(|_| avma != 0)?;
        Some(image.addresses.find_ever(avma))
    }

    fn object(&self, process: usize, row: &Recorded, api: Option<u32>) -> WaitObject {
        if row.number != FUTEX {
            return match row.object {
                0 => WaitObject::None,
                _ => WaitObject::File { name: until_nul(&row.name) },
            };
        }
        // A thread that waits for a condition waits for the mutex as well before it goes on: that has an owner.
        let symbol = api.map_or("", |api| &*self.analysis.apis[api as usize].symbol);
        let symbol = symbol.trim_start_matches('_');
        let start = match () {
            () if row.holder != 0 => row.object,
            () if symbol.starts_with("pthread_cond_") => {
                row.object.saturating_sub(IN_CONDITION) & !7
            }
            () if symbol.starts_with("pthread_rwlock_") => {
                row.object.saturating_sub(IN_RWLOCK) & !7
            }
            () if symbol.starts_with("pthread_barrier_") => row.object & !7,
            () => row.object,
        };
        self.address(process, start).map_or(WaitObject::None, WaitObject::Memory)
    }
}

/// An address without where its file happened to be in one process of several.
fn shared(address: CodeAddress, own: Option<usize>) -> CodeAddress {
    match address.svma {
        Some(svma) if own.is_none() => CodeAddress { avma: svma, ..address },
        _ => address,
    }
}

fn of_all(object: WaitObject, own: Option<usize>) -> WaitObject {
    match object {
        WaitObject::Memory(address) => WaitObject::Memory(shared(address, own)),
        other => other,
    }
}

fn until_nul(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
