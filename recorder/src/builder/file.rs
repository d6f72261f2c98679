//! From the description to bytes.

use bytemuck::{Zeroable, bytes_of, cast_slice};

use super::timeline::{Kind, TreeNode};
use super::{Builder, Object, SlotId, Thread};
use crate::histogram::PAGE_BUCKETS;
use crate::layout::{
    ARGUMENT_PATH, ArgumentHead, ArgumentRow, CHUNK_MAGIC, COMMITTED, CallerRow, ChunkHeader,
    ChunkKind, ClockPair, EventRecord, FRAMED, INHERITED, MARK_NAME, MarkName, NONE, Node,
    OffCpuRow, PAGE, ROOT_SLOT, SAMPLED, SAMPLES_SLOT, Samples, ShortArgumentRow, TEXT_BYTES,
    TEXT_UNITS, TextRow, UNIT, argument_bucket,
};

pub(super) fn write(builder: &Builder) -> Vec<u8> {
    write_with_refs(builder).0
}

/// The file, and for each thread the references of its root and of its contexts.
pub(super) fn write_with_refs(builder: &Builder) -> (Vec<u8>, Vec<Vec<u32>>) {
    let mut all_refs = Vec::new();
    let mut file = vec![0; PAGE];
    let meta: String =
        builder.meta.iter().map(|(key, value)| format!("{key}\0{value}\0")).collect();
    chunk(&mut file, ChunkKind::Meta, NONE, meta.len() as u32, meta.as_bytes());

    let first_slots = builder.first_slots();
    for (object, &first_slot) in builder.objects.iter().zip(&first_slots) {
        chunk(&mut file, ChunkKind::Object, object.record.id, 1, &contents(object, first_slot));
    }
    let mut records = Vec::new();
    let mut trees = Vec::new();
    let mut off_cpu = Vec::new();
    let mut arguments = Vec::new();
    let mut texts = Vec::new();
    let mut callers = Vec::new();
    // The records come before the trees in the file, and they say where the trees are.
    let threads_len = (UNIT + builder.threads.len() * UNIT).next_multiple_of(PAGE);
    let trees_at = file.len() + threads_len;
    for thread in &builder.threads {
        let mut space = NodeSpace::new(builder.node_chunk_len, thread.record.index, trees_at);
        space.file = std::mem::take(&mut trees);
        let mut record = thread.record;
        let refs = place_tree(&mut space, thread, &first_slots);
        record.root_ref = refs[0];
        off_cpu.push(off_cpu_rows(thread, &refs));
        arguments.push(argument_rows(thread, &refs));
        texts.push(text_rows(thread, &refs));
        let in_file =
            |&(context, row): &(usize, CallerRow)| CallerRow { node_ref: refs[context], ..row };
        callers.push(thread.callers.iter().map(in_file).collect::<Vec<_>>());
        all_refs.push(refs);
        records.push(record);
        trees = space.file;
    }
    chunk(&mut file, ChunkKind::Threads, NONE, records.len() as u32, cast_slice(&records));
    file.append(&mut trees);
    for (thread, rows) in (0..).zip(&off_cpu).filter(|(_, rows)| !rows.is_empty()) {
        chunk(&mut file, ChunkKind::OffCpu, thread, rows.len() as u32, cast_slice(rows));
    }
    for (thread, rows) in (0..).zip(&arguments).filter(|(_, rows)| !rows.is_empty()) {
        chunk(&mut file, ChunkKind::Arguments, thread, (rows.len() / UNIT) as u32, rows);
    }
    for (thread, rows) in (0..).zip(&texts).filter(|(_, rows)| !rows.is_empty()) {
        let units = (rows.len() * TEXT_UNITS) as u32;
        chunk(&mut file, ChunkKind::Texts, thread, units, cast_slice(rows));
    }
    for (thread, rows) in (0..).zip(&callers).filter(|(_, rows)| !rows.is_empty()) {
        chunk(&mut file, ChunkKind::Callers, thread, rows.len() as u32, cast_slice(rows));
    }
    for (thread, refs) in builder.threads.iter().zip(&all_refs) {
        let events = events(thread, refs);
        if !events.is_empty() {
            let (owner, count) = (thread.record.index, events.len() as u32 - 1);
            chunk(&mut file, ChunkKind::Events, owner, count, cast_slice(&events));
        }
    }
    if !builder.marks.is_empty() {
        let marks: Vec<MarkName> = builder.marks.iter().map(|name| mark(name)).collect();
        chunk(&mut file, ChunkKind::Marks, NONE, marks.len() as u32, cast_slice(&marks));
    }
    let origins: Vec<_> = builder.threads.iter().filter_map(|thread| thread.origin).collect();
    if !origins.is_empty() {
        let count = origins.len() as u32;
        chunk(&mut file, ChunkKind::Origins, NONE, count, cast_slice(&origins));
    }

    let mut header = builder.header;
    header.committed = file.len() as u64;
    if header.clock_latest == ClockPair::default() {
        let ticks = builder.now_ticks();
        let elapsed_ns = (ticks - header.clock_start.ticks) as f64 / builder.ticks_per_ns;
        header.clock_latest = ClockPair {
            ticks,
            monotonic_ns: header.clock_start.monotonic_ns + elapsed_ns as u64,
            realtime_ns: header.clock_start.realtime_ns + elapsed_ns as u64,
        };
    }
    file[..size_of_val(&header)].copy_from_slice(bytes_of(&header));
    (file, all_refs)
}

