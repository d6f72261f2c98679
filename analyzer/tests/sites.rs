//! Where the program waits, where a library made the call: from where the program called that, as far as samples of calls tell.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD};
use pool::{MS, Pool};

/// Where the last call before a wait returns to.
#[derive(Clone, Copy, Debug)]
enum Returns {
    /// It was made by a jump, so that it returns to chase's own code.
    ByJump,
    InCpp,
    InLibrary,
    InProgram,
}

/// A thread waits in `pthread_cond_wait`, which `wait` of the library of C++ calls, which the program calls at two places: of ten sampled
/// calls, `most` return to 0x40, the others to 0x80. Returns where it waits, and where who ends it was: object and address there.
fn waits(returns: Returns, most: u32) -> [Option<(String, u64)>; 2] {
    let mut pool = Pool::new();
    let (app, liba) = (pool.process.app, pool.process.liba);
    let thread = pool.thread("worker", 0x100);
    let builder = &mut pool.process.builder;
    let cpp = builder.object("/lib/libstdc++.so.6");
    let own = builder.object("/lib/libchase.so");
    let wait = builder.slot(app, Some(cpp), "wait");
    let inner = builder.slot(cpp, Some(pool.process.libb), "pthread_cond_wait");
    let mut timeline = builder.timeline(thread);
    timeline.enter(wait).enter(inner).work(50 * MS).leave().leave().end();
    let at = |id, offset| builder.code_address(id, offset);
    let [first, second] = [0x40, 0x80].map(|offset| at(app, offset));
    let site = match returns {
        Returns::ByJump => at(own, 0x40),
        Returns::InCpp => at(cpp, 0x40),
        Returns::InLibrary => at(liba, 0x40),
        Returns::InProgram => second,
    };
    builder.caller(thread, 1, first, (most, u64::from(most)));
    builder.caller(thread, 1, second, (10 - most, u64::from(10 - most)));
    let pid = builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let context = refs[thread.0 as usize][2];
        seen.cause(CauseRow {
            context_ref: context,
            tid: pid + thread.0,
            number: 202,
            site,
            object: 0x1000,
            waker_kind: WAKER_THREAD,
            waker: pid + thread.0,
            waker_pid: pid,
            waker_began_ns: seen.header.began_ns,
            waker_context_ref: context,
            waker_site: site,
            waits: 1,
            total_ns: 40 * MS,
            max_ns: 40 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        seen
    });
    let row = &outcome.watched.causes[0];
    [row.site, row.wakers[0].site].map(|site| {
        let site = site?;
        let object = &outcome.analysis.objects[site.object? as usize];
        Some((object.name.clone(), site.svma?))
    })
}

fn both(object: &str, svma: u64) -> [Option<(String, u64)>; 2] {
    [Some((object.to_owned(), svma)), Some((object.to_owned(), svma))]
}

#[test]
fn what_cpp_waits_in_is_where_the_program_called_that() {
    for returns in [Returns::ByJump, Returns::InCpp] {
        assert_eq!(waits(returns, 9), both("app", 0x1040), "{returns:?}");
        assert_eq!(waits(returns, 2), both("app", 0x1080), "{returns:?}");
    }
}

#[test]
fn a_place_that_is_known_stays() {
    assert_eq!(waits(Returns::InProgram, 9), both("app", 0x1080));
    // What other libraries do is theirs.
    assert_eq!(waits(Returns::InLibrary, 9), both("liba.so", 0x1040));
}
