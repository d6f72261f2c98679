//! What waits in functions are for, also where the functions' names do not tell.

use std::collections::{BTreeMap, HashMap};

use crate::blocking::{Cause, cause_of, is_of_openmp};
use crate::rows::{ApiRow, ObjectRow, ThreadRow};
use crate::syscalls::{Category, OfApi, OfThread, SyscallRow};

/// Time off the CPU in system calls, by what it is for.
type Times = BTreeMap<Cause, u64>;

/// What waits are for, by API: as the function's name tells, else what most of the time off the CPU in the system calls made there
/// is for.
pub(crate) fn of_apis(apis: &[ApiRow], syscalls: &[SyscallRow<OfApi>]) -> Vec<Cause> {
    let mut times: Vec<Times> = vec![BTreeMap::new(); apis.len()];
    for row in syscalls {
        let Some(api) = row.of.api.map(|api| api as usize) else { continue };
        let is_of_team = apis[api].symbol.starts_with("GOMP_");
        add(&mut times[api], row, is_of_team);
    }
    let known = apis.iter().map(|row| row.waits_for);
    known.zip(times).map(|(known, times)| known.unwrap_or_else(|| most(times))).collect()
}

/// The same, by thread, in its own code. Threads of a runtime of OpenMP wait for each other there, at words of its own: for the end of
/// a region, and for the next one. What other threads of the program wait for is no barrier.
pub(crate) fn of_own_code(
    threads: &[ThreadRow],
    syscalls: &[SyscallRow<OfThread>],
    objects: &[ObjectRow],
) -> Vec<Cause> {
    let numbers: HashMap<(u32, Option<u32>), usize> = threads
        .iter()
        .zip(0..)
        .map(|(row, at)| ((row.process as u32, Some(row.thread)), at))
        .collect();
    let mut times: Vec<Times> = vec![BTreeMap::new(); threads.len()];
    for row in syscalls {
        if let Some(&thread) = numbers.get(&(row.of.process, row.of.thread)) {
            add(&mut times[thread], row, is_of_team(&threads[thread], objects));
        }
    }
    times.into_iter().map(most).collect()
}

/// Whether a runtime of OpenMP has made the thread.
pub(crate) fn is_of_team(thread: &ThreadRow, objects: &[ObjectRow]) -> bool {
    let made_by = thread.creation_site.or(thread.start_routine).and_then(|place| place.object);
    let object = made_by.and_then(|object| objects.get(object as usize));
    object.is_some_and(|object| is_of_openmp(&object.name))
}

fn add<K>(times: &mut Times, row: &SyscallRow<K>, is_of_team: bool) {
    let cause = match cause_of_syscall(&row.syscall, row.category) {
        Cause::Lock if is_of_team => Cause::Barrier,
        cause => cause,
    };
    let time = times.entry(cause).or_default();
    *time = time.saturating_add(row.measures.off_cpu_ns.0);
}

fn most(times: Times) -> Cause {
    let most = times.into_iter().filter(|&(_, ns)| ns > 0).max_by_key(|&(_, ns)| ns);
    most.map_or(Cause::Other, |(cause, _)| cause)
}

/// What a thread waits for that is blocked in this system call.
fn cause_of_syscall(name: &str, category: Category) -> Cause {
    let by_category = match category {
        Category::Io | Category::File | Category::Network | Category::Poll => Cause::Io,
        Category::Sync if name.starts_with("futex") => Cause::Lock,
        _ => Cause::Other,
    };
    cause_of(name).unwrap_or(by_category)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_tell_what_other_functions_wait_for() {
        let waits_for = |name, category| cause_of_syscall(name, category);
        assert_eq!(waits_for("fdatasync", Category::Io), Cause::Io);
        assert_eq!(waits_for("pread64", Category::Io), Cause::Io);
        assert_eq!(waits_for("futex", Category::Sync), Cause::Lock);
        assert_eq!(waits_for("wait4", Category::Process), Cause::Join);
        assert_eq!(waits_for("clock_nanosleep", Category::Time), Cause::Sleep);
        assert_eq!(waits_for("mmap", Category::Memory), Cause::Other);
    }
}
