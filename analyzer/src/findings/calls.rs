//! Calls that take long: first ones, rare ones, and very many short ones.

use std::collections::{BTreeMap, HashMap};

use super::kept::{Kept, kept_ns_inside, waits_for_threads};
use super::system::is_loader;
use super::{Evidence, Finding, FindingKind, Inside, sites};
use crate::clock::Ns;
use crate::tail::{FirstCall, LEAST_CALLS, SlowCalls};

/// A call that explains this share of the excess of its caller is reported instead of it.
const EXPLAINS: f64 = 0.5;
/// A single call that takes this part of its thread's life may be what the thread is there for.
const OF_LIFE: f64 = 0.5;
/// Threads with less than this share of the largest excess are not listed.
const NAMED: f64 = 0.1;
/// Slow calls that are a larger share of all calls are not rare.
const RARE: f64 = 0.01;
/// Shorter calls are tiny: their work could be done by fewer, larger calls.
const TINY_NS: f64 = 1_000.0;
/// From this number on, calls are many.
const MANY: u64 = 100_000;
/// The minimum share of the group's lifetimes in tiny calls: a quarter dominates what a group does.
const DOMINATES: f64 = 0.25;

/// Functions of the C library whose calls can be replaced by fewer and larger ones, or by a stored value. Each call
/// of the others, as of the mathematical functions, does what its caller needs.
const BATCHABLE: &[&str] = &[
    "fgetc",
    "getc",
    "getchar",
    "_IO_getc",
    "fputc",
    "putc",
    "putchar",
    "_IO_putc",
    "ungetc",
    "fread",
    "fwrite",
    "fgets",
    "fputs",
    "getline",
    "read",
    "write",
    "pread",
    "pwrite",
    "pread64",
    "pwrite64",
    "lseek",
    "lseek64",
    "send",
    "recv",
    "clock_gettime",
    "gettimeofday",
    "time",
    "rand",
    "random",
    "getenv",
    "malloc",
    "free",
    "realloc",
    "calloc",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_getspecific",
    "getpid",
    "syscall",
];

/// Whether there could be fewer calls of an API.
fn can_be_fewer(evidence: &Evidence<'_>, api: u32) -> bool {
    let row = &evidence.analysis.apis[api as usize];
    let is = |name: &str| row.library.starts_with(name);
    match () {
        () if is("libm.so") || is("libm-") => false,
        () if is("libc.so") || is("libc-") || is("ld-linux") || is("ld-musl") => {
            BATCHABLE.contains(&&*row.symbol)
        }
        () => true,
    }
}

/// Slow calls, each counted in the innermost API that explains it.
pub(super) struct Explained {
    firsts: Vec<FirstCall>,
    slow: Vec<SlowCalls>,
    /// Excess by thread and API.
    excess: HashMap<(u32, u32), f64>,
}

