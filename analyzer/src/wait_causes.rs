//! What waits in functions are for, also where the functions' names do not tell.

use std::collections::BTreeMap;

use crate::blocking::{Cause, cause_of};
use crate::rows::ApiRow;
use crate::syscalls::{Category, OfApi, SyscallRow};

/// What waits are for, by API, and last in the threads' own code: as the function's name tells, else what most of the time off
/// the CPU in the system calls made there is for.
///
/// Threads of a runtime of OpenMP wait for each other at words of its own, in their own code, too: for the end of a region, and for the
/// next one. `has_team`: there is such a runtime.
pub(crate) fn causes(
    apis: &[ApiRow],
    syscalls: &[SyscallRow<OfApi>],
    has_team: bool,
) -> Vec<Cause> {
    let mut in_syscalls: Vec<BTreeMap<Cause, u64>> = vec![BTreeMap::new(); apis.len() + 1];
    for row in syscalls.iter().filter(|row| row.of.is_recorded && row.measures.off_cpu_ns.0 > 0) {
        let place = row.of.api.map_or(apis.len(), |api| api as usize);
        if let Some(times) = in_syscalls.get_mut(place) {
            let is_of_team = match row.of.api {
                Some(api) => apis[api as usize].symbol.starts_with("GOMP_"),
                None => has_team,
            };
            let cause = match cause_of_syscall(&row.syscall, row.category) {
                Cause::Lock if is_of_team => Cause::Barrier,
                cause => cause,
            };
            let time = times.entry(cause).or_default();
            *time = time.saturating_add(row.measures.off_cpu_ns.0);
        }
    }
    let known = apis.iter().map(|row| row.waits_for).chain([None]);
    let most = |times: BTreeMap<Cause, u64>| times.into_iter().max_by_key(|&(_, ns)| ns);
    known
        .zip(in_syscalls)
        .map(|(known, times)| known.or(most(times).map(|it| it.0)).unwrap_or(Cause::Other))
        .collect()
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
