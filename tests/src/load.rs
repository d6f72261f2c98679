//! From files to what [`crate::recorded`] shows of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chase_analyzer::{Analysis, Image, Selection};
use chase_recorder::histogram::{bucket_of, bucket_start};
use chase_recorder::layout::{
    END_EXIT, EXTENSION, NONE, ORIGIN_FORK, STOP_NONE, SlotClass, THREAD_CREATED, THREAD_ENDED,
};
use chase_recorder::reader::{Context, Recording as Reader, Slot};

use crate::check::{all_tables, contradictions};
use crate::recorded::{Api, Binding, Figures, Process, Recording, Thread};

impl Recording {
    /// Reads every recording in `directory`.
    ///
    /// # Panics
    ///
    /// If one can't be read.
    #[must_use]
    pub fn load(directory: &Path) -> Recording {
        recording(directory)
    }

    /// The same where processes may have been killed before their recordings were begun. Those are removed.
    ///
    /// # Panics
    ///
    /// If one that was begun can't be read.
    #[must_use]
    pub fn load_of_killed(directory: &Path) -> Recording {
        for entry in fs::read_dir(directory).expect("read the directory of recordings") {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("read a recording");
            if bytes.iter().take(8).all(|byte| *byte == 0) {
                fs::remove_file(&path).expect("remove a recording");
            }
        }
        recording(directory)
    }
}

fn recording(directory: &Path) -> Recording {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("no recordings in {}: {error}", directory.display()));
    let mut processes = Vec::new();
    let mut disk_bytes = 0;
    for entry in entries {
        let path = entry.expect("read the directory of recordings").path();
        disk_bytes += fs::metadata(&path).map_or(0, |metadata| metadata.blocks() * 512);
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            processes.push(process(&path));
        }
    }
    processes.sort_by_key(|process| (process.pid, process.start_ticks));
    hold_together(directory);
    Recording { processes, disk_bytes }
}

/// Whatever was recorded, its figures must not contradict each other.
pub(crate) fn hold_together(directory: &Path) {
    // (Nothing was recorded: what the test makes of that is its own.)
    let Ok(loaded) = chase_analyzer::load(directory) else { return };
    let found = contradictions(&all_tables(&loaded.images), true);
    assert!(found.is_empty(), "{}: figures contradict each other: {found:#?}", directory.display());
}

fn process(path: &Path) -> Process {
    let bytes = fs::read(path).expect("read a recording");
    let reader = Reader::parse(bytes)
        .unwrap_or_else(|error| panic!("can't read the recording {}: {error}", path.display()));
    assert!(reader.problems().is_empty(), "{}: {:?}", path.display(), reader.problems());
    let image = Image::of(path.to_owned(), reader);
    let images = [image];
    let analysis = Analysis::new(&images, Selection::All);
    let reader = &images[0].recording;
    let apis = apis(reader);
    // The analyzer may count a call that seems to have ended before it began; see `open_calls`.
    let sum = |number: fn(&Api) -> u64| apis.iter().map(number).sum::<u64>();
    let (found, least) = (analysis.totals.calls, sum(|api| api.calls));
    let possible = least..=least + sum(|api| api.unwound);
    assert!(possible.contains(&found), "the analyzer counts {found} calls, the tests {possible:?}");

    let header = reader.header();
    // Who is killed, or jumps, may do it in the middle of a change.
    if header.end_kind == END_EXIT && reader.threads().count() == 1 && sum(|api| api.unwound) == 0 {
        reader.threads().flat_map(|thread| thread.contexts()).for_each(|it| check_durations(&it));
    }
    let executable = reader.meta_value("executable").unwrap_or_default();
    let skipped =
        reader.objects().map(|object| (file_name(&object.path()), object.record().skipped));
    Process {
        pid: header.pid,
        parent_pid: header.parent_pid,
        start_ticks: header.clock_start.ticks,
        forked: header.origin == ORIGIN_FORK,
        executable: file_name(&executable),
        end: (header.end_kind, header.end_status),
        stop_reason: header.stop_reason,
        unseen: header.unseen,
        apis,
        callers: callers(reader),
        figures: figures(&analysis),
        latest_calls: analysis.not_seen.latest_calls,
        self_ns: self_times(&analysis),
        threads: threads(reader, &analysis),
        bindings: bindings(reader),
        skipped: skipped.collect(),
    }
}

fn apis(reader: &Reader) -> Vec<Api> {
    let mut apis: BTreeMap<u32, Api> = BTreeMap::new();
    for context in reader.threads().flat_map(|thread| thread.contexts()) {
        let node = context.node();
        if context.is_inherited() {
            assert_eq!(node.calls, 0, "slot {}: the call is the parent's", context.slot());
            continue;
        }
        let Some(slot) = reader.slot(context.slot()) else {
            assert_eq!(node.calls, 0, "calls of slot {}, which is in no object", node.slot);
            continue;
        };
        let api = apis.entry(slot.number).or_insert_with(|| Api {
            importer: object_name(reader, slot.importer),
            provider: object_name(reader, slot.record().provider),
            name: slot.name().into_owned(),
            version: slot.version().into_owned(),
            calls: 0,
            unwound: 0,
            open: 0,
        });
        api.calls += context.calls();
        api.unwound += u64::from(node.unwound);
        api.open += open_calls(&context, &slot);
    }
    apis.into_values().collect()
}

