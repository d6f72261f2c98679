//! Makes recordings in memory from a description, for tests, benches, fixtures and fuzz seeds.
//!
//! [`Builder`] holds what a process is: objects, slots, threads. A [`Timeline`] plays what a
//! thread does, in virtual time, as an ideal hook would record it, own cost included; so the
//! right answers are known exactly. [`SyscallsBuilder`] describes what goes beside it.
//!
//! ```
//! use chase_recorder::{builder::Builder, reader::Recording};
//!
//! let mut builder = Builder::new();
//! let app = builder.executable("/usr/bin/app");
//! let libz = builder.object("/usr/lib/libz.so.1");
//! let deflate = builder.slot(app, Some(libz), "deflate");
//! let main = builder.thread("main");
//! builder.timeline(main).work(100).call(deflate, 2_000).work(50).end();
//! let bytes = builder.build();
//!
//! let recording = Recording::parse(&bytes)?;
//! assert_eq!(recording.slot(0).unwrap().name(), "deflate");
//! assert_eq!(recording.context_count(), 1);
//! # Ok::<(), chase_recorder::reader::Error>(())
//! ```
//!
//! It does not use the writer that runs in the traced process: what reads both is checked by two
//! independent sources. Like a test, it panics when it is misused.

mod file;
mod sample;
mod syscalls;
mod timeline;

use bytemuck::Zeroable;

pub use sample::sample;
pub use syscalls::{SyscallsBuilder, errnos, syscalls_sample};
pub use timeline::Timeline;

use crate::layout::{
    ArgumentPair, CLOCK_MONOTONIC, CallerRow, ClockPair, Header, MAGIC, NONE, OBJECT_EXECUTABLE,
    ORIGIN_COMPLETE, ObjectRecord, OffCpuRow, OriginRecord, READER_MIN, Segment, SlotClass,
    SlotRecord, THREAD_CREATED, THREAD_LIVE, THREAD_MAIN, ThreadRecord, VERSION,
};
use timeline::Tree;

/// An object of the process being described: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(pub u32);

/// An import of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId {
    object: ObjectId,
    at: usize,
}

/// A thread of the process being described: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(pub u32);

/// Describes a process.
#[derive(Clone, Debug)]
pub struct Builder {
    /// Everything in the first page. [`build`](Self::build) fills in `committed`, and
    /// `clock_latest` where it is zero.
    pub header: Header,
    /// Rate of the recording's clock, for `clock_latest`.
    pub ticks_per_ns: f64,
    /// Recursion folds from this level of the tree on; 0 folds all of it.
    pub depth_limit: usize,
    /// Bytes of a chunk of nodes.
    pub node_chunk_len: usize,
    /// Calls of so many ticks are kept as events; `None`: none are, nor marks.
    pub event_limit: Option<u64>,
    marks: Vec<String>,
    meta: Vec<(String, String)>,
    objects: Vec<Object>,
    threads: Vec<Thread>,
}

#[derive(Clone, Debug)]
struct Object {
    record: ObjectRecord,
    path: String,
    soname: String,
    segments: Vec<Segment>,
    slots: Vec<Slot>,
}

#[derive(Clone, Debug)]
struct Slot {
    record: SlotRecord,
    name: String,
    version: String,
}