/// Among empty places, as a hash table leaves them.
fn off_cpu_rows(thread: &Thread, refs: &[u32]) -> Vec<OffCpuRow> {
    let row = |&(context, row): &(usize, OffCpuRow)| {
        [OffCpuRow::zeroed(), OffCpuRow { node_ref: refs[context], ..row }]
    };
    thread.off_cpu.iter().flat_map(row).collect()
}

/// A short row where the calls fit into it; otherwise one that was given up, and a long one.
fn argument_rows(thread: &Thread, refs: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (context, calls, meaning) in &thread.arguments {
        let values = || calls.iter().map(|pair| pair.value);
        let mut head = ArgumentHead {
            node_ref: refs[*context],
            units: ArgumentHead::SHORT,
            meaning: *meaning,
            calls: calls.len() as u64,
            weight: calls.len() as u64,
            sum: values().sum(),
            max: values().max().unwrap_or(0),
            ..ArgumentHead::default()
        };
        let mut short = ShortArgumentRow { head, ..ShortArgumentRow::zeroed() };
        for (place, pair) in short.pairs.iter_mut().zip(calls) {
            *place = *pair;
        }
        if calls.len() > short.pairs.len() {
            short.head.longer_ref = 1;
            bytes.extend_from_slice(bytes_of(&short));
            head.units = ArgumentHead::LONG;
            let mut long = ArgumentRow { head, ..ArgumentRow::zeroed() };
            values().for_each(|value| long.buckets[argument_bucket(value)] += 1);
            // Spread over them.
            let places = long.pairs.len();
            for (at, place) in long.pairs.iter_mut().enumerate() {
                let from = if calls.len() > places { at * calls.len() / places } else { at };
                *place = calls.get(from).copied().unwrap_or_default();
            }
            bytes.extend_from_slice(bytes_of(&long));
        } else {
            bytes.extend_from_slice(bytes_of(&short));
        }
    }
    // One text that has no row any more.
    for (context, ..) in thread.texts.iter().take(1) {
        let head = ArgumentHead {
            node_ref: refs[*context],
            units: ArgumentHead::SHORT,
            meaning: ARGUMENT_PATH,
            longer_ref: 1,
            until_kept: 1,
            negative: 1,
            sum: 7,
            ..ArgumentHead::default()
        };
        bytes.extend_from_slice(bytes_of(&ShortArgumentRow { head, ..ShortArgumentRow::zeroed() }));
    }
    bytes
}

/// The rows of a thread's texts.
fn text_rows(thread: &Thread, refs: &[u32]) -> Vec<TextRow> {
    let row = |(context, text, calls, ticks): &(usize, String, u64, u64)| {
        let kept = &text.as_bytes()[text.len().saturating_sub(TEXT_BYTES)..];
        let mut row = TextRow {
            node_ref: refs[*context],
            calls: *calls,
            ticks: *ticks,
            max_ticks: *ticks,
            len: kept.len() as u16,
            is_cut: u16::from(kept.len() < text.len()),
            ..TextRow::zeroed()
        };
        row.text[..kept.len()].copy_from_slice(kept);
        row
    };
    thread.texts.iter().map(row).collect()
}

/// What is in front of them, and the events.
fn events(thread: &Thread, refs: &[u32]) -> Vec<EventRecord> {
    let events = (1..).zip(&thread.tree.events).map(|(number, &(context, event))| {
        let subject = context.map_or(event.subject, |context| refs[context + 1]);
        let event = EventRecord { subject, number, ..event };
        EventRecord { check: event.check_of(), ..event }
    });
    let mut all = vec![EventRecord::zeroed()];
    all.extend(events);
    if all.len() == 1 { Vec::new() } else { all }
}

fn mark(name: &str) -> MarkName {
    let len = name.len().min(MARK_NAME);
    let mut record = MarkName { state: 1, len: len as u32, name: [0; MARK_NAME] };
    record.name[..len].copy_from_slice(&name.as_bytes()[..len]);
    record
}

/// Number of a slot in the file.
fn number_of(slot: SlotId, first_slots: &[u32]) -> u32 {
    first_slots[slot.object.0 as usize] + slot.at as u32
}

pub(super) fn chunk(file: &mut Vec<u8>, kind: ChunkKind, owner: u32, count: u32, contents: &[u8]) {
    let len = (UNIT + contents.len()).next_multiple_of(PAGE);
    let start = file.len();
    file.extend_from_slice(bytes_of(&chunk_header(kind, owner, count, len)));
    file.extend_from_slice(contents);
    file.resize(start + len, 0);
}