impl Explained {
    pub(super) fn new(evidence: &Evidence<'_>) -> Self {
        let waits = |api: u32| evidence.analysis.apis[api as usize].waits_for.is_some();
        // If the scheduler was observed: other threads ran meanwhile, so the function was not slow. (After a wait, however short,
        // a thread has to be put on a processor: that is in each call that waits, and makes none slow.)
        let woken = after_waits(evidence);
        let preempted_ns = |thread: u32, api: u32| {
            let apis = &evidence.analysis.threads[thread as usize].apis;
            let found = apis.iter().find(|row| row.api == api);
            let ns = found.map_or(0.0, |row| row.preempted_ns.as_f64());
            (ns - woken.get(&(thread, api)).unwrap_or(&0.0)).max(0.0)
        };
        // If a companion saw that the call waited for other threads, other findings report that. On a busy machine, half of such a
        // call's time may be for neither reason, but is for both.
        let awaited = waits_for_threads(evidence);
        let kept_waiting = |thread: u32, api: u32, excess_ns: f64| {
            let awaited_ns = awaited.get(&(thread, api)).copied().unwrap_or(0.0);
            awaited_ns + preempted_ns(thread, api) >= EXPLAINS * excess_ns
        };
        // The same in it and in calls inside, beyond what usual calls take.
        let kept_inside = |(thread, context): (u32, u32), median_ns: f64, excess_ns: f64| {
            let kept_ns = || {
                let api = evidence.analysis.contexts[context as usize].api;
                let kept = Kept { awaited: &awaited, preempted_ns: &preempted_ns };
                preempted_ns(thread, api)
                    + kept_ns_inside(evidence, &kept, (thread, context), median_ns)
            };
            evidence.is_material(excess_ns) && kept_ns() >= EXPLAINS * excess_ns
        };
        let firsts: HashMap<(u32, u32), f64> = excesses(
            evidence.tails.first_calls.iter().map(|c| (c.thread, c.context, c.excess_ns())),
        );
        let outer = explained_by_callees(evidence, &firsts);
        let kept_firsts: Vec<FirstCall> = evidence
            .tails
            .first_calls
            .iter()
            .filter(|call| !waits(call.api) && !outer.contains_key(&(call.thread, call.context)))
            .filter(|call| !kept_waiting(call.thread, call.api, call.excess_ns()))
            .filter(|call| {
                !kept_inside((call.thread, call.context), call.median_ns, call.excess_ns())
            })
            .copied()
            .collect();
        let first_of: HashMap<(u32, u32), &FirstCall> = evidence
            .tails
            .first_calls
            .iter()
            .map(|call| ((call.thread, call.context), call))
            .collect();
        // A slow first call is not counted as a rare slow call, too.
        let without_first = |calls: &SlowCalls| {
            let mut calls = *calls;
            if let Some(first) = first_of.get(&(calls.thread, calls.context)) {
                calls.slow = calls.slow.saturating_sub(1);
                calls.slow_ns = (calls.slow_ns - first.first_ns).max(0.0);
            }
            (calls.slow > 0).then_some(calls)
        };
        let slow: Vec<SlowCalls> =
            evidence.tails.slow_calls.iter().filter_map(without_first).collect();
        let excess = excesses(slow.iter().map(|c| (c.thread, c.context, c.excess_ns())));
        let outer = explained_by_callees(evidence, &excess);
        let kept_slow: Vec<SlowCalls> = slow
            .into_iter()
            .filter(|calls| {
                !waits(calls.api) && !outer.contains_key(&(calls.thread, calls.context))
            })
            .filter(|calls| !kept_waiting(calls.thread, calls.api, calls.excess_ns()))
            .filter(|calls| {
                !kept_inside((calls.thread, calls.context), calls.median_ns, calls.excess_ns())
            })
            .filter(|calls| !is_life_of_thread(evidence, calls))
            .collect();
        let mut excess = HashMap::new();
        let all = kept_firsts.iter().map(|call| (call.thread, call.api, call.excess_ns()));
        let all = all.chain(kept_slow.iter().map(|call| (call.thread, call.api, call.excess_ns())));
        for (thread, api, ns) in all {
            *excess.entry((thread, api)).or_default() += ns;
        }
        Self { firsts: kept_firsts, slow: kept_slow, excess }
    }

    /// Returns how much of a thread's time in an API is explained by slow calls.
    pub(super) fn excess_ns(&self, thread: u32, api: Option<u32>) -> f64 {
        api.and_then(|api| self.excess.get(&(thread, api))).copied().unwrap_or(0.0)
    }
}