#[derive(Clone, Debug)]
struct Thread {
    record: ThreadRecord,
    origin: Option<OriginRecord>,
    off_cpu: Vec<(usize, OffCpuRow)>,
    arguments: Vec<(usize, Vec<ArgumentPair>, u16)>,
    texts: Vec<(usize, String, u64, u64)>,
    callers: Vec<(usize, CallerRow)>,
    tree: Tree,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Process 1000, child of process 1, that started a second after boot, on a clock whose tick
    /// is a nanosecond and with a hook that costs nothing; no objects, no threads.
    #[must_use]
    pub fn new() -> Self {
        let start = 1_000_000_000;
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            reader_min: READER_MIN,
            machine: 62,
            header_len: size_of::<Header>() as u32,
            boot_id: [0xb0; 16],
            pid: 1000,
            parent_pid: 1,
            process_group: 1000,
            session: 1,
            process_start: 100,
            clock_kind: CLOCK_MONOTONIC,
            clock_start: ClockPair {
                ticks: start,
                monotonic_ns: start,
                realtime_ns: 1_700_000_000_000_000_000,
            },
            ..Header::zeroed()
        };
        Self {
            header,
            ticks_per_ns: 1.0,
            depth_limit: 64,
            node_chunk_len: 16 << 10,
            event_limit: None,
            marks: Vec::new(),
            meta: Vec::new(),
            objects: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// Adds a key and its value; see [`ChunkKind::Meta`](crate::layout::ChunkKind::Meta).
    pub fn meta(&mut self, key: &str, value: &str) -> &mut Self {
        self.meta.push((key.into(), value.into()));
        self
    }

    /// Adds the executable, and says so in the meta data.
    pub fn executable(&mut self, path: &str) -> ObjectId {
        self.meta("executable", path);
        let id = self.object(path);
        self.object_mut(id).flags |= OBJECT_EXECUTABLE;
        id
    }

    /// Adds an object that was there from the start, with its file name for a soname and one
    /// executable segment of 1 MiB.
    pub fn object(&mut self, path: &str) -> ObjectId {
        let id = self.objects.len() as u32;
        let record = ObjectRecord {
            id,
            bias: 0x7f00_0000_0000 + (u64::from(id) << 24),
            load_ticks: self.header.clock_start.ticks,
            ..ObjectRecord::zeroed()
        };
        let soname = path.rsplit('/').next().unwrap_or_default().into();
        let segments = vec![Segment { svma: 0x1000, len: 1 << 20, flags: 5, reserved: 0 }];
        self.objects.push(Object {
            record,
            path: path.into(),
            soname,
            segments,
            slots: Vec::new(),
        });
        ObjectId(id)
    }

    /// The record of an object; counts and offsets of its parts are filled in at the end.
    pub fn object_mut(&mut self, object: ObjectId) -> &mut ObjectRecord {
        &mut self.objects[object.0 as usize].record
    }

    /// Address in the process of the code that is so far into an object's first segment.
    #[must_use]
    pub fn code_address(&self, object: ObjectId, offset: u64) -> u64 {
        let object = &self.objects[object.0 as usize];
        object.record.bias + object.segments[0].svma + offset
    }

    /// Its segments.
    pub fn segments_mut(&mut self, object: ObjectId) -> &mut Vec<Segment> {
        &mut self.objects[object.0 as usize].segments
    }

    /// Adds an import that is timed and has no version.
    pub fn slot(&mut self, importer: ObjectId, provider: Option<ObjectId>, name: &str) -> SlotId {
        self.slot_of(importer, provider, name, "", SlotClass::Timed)
    }

    /// Adds an import.
    pub fn slot_of(
        &mut self,
        importer: ObjectId,
        provider: Option<ObjectId>,
        name: &str,
        version: &str,
        class: SlotClass,
    ) -> SlotId {
        let slots = &mut self.objects[importer.0 as usize].slots;
        let at = slots.len();
        let record = SlotRecord {
            provider: provider.map_or(NONE, |object| object.0),
            class: class as u16,
            got_svma: 0x4000 + 8 * at as u64,
            target_svma: 0x1000 + 16 * at as u64,
            ..SlotRecord::zeroed()
        };
        slots.push(Slot { record, name: name.into(), version: version.into() });
        SlotId { object: importer, at }
    }

    /// Adds a thread that starts with the process. The first is the main thread, and each other
    /// one was created by it.
    pub fn thread(&mut self, name: &str) -> ThreadId {
        let index = self.threads.len() as u32;
        let mut record = ThreadRecord {
            state: THREAD_LIVE,
            tid: self.header.pid + index,
            index,
            origin: if index == 0 { THREAD_MAIN } else { THREAD_CREATED },
            start_ticks: self.header.clock_start.ticks,
            creator: if index == 0 { NONE } else { 0 },
            ..ThreadRecord::zeroed()
        };
        let len = name.len().min(record.name.len() - 1);
        record.name[..len].copy_from_slice(&name.as_bytes()[..len]);
        self.threads.push(Thread {
            record,
            origin: None,
            off_cpu: Vec::new(),
            arguments: Vec::new(),
            texts: Vec::new(),
            callers: Vec::new(),
            tree: Tree::default(),
        });
        ThreadId(index)
    }

    /// The record of a thread. Change `start_ticks` before the thread does anything.
    pub fn thread_mut(&mut self, thread: ThreadId) -> &mut ThreadRecord {
        &mut self.threads[thread.0 as usize].record
    }

    /// What was seen of a thread's creation: nothing, until something is put there.
    pub fn origin_mut(&mut self, thread: ThreadId) -> &mut OriginRecord {
        self.threads[thread.0 as usize].origin.get_or_insert(OriginRecord {
            state: ORIGIN_COMPLETE,
            thread: thread.0,
            ..OriginRecord::EMPTY
        })
    }

    /// Adds what a thread, which asks, has found out of a context of its: number 0 is its root. `node_ref` is filled in.
    pub fn off_cpu(&mut self, thread: ThreadId, context: usize, row: OffCpuRow) -> &mut Self {
        let Thread { record, off_cpu, .. } = &mut self.threads[thread.0 as usize];
        record.asks += 1;
        off_cpu.push((context, row));
        self
    }

    /// Adds what timed calls in a context were asked to do (`meaning`: `ARGUMENT_*`), and how long each took: of any number of
    /// calls, as the hook would have noted them. The context's number is as in [`Builder::off_cpu`].
    pub fn arguments(
        &mut self,
        thread: ThreadId,
        context: usize,
        meaning: u16,
        calls: &[ArgumentPair],
    ) -> &mut Self {
        self.threads[thread.0 as usize].arguments.push((context, calls.to_vec(), meaning));
        self
    }

    /// Adds `calls` long calls in a context that were passed the path `text`, and took `ticks` together. The context's
    /// number is as in [`Builder::off_cpu`].
    pub fn text(
        &mut self,
        thread: ThreadId,
        context: usize,
        text: &str,
        (calls, ticks): (u64, u64),
    ) -> &mut Self {
        self.threads[thread.0 as usize].texts.push((context, text.to_owned(), calls, ticks));
        self
    }

    /// Adds samples of a context that return to `address`, and how many calls they stand for. The context's number is as in
    /// [`Builder::off_cpu`].
    pub fn caller(
        &mut self,
        thread: ThreadId,
        context: usize,
        address: u64,
        (samples, calls): (u32, u64),
    ) -> &mut Self {
        let row = CallerRow { samples, calls, return_avma: address, ..CallerRow::default() };
        self.threads[thread.0 as usize].callers.push((context, row));
        self
    }

    /// Goes on with what a thread does.
    pub fn timeline(&mut self, thread: ThreadId) -> Timeline<'_> {
        Timeline::new(self, thread)
    }