fn chunk_header(kind: ChunkKind, owner: u32, count: u32, len: usize) -> ChunkHeader {
    ChunkHeader {
        magic: CHUNK_MAGIC,
        kind: kind as u32,
        len: len as u64,
        state: COMMITTED,
        owner,
        count,
        reserved: [0; 25],
    }
}

fn contents(object: &Object, first_slot: u32) -> Vec<u8> {
    let mut strings = vec![0];
    let mut add = |text: &str| {
        if text.is_empty() {
            return 0;
        }
        let offset = strings.len() as u32;
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        offset
    };
    let mut record = object.record;
    record.first_slot = first_slot;
    record.slot_count = object.slots.len() as u32;
    record.segment_count = object.segments.len() as u32;
    record.path_off = add(&object.path);
    record.soname_off = add(&object.soname);
    let mut slots = Vec::new();
    for slot in &object.slots {
        let mut record = slot.record;
        record.name_off = add(&slot.name);
        record.version_off = add(&slot.version);
        slots.push(record);
    }
    record.strings_len = strings.len() as u32;
    [bytes_of(&record), cast_slice(&object.segments), cast_slice(&slots), &strings].concat()
}

/// Places a root and the thread's nodes; returns their references.
fn place_tree(space: &mut NodeSpace, thread: &Thread, first_slots: &[u32]) -> Vec<u32> {
    let (root_ref, root_at) = space.node();
    let root = Node { slot: ROOT_SLOT, scope_ref: root_ref, ..Node::zeroed() };
    space.put(root_at, bytes_of(&root));
    let mut refs = vec![root_ref];
    for node in &thread.tree.nodes {
        let (node_ref, at) = space.node_with(if node.samples.is_some() { 2 } else { 1 });
        refs.push(node_ref);
        let slot = number_of(node.slot, first_slots);
        let flags = match (node.inherited, &node.samples) {
            (true, _) => INHERITED,
            (false, Some(_)) if node.kind == Kind::Framed => SAMPLED | FRAMED,
            (false, Some(_)) => SAMPLED,
            (false, None) => 0,
        };
        let mut page_refs = place_pages(space, node);
        if let Some(samples) = node.samples {
            let page_refs = std::mem::take(&mut page_refs);
            let samples = Samples { slot: SAMPLES_SLOT, page_refs, ..samples };
            space.put(at + UNIT, bytes_of(&samples));
        }
        let record = Node {
            parent_ref: node.caller.map_or(root_ref, |caller| refs[caller + 1]),
            slot: slot | flags,
            calls: node.calls,
            total_ticks: node.total_ticks(),
            max_ticks: node.histogram.max(),
            last_start_ticks: node.last_start_ticks(),
            scope_ref: refs[node.scope + 1],
            unwound: node.unwound,
            page_refs,
        };
        space.put(at, bytes_of(&record));
    }
    refs
}

fn place_pages(space: &mut NodeSpace, node: &TreeNode) -> [u32; crate::histogram::PAGES] {
    let mut page_refs = [0; crate::histogram::PAGES];
    for &page in &node.pages {
        let mut counts = [0_u64; PAGE_BUCKETS];
        for (bucket, count) in node.histogram.buckets() {
            if bucket / PAGE_BUCKETS == page {
                counts[bucket % PAGE_BUCKETS] = count;
            }
        }
        let (page_ref, at) = space.page();
        space.put(at, cast_slice(&counts));
        page_refs[page] = page_ref;
    }
    page_refs
}

/// Chunks of one thread's nodes: nodes from the front, histogram pages from the back.
struct NodeSpace {
    file: Vec<u8>,
    /// Where `file` begins in the whole recording.
    base: usize,
    chunk_len: usize,
    owner: u32,
    chunk: usize,
    count: u32,
    next: usize,
    back: usize,
}

impl NodeSpace {
    fn new(chunk_len: usize, owner: u32, base: usize) -> Self {
        let file = Vec::new();
        Self { file, base, chunk_len, owner, chunk: 0, count: 0, next: 0, back: 0 }
    }

    /// Room for a node: its reference and its place in `file`.
    fn node(&mut self) -> (u32, usize) {
        self.node_with(1)
    }

    /// The same for a node with what is behind it, `units` in all.
    fn node_with(&mut self, units: usize) -> (u32, usize) {
        self.make_room(units);
        let at = self.next;
        self.next += units * UNIT;
        self.count += units as u32;
        let header = chunk_header(ChunkKind::Nodes, self.owner, self.count, self.chunk_len);
        self.put(self.chunk, bytes_of(&header));
        (((self.base + at) / UNIT) as u32, at)
    }

    fn page(&mut self) -> (u32, usize) {
        self.make_room(1);
        self.back -= UNIT;
        (((self.base + self.back) / UNIT) as u32, self.back)
    }

    fn make_room(&mut self, units: usize) {
        if self.next + units * UNIT > self.back {
            self.chunk = self.file.len();
            self.count = 0;
            self.next = self.chunk + UNIT;
            self.back = self.chunk + self.chunk_len;
            self.file.resize(self.back, 0);
            let header = chunk_header(ChunkKind::Nodes, self.owner, 0, self.chunk_len);
            self.put(self.chunk, bytes_of(&header));
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.file[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