/// Whether a single slow call takes most of a thread's life and runs something else than its library: it has called the program, as what
/// starts a virtual machine calls `main`.
fn is_life_of_thread(evidence: &Evidence<'_>, calls: &SlowCalls) -> bool {
    let thread = &evidence.analysis.threads[calls.thread as usize];
    if calls.slow > 1 || calls.slow_ns < OF_LIFE * thread.lifetime_ns.as_f64() {
        return false;
    }
    let library = evidence.analysis.apis[calls.api as usize].object;
    let key = (thread.process as u32, thread.thread, Some(calls.api));
    let samples = evidence.analysis.on_cpu.of_threads.iter();
    let (mut all, mut own) = (0.0, 0.0);
    for row in samples.filter(|row| (row.process, row.thread, row.api) == key) {
        all += row.ns.as_f64();
        if row.object == library {
            own += row.ns.as_f64();
        }
    }
    all > 0.0 && own < EXPLAINS * all
}

/// Returns how long each thread did not run yet after waits in each API, ns.
fn after_waits(evidence: &Evidence<'_>) -> HashMap<(u32, u32), f64> {
    let mut sums = HashMap::new();
    for row in evidence.watched.causes.iter().filter(|row| row.wait_ns.0 > 0) {
        let Some(api) = row.api else { continue };
        let part = row.ready_ns.as_f64() / row.wait_ns.as_f64();
        for span in &row.by_thread {
            *sums.entry((span.thread, api)).or_default() += part * span.ns.as_f64();
        }
    }
    sums
}

fn excesses(all: impl Iterator<Item = (u32, u32, f64)>) -> HashMap<(u32, u32), f64> {
    let mut sums = HashMap::new();
    for (thread, context, ns) in all {
        *sums.entry((thread, context)).or_default() += ns;
    }
    sums
}

/// Returns contexts of threads whose excess is that of a call made inside.
fn explained_by_callees(
    evidence: &Evidence<'_>,
    excess: &HashMap<(u32, u32), f64>,
) -> HashMap<(u32, u32), ()> {
    let mut explained = HashMap::new();
    for (&(thread, context), &inner) in excess {
        let mut at = evidence.analysis.contexts[context as usize].parent;
        while let Some(caller) = at {
            if excess.get(&(thread, caller)).is_some_and(|&outer| inner >= EXPLAINS * outer) {
                explained.insert((thread, caller), ());
            }
            at = evidence.analysis.contexts[caller as usize].parent;
        }
    }
    explained
}

/// Excess by thread, of one API in one group.
#[derive(Default)]
struct Shares {
    by_thread: BTreeMap<u32, f64>,
}

impl Shares {
    fn add(&mut self, thread: u32, ns: f64) {
        *self.by_thread.entry(thread).or_default() += ns;
    }

    fn all(&self) -> f64 {
        self.by_thread.values().sum()
    }

    /// Returns the threads to list, the largest excess first, and that excess.
    fn named(&self) -> (Vec<u32>, f64) {
        let max = self.by_thread.values().copied().fold(0.0, f64::max);
        let mut named: Vec<_> =
            self.by_thread.iter().filter(|&(_, &ns)| ns >= NAMED * max).collect();
        named.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
        (named.into_iter().map(|(&thread, _)| thread).collect(), max)
    }
}

/// Finds slow first calls.
/// Those that take so long since they load libraries are told by `loading`, if that is a finding.
pub(super) fn first(
    evidence: &Evidence<'_>,
    explained: &Explained,
    loading: Option<&Finding>,
) -> Vec<Finding> {
    let mut by_api: BTreeMap<(u32, u32), (Shares, Vec<&FirstCall>)> = BTreeMap::new();
    for call in &explained.firsts {
        let (shares, calls) = by_api.entry((call.group, call.api)).or_default();
        shares.add(call.thread, call.excess_ns());
        calls.push(call);
    }
    let finding = |((group, api), (shares, calls)): (_, (Shares, Vec<&FirstCall>))| {
        let (threads, saves_ns) = shares.named();
        let longest = calls.iter().max_by(|a, b| a.first_ns.total_cmp(&b.first_ns))?;
        let is_told = loading.is_some_and(|loading| loading.threads.contains(&longest.thread));
        if is_told && loading_ns(evidence, longest) >= EXPLAINS * longest.excess_ns() {
            return None;
        }
        let kind = FindingKind::SlowFirstCall {
            first_ns: Ns::from_f64(longest.first_ns),
            median_ns: Ns::from_f64(longest.median_ns),
            calls: longest.calls,
            excess_ns: Ns::from_f64(shares.all()),
            inside: inside(evidence, longest),
        };
        let place = std::iter::once((longest.context, longest.first_ns));
        evidence.is_material(saves_ns).then(|| Finding {
            blame: sites::of_contexts(evidence, place),
            ..evidence.finding(group, threads, Some(api), saves_ns, kind)
        })
    };
    by_api.into_iter().filter_map(finding).collect()
}

