//! Copies what threads waited for, and who ended these waits, into the files of their processes.

use std::collections::HashMap;
use std::io;

use chase_format::syscalls::{CauseRow, OBJECT_NAME};

use crate::file::{Place, SyscallsFile};
use crate::maps::number_of;
use crate::objects::{self, Objects};
use crate::program::Program;
use crate::shared::{PROCESS_FREE, PROCESSES, Process, WAKER_PROCESS, WAKER_THREAD, Wait};

/// `futex(2)`, whose object is an address.
const FUTEX: u32 = 202;

/// What was written of a cause, which is a set of waits that agree in everything.
#[derive(Debug)]
struct Written {
    place: Option<Place>,
    /// Its index among the causes in the file.
    number: u32,
    count: u64,
    /// Process id of the thread that ended the waits, and when its process began; once they are known. Later, another process may
    /// have its place.
    waker: Option<(u32, u64)>,
    /// The name of the object, from when it could be looked up.
    name: Vec<u8>,
}

/// Causes of waits, by their number in the eBPF program.
#[derive(Debug, Default)]
pub struct Causes {
    written: HashMap<u32, Written>,
    of_process: HashMap<u32, Vec<u32>>,
    objects: HashMap<u32, Objects>,
}

impl Causes {
    /// Returns the numbers of causes that have changed, by process. Looks up the names of the objects that were
    /// waited for, as long as these exist.
    pub fn changed(&mut self, program: &Program, processes: &[Process]) -> HashMap<u32, Vec<u32>> {
        let mut changed: HashMap<u32, Vec<u32>> = HashMap::new();
        for number in 0..program.totals().waits as u32 {
            let wait = program.waits.read(number as usize);
            let Some(process) = processes.get(wait.key.process as usize) else { continue };
            if wait.count == 0 {
                continue;
            }
            let written = self.written.entry(number).or_insert_with(|| {
                self.of_process.entry(wait.key.process).or_default().push(number);
                Written { place: None, number: 0, count: 0, waker: None, name: Vec::new() }
            });
            if written.waker.is_none() && wait.key.waker_kind == WAKER_THREAD {
                // (Not from `processes`, which may have been read before it began.)
                let waker = program.processes.read(wait.key.waker_process as usize % PROCESSES);
                let is_there = waker.state != PROCESS_FREE;
                written.waker = is_there.then_some((waker.own_pid, waker.began_ns));
            }
            if written.name.is_empty() && has_descriptor(&wait) {
                let objects = self.objects.entry(wait.key.process).or_default();
                written.name =
                    number_of(process).map_or_else(|_| Vec::new(), |pid| objects.name(pid, &wait));
            }
            if written.count == 0 && wait.key.syscall == FUTEX {
                written.name = objects::futex(&wait);
            }
            // For a process that has ended, all are written: a cause read in the middle of its last change has the
            // new count, but not yet the rest.
            if process.live == 0 || written.count != wait.count {
                changed.entry(wait.key.process).or_default().push(number);
            }
        }
        changed
    }

    /// Writes causes of one process.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(
        &mut self,
        numbers: &[u32],
        program: &Program,
        file: &mut SyscallsFile,
    ) -> io::Result<()> {
        for number in numbers {
            let wait = program.waits.read(*number as usize);
            let Some(written) = self.written.get_mut(number) else { continue };
            let row = row_of(&wait, &written.name, written.waker);
            match written.place {
                Some(place) => file.update_cause(place, &row)?,
                None => {
                    written.number = file.causes();
                    written.place = Some(file.add_cause(&row)?);
                }
            }
            written.count = wait.count;
        }
        Ok(())
    }

    /// Returns the index of a cause among those in its file, once it is written.
    #[must_use]
    pub fn number(&self, wait: u32) -> Option<u32> {
        let written = self.written.get(&wait)?;
        written.place.is_some().then_some(written.number)
    }

    /// Frees the causes of a process that has ended, after everything was written.
    pub fn finish(&mut self, process: u32, program: &mut Program) {
        self.objects.remove(&process);
        for number in self.of_process.remove(&process).unwrap_or_default() {
            self.written.remove(&number);
            // An entry that can't be freed is lost, and counted when there are no more.
            let _ = program.free_wait(number);
        }
    }
}

fn has_descriptor(wait: &Wait) -> bool {
    wait.key.syscall != FUTEX && wait.key.object != 0
}

fn row_of(wait: &Wait, name: &[u8], waker: Option<(u32, u64)>) -> CauseRow {
    let key = &wait.key;
    let (waker_pid, waker_began_ns) = match key.waker_kind {
        WAKER_PROCESS => (key.waker_process, 0),
        _ => waker.unwrap_or_default(),
    };
    let mut row = CauseRow {
        context_ref: key.context,
        tid: key.tid,
        number: key.syscall,
        detail: key.detail,
        site: key.site,
        object: key.object,
        holder: key.holder,
        holder_context_ref: key.holder_context,
        holder_site: key.holder_site,
        waker_kind: key.waker_kind,
        waker: key.waker,
        waker_pid,
        waker_context_ref: key.waker_context,
        waker_site: key.waker_site,
        waker_began_ns,
        waits: wait.count,
        total_ns: wait.total_ns,
        max_ns: wait.max_ns,
        ready_ns: wait.ready_ns,
        waker_name: wait.waker_name,
        name: [0; OBJECT_NAME],
        calls: u64::from(wait.calls),
    };
    // The end of a long path is more informative than its beginning.
    let name = &name[name.len().saturating_sub(OBJECT_NAME - 1)..];
    row.name[..name.len()].copy_from_slice(name);
    row
}