fn callers(reader: &Reader) -> BTreeMap<(String, String), u64> {
    let mut callers = BTreeMap::new();
    for thread in reader.threads() {
        let contexts: Vec<_> = thread.contexts().collect();
        let name = |context: &Context| {
            reader.slot(context.slot()).map(|slot| slot.name().into_owned()).unwrap_or_default()
        };
        for context in &contexts {
            let caller = context.caller.and_then(|number| contexts.get(number as usize));
            assert_eq!(caller.map(|caller| caller.number), context.caller);
            let pair = (caller.map(name).unwrap_or_default(), name(context));
            *callers.entry(pair).or_default() += context.calls();
        }
    }
    callers.retain(|_, calls| *calls > 0);
    callers
}

/// The call path chose the buckets; the total and the longest tell which are possible.
fn check_durations(context: &Context) {
    let (node, histogram) = (context.node(), context.histogram());
    if context.samples().is_some() || context.is_inherited() {
        return;
    }
    let sum = |edge: fn(usize) -> u64| {
        histogram.buckets().map(|(bucket, count)| edge(bucket) * count).sum::<u64>()
    };
    let (least, most) = (sum(bucket_start), sum(|bucket| bucket_start(bucket + 1)));
    assert!((least..=most).contains(&node.total_ticks), "{node:?}: {least} to {most} ticks");
    let highest = histogram.buckets().map(|(bucket, _)| bucket).max();
    let longest = highest.map(|_| bucket_of(node.max_ticks));
    assert_eq!(highest, longest, "{node:?}: {histogram:?}");
}

/// Calls begun that neither returned nor were left. Only those that are timed can tell.
///
/// An asynchronous cancellation may leave a call in the very moment of its return: each call that
/// was left may be counted among the completed ones too.
fn open_calls(context: &Context, slot: &Slot) -> u64 {
    if slot.class() != SlotClass::Timed {
        return 0;
    }
    if let Some(samples) = context.samples() {
        assert!(samples.ended <= samples.begun, "{}: {samples:?}", slot.name());
        return u64::from(samples.begun - samples.ended);
    }
    let (node, completed) = (context.node(), context.histogram().count());
    let unwound = u64::from(node.unwound);
    assert!(completed <= node.calls, "{}: {completed} of {} returned", slot.name(), node.calls);
    node.calls.saturating_sub(completed + unwound)
}

fn figures(analysis: &Analysis) -> Vec<(String, String, Figures)> {
    let of = |row: &chase_analyzer::ApiRow| {
        let measures = &row.measures;
        let (calls, estimated) = (measures.calls, measures.calls_estimated);
        let figures =
            Figures { calls, timed: measures.timed, estimated, ci95: measures.calls_ci95 };
        (row.library.clone(), row.symbol.clone(), figures)
    };
    analysis.apis.iter().map(of).collect()
}

fn self_times(analysis: &Analysis) -> Vec<(String, String, f64)> {
    let rows = analysis.apis.iter();
    rows.map(|row| (row.library.clone(), row.symbol.clone(), row.measures.self_ns.as_f64()))
        .collect()
}

fn threads(reader: &Reader, analysis: &Analysis) -> Vec<Thread> {
    let threads: BTreeMap<u32, _> =
        reader.threads().map(|thread| (thread.record().index, thread)).collect();
    let warm_cost = reader.header().cost_sampled as f64 / 1024.0;
    let thread = |row: &chase_analyzer::ThreadRow| {
        let thread = &threads[&row.thread];
        let record = thread.record();
        let of_api = |api: chase_analyzer::ThreadApi| {
            (analysis.apis[api.api as usize].symbol.clone(), api.self_ns.as_f64())
        };
        Thread {
            tid: record.tid,
            created: record.origin == THREAD_CREATED,
            ended: record.state == THREAD_ENDED,
            has_start_routine: record.start_routine_avma != 0,
            lifetime_ns: row.lifetime_ns.as_f64(),
            application_ns: row.application_ns.as_f64(),
            own_cost_ns: row.own_cost_ns.as_f64(),
            lost_calls: row.lost_calls,
            overlap_ns: row.overlap_ns.as_f64(),
            ci95_ns: row.measures.ci95_ns.as_f64(),
            self_ns: row.apis.iter().map(of_api).collect(),
            sample_cost: thread.sample_cost().map(|cost| (cost, warm_cost)),
        }
    };
    analysis.threads.iter().map(thread).collect()
}

fn bindings(reader: &Reader) -> Vec<Binding> {
    let header = reader.header();
    let complete = header.stop_reason == STOP_NONE && header.unseen.objects == 0;
    let path = |id| {
        let object = reader.object(id);
        assert!(object.is_some() || !complete, "object {id} of a slot is not in the recording");
        object.map(|object| object.path().into_owned())
    };
    let slots = reader.objects().flat_map(|object| object.slots().collect::<Vec<_>>());
    let provided = slots.filter(|slot| slot.record().provider != NONE);
    let binding = |slot: Slot| {
        Some(Binding {
            importer: path(slot.importer)?,
            symbol: slot.name().into_owned(),
            version: slot.version().into_owned(),
            provider: path(slot.record().provider)?,
        })
    };
    provided.filter_map(binding).collect()
}

fn object_name(reader: &Reader, id: u32) -> String {
    reader.object(id).map_or_else(|| "?".to_owned(), |object| file_name(&object.path()))
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
