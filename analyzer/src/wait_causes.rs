//! What waits in functions are for, also where the functions' names do not tell.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::syscalls::NO_SYSCALL;

use crate::blocking::{Cause, cause_of, is_of_openmp};
use crate::rows::{ApiRow, ObjectRow, ThreadRow};
use crate::syscalls::{Category, OfApi, OfThread, SyscallRow, WaitsIn, category_of, syscall_name};

/// Times of waits by what they are for.
type Times = BTreeMap<Cause, u64>;

/// What waits are for, by API: as the function's name tells, else what most of the waits there are for.
pub(crate) fn of_apis(
    apis: &[ApiRow],
    waits: &[WaitsIn],
    syscalls: &[SyscallRow<OfApi>],
) -> Vec<Cause> {
    let is_of_team = |api: usize| apis[api].symbol.starts_with("GOMP_");
    let mut seen: Vec<Times> = vec![BTreeMap::new(); apis.len()];
    for wait in waits {
        let Some(api) = wait.api.map(|api| api as usize) else { continue };
        add(&mut seen[api], of_wait(wait.number, is_of_team(api)), wait.ns);
    }
    let mut times: Vec<Times> = vec![BTreeMap::new(); apis.len()];
    for row in syscalls {
        let Some(api) = row.of.api.map(|api| api as usize) else { continue };
        let cause = of_wait(row.number, is_of_team(api));
        add(&mut times[api], cause, row.measures.off_cpu_ns.0);
    }
    let known = apis.iter().map(|row| row.waits_for);
    let found = seen.into_iter().zip(times).map(|(seen, times)| parts(seen, times)[0].0);
    known.zip(found).map(|(known, found)| known.unwrap_or(found)).collect()
}

/// What each thread's waits in its own code are for, with the part of them that is, largest first; never empty. Threads of a runtime
/// of OpenMP wait for each other there, at words of its own: for the end of a region, and for the next one. What other threads of
/// the program wait for is no barrier.
pub(crate) fn of_own_code(
    threads: &[ThreadRow],
    waits: &[WaitsIn],
    syscalls: &[SyscallRow<OfThread>],
    objects: &[ObjectRow],
) -> Vec<Vec<(Cause, f64)>> {
    let numbers: HashMap<(u32, Option<u32>), usize> = threads
        .iter()
        .zip(0..)
        .map(|(row, at)| ((row.process as u32, Some(row.thread)), at))
        .collect();
    let is_of_team = |thread: usize| is_of_team(&threads[thread], objects);
    let mut seen: Vec<Times> = vec![BTreeMap::new(); threads.len()];
    for wait in waits.iter().filter(|wait| wait.api.is_none()) {
        if let Some(&thread) = numbers.get(&(wait.process, wait.thread)) {
            add(&mut seen[thread], of_wait(wait.number, is_of_team(thread)), wait.ns);
        }
    }
    let mut times: Vec<Times> = vec![BTreeMap::new(); threads.len()];
    for row in syscalls {
        if let Some(&thread) = numbers.get(&(row.of.process, row.of.thread)) {
            let cause = of_wait(row.number, is_of_team(thread));
            add(&mut times[thread], cause, row.measures.off_cpu_ns.0);
        }
    }
    seen.into_iter().zip(times).map(|(seen, times)| parts(seen, times)).collect()
}

/// Whether a runtime of OpenMP has made the thread.
pub(crate) fn is_of_team(thread: &ThreadRow, objects: &[ObjectRow]) -> bool {
    let made_by = thread.creation_site.or(thread.start_routine).and_then(|place| place.object);
    let object = made_by.and_then(|object| objects.get(object as usize));
    object.is_some_and(|object| is_of_openmp(&object.name))
}

/// What a wait in this system call, or in none, is for.
pub(crate) fn of_wait(number: u32, is_of_team: bool) -> Cause {
    // Outside of system calls, threads wait for pages of memory to be read.
    if number == NO_SYSCALL {
        return Cause::Io;
    }
    match cause_of_syscall(&syscall_name(number), category_of(number)) {
        Cause::Lock if is_of_team => Cause::Barrier,
        cause => cause,
    }
}

fn add(times: &mut Times, cause: Cause, ns: u64) {
    let time = times.entry(cause).or_default();
    *time = time.saturating_add(ns);
}

/// The parts of the waits that were seen, largest first; if none were, of the time off the CPU in system calls.
fn parts(seen: Times, in_syscalls: Times) -> Vec<(Cause, f64)> {
    let sum = |times: &Times| times.values().map(|&ns| ns as f64).sum::<f64>();
    let times = if sum(&seen) > 0.0 { seen } else { in_syscalls };
    let sum = sum(&times);
    let some = times.into_iter().filter(|&(_, ns)| ns > 0);
    let mut parts: Vec<_> = some.map(|(cause, ns)| (cause, ns as f64 / sum)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    if parts.is_empty() { vec![(Cause::Other, 1.0)] } else { parts }
}

/// What a thread waits for that is blocked in this system call.
fn cause_of_syscall(name: &str, category: Category) -> Cause {
    let by_category = match category {
        Category::Io | Category::File | Category::Network | Category::Poll => Cause::Io,
        Category::Sync if name.starts_with("futex") => Cause::Lock,
        // For a child that has its parent's memory until it runs a program, or ends.
        Category::Process if ["vfork", "clone", "clone3"].contains(&name) => Cause::Join,
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
        assert_eq!(waits_for("vfork", Category::Process), Cause::Join);
        assert_eq!(waits_for("execve", Category::Process), Cause::Other);
        assert_eq!(waits_for("clock_nanosleep", Category::Time), Cause::Sleep);
        assert_eq!(waits_for("mmap", Category::Memory), Cause::Other);
    }
}
