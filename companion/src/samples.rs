//! Samples of what ran, summed up by process, thread, context and address.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;

use chase_format::syscalls::{FILE_NAME, FileRow, LONG_TURN_NS, SampleRow};

use crate::file::{Place, SyscallsFile};
use crate::generated::Names;
use crate::maps::{self, Mapping};
use crate::shared::{Process, Sample, Turn};
use crate::timed_samples::TimedSamples;

/// A process may have this many pages of addresses that are in no mapping; then its mappings are not read again for
/// more.
const MANY_STRANGE: usize = 64;
const PAGE_BITS: u32 = 12;

/// A process may have this many different keys; further samples are counted for their thread alone, with an address
/// that is in no object.
const MANY: usize = 1 << 18;

/// So many of the latest samples of a thread are kept until it is known whether they are late in a turn.
const MANY_LATE: usize = 1 << 12;

/// Samples are distinguished by thread, context and address.
type Key = (u32, u32, u64);

#[derive(Debug)]
struct Counts {
    user: u32,
    kernel: u32,
    /// Of its row, and the row's index among those of its kind.
    place: Option<(Place, u32)>,
    is_written: bool,
}

impl Counts {
    /// Their row, which is about to be written.
    fn written(&mut self, (tid, context_ref, address): Key) -> SampleRow {
        self.is_written = true;
        SampleRow { context_ref, tid, address, user: self.user, kernel: self.kernel }
    }
}

fn count(all: &mut HashMap<Key, Counts>, changed: &mut Vec<Key>, key: Key, in_kernel: bool) {
    let counts =
        all.entry(key).or_insert(Counts { user: 0, kernel: 0, place: None, is_written: true });
    let count = if in_kernel { &mut counts.kernel } else { &mut counts.user };
    *count = count.saturating_add(1);
    if counts.is_written {
        counts.is_written = false;
        changed.push(key);
    }
}

/// The maximum number of different files of a process.
const MANY_FILES: usize = 1 << 10;

#[derive(Debug)]
struct FileSamples {
    row: FileRow,
    place: Option<Place>,
    is_written: bool,
}

/// Samples of one process.
#[derive(Debug, Default)]
pub struct Samples {
    counts: HashMap<Key, Counts>,
    changed: Vec<Key>,
    /// The same of those late in long turns.
    late: HashMap<Key, Counts>,
    changed_late: Vec<Key>,
    /// By thread, those that may be: with their times, and whether they were in the kernel.
    perhaps_late: HashMap<u32, VecDeque<(u64, Key, bool)>>,
    /// When samples were taken.
    timed: TimedSamples<Key>,
    /// Samples in system calls on a file: by thread, context, system call and inode.
    files: HashMap<(u32, u32, u32, u64), FileSamples>,
    mappings: Vec<Mapping>,
    /// The mappings that are written: those that contain samples.
    written_mappings: HashSet<(u64, u64)>,
    /// Pages of addresses that were in no mapping when mappings were read.
    strange: HashSet<u64>,
    /// Set if generated code has run.
    names: Option<Names>,
}

