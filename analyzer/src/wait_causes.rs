//! What waits in functions are for, also where the functions' names do not tell.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::syscalls::NO_SYSCALL;

use crate::blocking::{Cause, cause_of, is_of_openmp};
use crate::rows::{ApiRow, ObjectRow, ProcessRow, ThreadRow};
use crate::syscalls::{
    Category, InOwnCode, OfApi, SyscallRow, WHILE_STOPPED, WaitsIn, category_of, syscall_name,
};

/// Times of waits by what they are for.
type Times = BTreeMap<Cause, u64>;

/// What waits in functions are for.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfApis {
    /// By API: as the function's name tells, else what most of the waits there are for.
    pub(crate) mostly: Vec<Cause>,
    /// Of functions whose names do not tell, in which threads wait for different things: by API and thread, the parts, largest first.
    pub(crate) mixed: BTreeMap<(u32, u32), Vec<(Cause, f64)>>,
    /// The same of all threads' waits there, by API.
    pub(crate) of_all_threads: BTreeMap<u32, Vec<(Cause, f64)>>,
}

/// What waits are for, by API.
pub(crate) fn of_apis(
    apis: &[ApiRow],
    threads: &[ThreadRow],
    waits: &[WaitsIn],
    syscalls: &[SyscallRow<OfApi>],
) -> OfApis {
    let numbers = numbers(threads);
    let mut seen: Vec<Times> = vec![BTreeMap::new(); apis.len()];
    let mut of_threads: BTreeMap<(u32, u32), Times> = BTreeMap::new();
    for wait in waits {
        let Some(api) = wait.api else { continue };
        let row = &apis[api as usize];
        let cause = of_wait(wait.number, wait.for_memory_map, futex_in(row));
        add(&mut seen[api as usize], cause, wait.ns);
        let thread = numbers.get(&(wait.process, wait.thread)).filter(|_| row.waits_for.is_none());
        if let Some(&thread) = thread {
            add(of_threads.entry((api, thread as u32)).or_default(), cause, wait.ns);
        }
    }
    let mut times: Vec<Times> = vec![BTreeMap::new(); apis.len()];
    for row in syscalls {
        let Some(api) = row.of.api.map(|api| api as usize) else { continue };
        let cause = of_wait(row.number, false, futex_in(&apis[api]));
        add(&mut times[api], cause, row.measures.off_cpu_ns.0);
    }
    let found: Vec<_> =
        seen.into_iter().zip(times).map(|(seen, times)| parts(seen, times)).collect();
    let main = |(row, parts): (&ApiRow, &Vec<(Cause, f64)>)| row.waits_for.unwrap_or(parts[0].0);
    let mostly: Vec<Cause> = apis.iter().zip(&found).map(main).collect();
    // Where all of them are for what most are, that says it.
    let mixed = of_threads.into_iter().map(|(key, seen)| (key, parts(seen, Times::new())));
    let mixed: BTreeMap<_, _> =
        mixed.filter(|((api, _), parts)| parts[..] != [(mostly[*api as usize], 1.0)]).collect();
    let of_all_threads = mixed.keys().map(|&(api, _)| (api, found[api as usize].clone())).collect();
    OfApis { mostly, mixed, of_all_threads }
}

/// What a futex is for in a function whose name does not tell. Others of a team of OpenMP are waited for in functions of its own; inside of a
/// library's function, it is a lock of the library. Who calls `futex` itself may wait for anything.
pub(crate) fn futex_in(row: &ApiRow) -> Cause {
    match &*row.symbol {
        name if name.starts_with("GOMP_") => Cause::Barrier,
        "syscall" => Cause::Other,
        _ => Cause::Lock,
    }
}

/// The same outside of the calls that were timed: in a thread's own code, or, where calls were only counted, in any of them.
pub(crate) fn futex_outside(
    thread: &ThreadRow,
    processes: &[ProcessRow],
    objects: &[ObjectRow],
) -> Cause {
    let is_own_code = !processes[thread.process].only_counts;
    if is_own_code && is_of_team(thread, objects) { Cause::Barrier } else { Cause::Other }
}

/// Threads by their process and their number there.
fn numbers(threads: &[ThreadRow]) -> HashMap<(u32, Option<u32>), usize> {
    let key = |row: &ThreadRow| (row.process as u32, Some(row.thread));
    threads.iter().zip(0..).map(|(row, at)| (key(row), at)).collect()
}