    /// The process ends when the last of its threads has done what it does so far.
    pub fn end(&mut self, kind: u32, status: i32) -> &mut Self {
        self.header.end_kind = kind;
        self.header.end_status = status;
        self.header.end_ticks = self.now_ticks();
        self
    }

    /// The latest moment of any thread.
    #[must_use]
    pub fn now_ticks(&self) -> u64 {
        let starts = self.threads.iter().map(|thread| thread.record.start_ticks);
        let nows = self.threads.iter().map(|thread| thread.tree.now_ticks());
        starts.chain(nows).fold(self.header.clock_start.ticks, u64::max)
    }

    /// What `.syscalls` files call the contexts: references by thread, its root first and then the
    /// contexts in the order in which they were entered first.
    #[must_use]
    pub fn context_refs(&self) -> Vec<Vec<u32>> {
        file::write_with_refs(self).1
    }

    /// The recording's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        file::write(self)
    }

    fn slot_class(&self, slot: SlotId) -> u16 {
        self.objects[slot.object.0 as usize].slots[slot.at].record.class
    }

    /// Number of the first slot of each object.
    fn first_slots(&self) -> Vec<u32> {
        let mut next = 0;
        let advance = |object: &Object| {
            let first = next;
            next += object.slots.len() as u32;
            first
        };
        self.objects.iter().map(advance).collect()
    }
}