/// Returns the calls that were made inside of a first call and of those after it, and their time, by context.
fn calls_inside(evidence: &Evidence<'_>, call: &FirstCall) -> BTreeMap<u32, (u64, Ns)> {
    let rows = &evidence.analysis.contexts;
    let depth = rows[call.context as usize].depth;
    // Rows are in depth-first order.
    let first = call.context as usize + 1;
    let more = rows[first..].iter().take_while(|row| row.depth > depth).count();
    let mut of_rows: BTreeMap<u32, (u64, Ns)> = BTreeMap::new();
    for part in &evidence.analysis.threads[call.thread as usize].contexts {
        if (first..first + more).contains(&(part.context as usize)) {
            let (calls, total_ns) = of_rows.entry(part.context).or_default();
            *calls = calls.saturating_add(part.calls);
            *total_ns = Ns(total_ns.0.saturating_add(part.total_ns.0));
        }
    }
    of_rows
}

/// How long it loads libraries inside of a first call and of those after it.
fn loading_ns(evidence: &Evidence<'_>, call: &FirstCall) -> f64 {
    let rows = &evidence.analysis.contexts;
    let loads = |row: &u32| is_loader(evidence, rows[*row as usize].api);
    // (What is loaded may load more.)
    let is_outermost = |row: &u32| {
        let mut around = std::iter::successors(rows[*row as usize].parent, |parent| {
            rows[*parent as usize].parent
        });
        !around.any(|parent| loads(&parent))
    };
    let calls = calls_inside(evidence, call).into_iter();
    let loading = calls.filter(|(row, _)| loads(row) && is_outermost(row));
    loading.map(|(_, (_, total_ns))| total_ns.as_f64()).sum()
}

/// Returns the innermost call inside of a slow first call that explains it and was made only about once.
fn inside(evidence: &Evidence<'_>, call: &FirstCall) -> Option<Inside> {
    let rows = &evidence.analysis.contexts;
    let of_rows = calls_inside(evidence, call);
    let explains = |&(_, &(calls, total_ns)): &(&u32, &(u64, Ns))| {
        (1..=LEAST_CALLS).contains(&calls) && total_ns.as_f64() >= EXPLAINS * call.excess_ns()
    };
    let (&row, &(calls, total_ns)) =
        of_rows.iter().filter(explains).max_by_key(|&(&row, _)| rows[row as usize].depth)?;
    Some(Inside { api: rows[row as usize].api, calls, total_ns })
}

/// Whether a function of an interpreter calls the one that it is given, or loads the module.
fn is_call_of_another(symbol: &str) -> bool {
    const OF_INTERPRETERS: [&str; 9] = [
        "PyObject_Call",
        "PyObject_Vectorcall",
        "_PyObject_Call",
        "_PyObject_Vectorcall",
        "PyEval_",
        "PyImport_Import",
        "PyRun_",
        "rb_funcall",
        "rb_protect",
    ];
    OF_INTERPRETERS.iter().any(|start| symbol.starts_with(start))
}