impl Samples {
    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        if sample.file != 0 {
            self.add_file(sample);
        }
        let mut key = (sample.tid, sample.context, sample.address);
        if self.counts.len() >= MANY && !self.counts.contains_key(&key) {
            key = (sample.tid, 0, 0);
        }
        let in_kernel = sample.in_kernel != 0;
        count(&mut self.counts, &mut self.changed, key, in_kernel);
        self.timed.add(key, sample.at_ns, in_kernel);
        if sample.is_late != 0 {
            let perhaps_late = self.perhaps_late.entry(sample.tid).or_default();
            if perhaps_late.len() == MANY_LATE {
                perhaps_late.pop_front();
            }
            perhaps_late.push_back((sample.at_ns, key, in_kernel));
        }
    }

    /// Counts the samples that were taken late in a turn that is over; those before it were added already. (What a thread does
    /// after its last turn is in none.)
    pub fn add_turn(&mut self, turn: &Turn) {
        let Some(perhaps_late) = self.perhaps_late.get_mut(&turn.tid) else { return };
        let late = turn.begin_ns.saturating_add(LONG_TURN_NS)..=turn.end_ns;
        perhaps_late.retain(|&(at_ns, key, in_kernel)| {
            let is_late = late.contains(&at_ns);
            if is_late {
                count(&mut self.late, &mut self.changed_late, key, in_kernel);
            }
            !is_late
        });
    }

    fn add_file(&mut self, sample: &Sample) {
        let key = (sample.tid, sample.context, sample.syscall, sample.file);
        if self.files.len() >= MANY_FILES && !self.files.contains_key(&key) {
            return;
        }
        let samples = self.files.entry(key).or_insert_with(|| {
            let mut name = [0; FILE_NAME];
            name[..sample.name.len()].copy_from_slice(&sample.name);
            let row = FileRow {
                context_ref: sample.context,
                tid: sample.tid,
                number: sample.syscall,
                mode: sample.mode,
                inode: sample.file,
                samples: 0,
                name,
            };
            FileSamples { row, place: None, is_written: false }
        });
        samples.row.samples += 1;
        samples.is_written = false;
    }

    /// Reads the process's mappings if samples are in none of the known ones. The process may have ended.
    pub fn look_up(&mut self, process: &Process, now_ns: u64) {
        let is_new = |&&(_, _, address): &&Key| {
            !self.mappings.iter().any(|mapping| mapping.holds(address))
                && !self.strange.contains(&(address >> PAGE_BITS))
        };
        if self.strange.len() >= MANY_STRANGE || !self.changed.iter().any(|key| is_new(&key)) {
            return;
        }
        let Ok(read) = maps::executable_of(process) else { return };
        for mut mapping in read {
            if !self.mappings.iter().any(|known| known.is_same(&mapping)) {
                mapping.seen_ns = now_ns;
                self.mappings.push(mapping);
            }
        }
        for (_, _, address) in &self.changed {
            if !self.mappings.iter().any(|mapping| mapping.holds(*address)) {
                self.strange.insert(address >> PAGE_BITS);
            }
        }
    }

    /// Opens the list of names of generated code, if the process has run such code.
    pub fn look_for_names(&mut self, process: &Process, now_ns: u64) {
        if let Some(names) = &mut self.names {
            names.open_files(process, now_ns, self.mappings.iter().map(|mapping| &*mapping.path));
        }
    }

    /// Returns the names of generated code, if any has run.
    #[must_use]
    pub fn names(self) -> Option<Names> {
        self.names
    }

    /// Writes what has changed.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(&mut self, file: &mut SyscallsFile) -> io::Result<()> {
        for samples in self.files.values_mut().filter(|samples| !samples.is_written) {
            samples.is_written = true;
            match samples.place {
                Some(place) => file.update_file(place, &samples.row)?,
                None => samples.place = Some(file.add_file(&samples.row)?),
            }
        }
        for key in std::mem::take(&mut self.changed_late) {
            let Some(counts) = self.late.get_mut(&key) else { continue };
            let row = counts.written(key);
            match counts.place {
                Some((place, _)) => file.update_late_samples(place, &row)?,
                None => counts.place = Some((file.add_late_samples(&row)?, 0)),
            }
        }
        for key in std::mem::take(&mut self.changed) {
            let Some(counts) = self.counts.get_mut(&key) else { continue };
            let row = counts.written(key);
            let (_, _, address) = key;
            match counts.place {
                Some((place, _)) => file.update_samples(place, &row)?,
                None => counts.place = Some(file.add_samples(&row)?),
            }
            // The latest mapping that contains it.
            let mapping = self.mappings.iter().rev().find(|mapping| mapping.holds(address));
            if mapping.is_some_and(Mapping::is_anonymous) {
                self.names.get_or_insert_default();
            }
            if let Some(mapping) = mapping
                && self.written_mappings.insert((mapping.start, mapping.seen_ns))
            {
                file.add_mapping(&mapping.row())?;
            }
        }
        let number = |key: &Key| Some(self.counts.get(key)?.place?.1);
        file.add_timed_samples(&self.timed.take(number))
    }
}