/// What each thread's waits in its own code are for, with the part of them that is, largest first; never empty. Threads of a runtime
/// of OpenMP wait for each other there, at words of its own: for the end of a region, and for the next one. What other threads of
/// the program wait for is no barrier.
pub(crate) fn of_own_code(
    threads: &[ThreadRow],
    waits: &[WaitsIn],
    in_own_code: &[InOwnCode],
    (processes, objects): (&[ProcessRow], &[ObjectRow]),
) -> Vec<Vec<(Cause, f64)>> {
    let numbers = numbers(threads);
    let futex = |thread: usize| futex_outside(&threads[thread], processes, objects);
    let mut seen: Vec<Times> = vec![BTreeMap::new(); threads.len()];
    for wait in waits.iter().filter(|wait| wait.api.is_none()) {
        if let Some(&thread) = numbers.get(&(wait.process, wait.thread)) {
            let cause = of_wait(wait.number, wait.for_memory_map, futex(thread));
            add(&mut seen[thread], cause, wait.ns);
        }
    }
    let mut times: Vec<Times> = vec![BTreeMap::new(); threads.len()];
    for made in in_own_code {
        if let Some(&thread) = numbers.get(&(made.process, made.thread)) {
            let cause = of_wait(made.number, false, futex(thread));
            add(&mut times[thread], cause, made.off_cpu_ns.0);
        }
    }
    seen.into_iter().zip(times).map(|(seen, times)| parts(seen, times)).collect()
}

/// Whether a runtime of OpenMP has made the thread.
pub(crate) fn is_of_team(thread: &ThreadRow, objects: &[ObjectRow]) -> bool {
    made_by(thread, objects).is_some_and(is_of_openmp)
}

/// The name of the library that has made the thread.
pub(crate) fn made_by<'a>(thread: &ThreadRow, objects: &'a [ObjectRow]) -> Option<&'a str> {
    let made_by = thread.creation_site.or(thread.start_routine).and_then(|place| place.object);
    made_by.and_then(|object| objects.get(object as usize)).map(|object| &*object.name)
}

/// Whether it is one of Ruby's threads: one of them runs Ruby at a time, and each waits for its turn at a condition of its own, as it
/// does for other things. Nothing distinguishes these, where the library has no symbols.
pub(crate) fn is_of_ruby(thread: &ThreadRow, objects: &[ObjectRow]) -> bool {
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let is_ruby =
        |name: &str| name.starts_with("libruby") || name.trim_end_matches(version) == "ruby";
    made_by(thread, objects).is_some_and(is_ruby)
}

/// What a wait in this system call, or in none, is for; `futex` is what one is for there.
pub(crate) fn of_wait(number: u32, for_memory_map: bool, futex: Cause) -> Cause {
    if for_memory_map {
        return Cause::Lock;
    }
    // Outside of system calls, threads wait for pages of memory.
    if number == NO_SYSCALL {
        return Cause::Page;
    }
    if number == WHILE_STOPPED {
        return Cause::Other;
    }
    cause_of_syscall(&syscall_name(number), category_of(number), futex)
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
fn cause_of_syscall(name: &str, category: Category, futex: Cause) -> Cause {
    let by_category = match category {
        Category::Io | Category::File | Category::Network | Category::Poll => Cause::Io,
        Category::Sync if name.starts_with("futex") => futex,
        // For a child that has its parent's memory until it runs a program, or ends.
        Category::Process if ["vfork", "clone", "clone3"].contains(&name) => Cause::Join,
        _ => Cause::Other,
    };
    cause_of(name).unwrap_or(by_category)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::is_for_memory_map;

    #[test]
    fn system_calls_tell_what_other_functions_wait_for() {
        let waits_for = |name, category| cause_of_syscall(name, category, Cause::Barrier);
        assert_eq!(waits_for("fdatasync", Category::Io), Cause::Io);
        assert_eq!(waits_for("pread64", Category::Io), Cause::Io);
        assert_eq!(waits_for("futex", Category::Sync), Cause::Barrier);
        assert_eq!(waits_for("wait4", Category::Process), Cause::Join);
        assert_eq!(waits_for("vfork", Category::Process), Cause::Join);
        assert_eq!(waits_for("execve", Category::Process), Cause::Other);
        assert_eq!(waits_for("clock_nanosleep", Category::Time), Cause::Sleep);
        assert_eq!(waits_for("mmap", Category::Memory), Cause::Other);
    }

    #[test]
    fn pages_and_the_memory_map_are_told_from_input_and_output() {
        let (mprotect, read) = (10, 0);
        let waits_for = |number, by_own_process| {
            of_wait(number, is_for_memory_map(number, by_own_process), Cause::Other)
        };
        assert_eq!(waits_for(NO_SYSCALL, false), Cause::Page);
        assert_eq!(waits_for(NO_SYSCALL, true), Cause::Lock);
        assert_eq!(waits_for(WHILE_STOPPED, false), Cause::Other);
        assert_eq!(waits_for(mprotect, true), Cause::Lock);
        assert_eq!(waits_for(mprotect, false), Cause::Other);
        assert_eq!(waits_for(read, true), Cause::Io);
    }
}