/// Finds rare slow calls.
pub(super) fn rare(evidence: &Evidence<'_>, explained: &Explained) -> Vec<Finding> {
    let mut by_api: BTreeMap<(u32, u32), (Shares, Vec<&SlowCalls>)> = BTreeMap::new();
    for calls in &explained.slow {
        let (shares, all) = by_api.entry((calls.group, calls.api)).or_default();
        shares.add(calls.thread, calls.excess_ns());
        all.push(calls);
    }
    let finding = |((group, api), (shares, slow)): ((u32, u32), (Shares, Vec<&SlowCalls>))| {
        let row = &evidence.groups.rows[group as usize];
        let calls = row.apis.iter().find(|row| row.api == Some(api))?.calls;
        let slow_calls = slow.iter().fold(0, |sum: u64, calls| sum.saturating_add(calls.slow));
        let median_ns = slow.first()?.median_ns;
        // For a tiny call, an interruption may as well have hit the measurement.
        if median_ns < TINY_NS {
            return None;
        }
        // What an interpreter's functions run that call others is the program's.
        if is_call_of_another(&evidence.analysis.apis[api as usize].symbol) {
            return None;
        }
        // (The table says no usual one where it is not known.)
        let mut tails = evidence.tails.rows.iter();
        tails.find(|row| (row.group, row.api) == (group, api))?.p50_ns?;
        // One of a few dozen calls is rare, too.
        if slow_calls > 1 && slow_calls as f64 > RARE * calls as f64 {
            return None;
        }
        let (threads, saves_ns) = shares.named();
        let most = slow.iter().max_by(|a, b| a.max_ns.total_cmp(&b.max_ns))?;
        let kind = FindingKind::RareSlowCalls {
            calls,
            slow_calls,
            slow_ns: Ns::from_f64(slow.iter().map(|calls| calls.slow_ns).sum()),
            excess_ns: Ns::from_f64(shares.all()),
            median_ns: Ns::from_f64(most.median_ns),
            max_ns: Ns::from_f64(most.max_ns),
        };
        let places = slow.iter().map(|calls| (calls.context, calls.slow_ns));
        evidence.is_material(saves_ns).then(|| Finding {
            blame: sites::of_contexts(evidence, places),
            ..evidence.finding(group, threads, Some(api), saves_ns, kind)
        })
    };
    by_api.into_iter().filter_map(finding).collect()
}

/// Finds APIs whose time is that of very many short calls.
pub(super) fn tiny(evidence: &Evidence<'_>, explained: &Explained) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, group) in (0..).zip(&evidence.groups.rows) {
        // Waits for a processor don't say what the threads do.
        let threads = evidence.groups.threads(evidence.analysis, group);
        let waited: f64 = threads.filter_map(|row| row.off_cpu.runnable_ns).map(Ns::as_f64).sum();
        let lifetime = (group.lifetime_ns.as_f64() - waited).max(1.0);
        for row in &group.apis {
            let Some(api) = row.api else { continue };
            if row.calls < MANY || row.wait_ns > row.useful_ns || !can_be_fewer(evidence, api) {
                continue;
            }
            // The time of rare slow calls is reported separately.
            let slow = |&thread: &u32| explained.excess_ns(thread, row.api);
            let useful = row.useful_ns.as_f64() - group.members.iter().map(slow).sum::<f64>();
            let mean_ns = useful / row.calls as f64;
            let most = row.spread.max_thread;
            let saves_ns = row.spread.max_ns.as_f64() - slow(&most);
            if mean_ns > TINY_NS
                || useful < DOMINATES * lifetime
                || !evidence.is_material_to(most, saves_ns)
            {
                continue;
            }
            let kind = FindingKind::ManyTinyCalls {
                calls: row.calls,
                mean_ns,
                all_ns: Ns::from_f64(useful),
                of_lifetime: useful / lifetime,
                runnable_ns: Ns::from_f64(waited),
            };
            found.push(evidence.finding(number, vec![most], Some(api), saves_ns, kind));
        }
    }
    found
}
