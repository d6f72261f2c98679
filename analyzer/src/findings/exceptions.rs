//! Exceptions that are thrown so often that throwing them takes much of the processor time.

use std::collections::{BTreeMap, HashMap};

use super::{Blame, Evidence, Finding, FindingKind, sites};
use crate::address::CodeAddress;
use crate::clock::Ns;
use crate::exceptions::{MANY, OfThread, RAISES, THROWS, exceptions};
use crate::overhead::OWN;
use crate::packed::ThreadContext;
use crate::rows::{ContextRow, ObjectRow};

/// The part of the run's processor time that throwing takes.
const MUCH: f64 = 0.05;
/// Fewer samples are too few to say that.
const SAMPLES: u64 = 30;
/// A function is named if it throws this part of the exceptions.
const MOSTLY: f64 = 0.5;
/// What a function that throws calls just before, to make room for the exception.
const ALLOCATES: &str = "__cxa_allocate_exception";

/// Finds exceptions that take much of the processor time.
pub(super) fn thrown(evidence: &Evidence<'_>) -> Option<Finding> {
    let all = exceptions(evidence.analysis)?;
    all.on_cpu_ns?;
    let mut groups = BTreeMap::<u32, Vec<(u32, OfThread)>>::new();
    for &(thread, own) in &all.by_thread {
        let group = *evidence.groups.of_thread.get(thread as usize)?;
        groups.entry(group).or_default().push((thread, own));
    }
    let sum =
        |of: &[(u32, OfThread)]| of.iter().map(|(_, own)| own.on_cpu_ns.as_f64()).sum::<f64>();
    let (group, threads) = groups.into_iter().max_by(|a, b| sum(&a.1).total_cmp(&sum(&b.1)))?;
    let cpu_ns = sum(&threads);
    let thrown = threads.iter().map(|(_, own)| own.thrown).fold(0, u64::saturating_add);
    let samples = threads.iter().map(|(_, own)| own.samples).fold(0, u64::saturating_add);
    let of_cpu = cpu_ns / programs_ns(evidence).max(1.0);
    let &(thread, most) = threads.iter().max_by_key(|(_, own)| own.on_cpu_ns)?;
    let saves_ns = most.on_cpu_ns.as_f64();
    if thrown < MANY
        || samples < SAMPLES
        || of_cpu < MUCH
        || !evidence.is_material_to(thread, saves_ns)
    {
        return None;
    }
    let kind =
        FindingKind::Exceptions { thrown, cpu_ns: Ns::from_f64(cpu_ns), of_cpu: of_cpu.min(1.0) };
    let (api, blame) = thrower(evidence, thread, most.thrown).unzip();
    let finding = evidence.finding(group, vec![thread], api, saves_ns, kind);
    Some(Finding { blame: blame.flatten(), ..finding })
}

/// The processor time of the run without what chase itself takes.
fn programs_ns(evidence: &Evidence<'_>) -> f64 {
    let on_cpu = &evidence.analysis.on_cpu;
    let own = on_cpu.objects.iter().find(|row| row.name == OWN);
    let own_ns = own.map_or(0.0, |row| row.time.on_cpu_ns.as_f64());
    on_cpu.whole_ns().as_f64() - own_ns
}

/// The exceptions of one function, and from where it is called.
#[derive(Default)]
struct Sums {
    thrown: f64,
    places: HashMap<CodeAddress, (usize, f64)>,
}

/// Returns the function by which a thread's program throws most of its exceptions, and where: `__cxa_throw`, or the one of a library
/// that does it for the program.
fn thrower(evidence: &Evidence<'_>, thread: u32, all: u64) -> Option<(u32, Option<Blame>)> {
    let analysis = evidence.analysis;
    let symbol = |row: &ContextRow| &*analysis.apis[row.api as usize].symbol;
    let is_of_library = |row: &ContextRow| {
        let caller = analysis.objects.get(row.caller as usize);
        caller.is_some_and(ObjectRow::is_library_of_cpp)
    };
    let parts = &analysis.threads[thread as usize].contexts;
    let mut sums = BTreeMap::<u32, Sums>::new();
    for part in parts {
        let ThreadContext { context, calls, .. } = part;
        let row = &analysis.contexts[context as usize];
        if !THROWS.contains(&symbol(row)) && !RAISES.contains(&symbol(row)) {
            continue;
        }
        let parent = |row: &&ContextRow| analysis.contexts.get(row.parent? as usize);
        let around = std::iter::successors(Some(row), parent).find(|row| !is_of_library(row));
        let Some(around) = around else { continue };
        // The throw itself has no place, but what is called for it, by the same function, does.
        let beside = analysis.contexts.iter().find(|other| {
            (other.parent, other.caller) == (around.parent, around.caller)
                && symbol(other) == ALLOCATES
        });
        let placed = if std::ptr::eq(around, row) { beside.unwrap_or(row) } else { around };
        let sum = sums.entry(around.api).or_default();
        sum.thrown += calls as f64;
        let own = placed.site.map(|site| (site, placed.process, 1.0));
        let places = placed.places.iter();
        let places = places.filter_map(|at| Some((at.address?, at.process, at.share)));
        for (site, process, share) in own.into_iter().chain(places) {
            sum.places.entry(site).or_insert((process, 0.0)).1 += calls as f64 * share;
        }
    }
    let (api, sums) = sums.into_iter().max_by(|a, b| a.1.thrown.total_cmp(&b.1.thrown))?;
    if sums.thrown < MOSTLY * all as f64 {
        return None;
    }
    let place = sites::most(sums.places, sums.thrown);
    let blame = place.map(|(process, site, elsewhere)| Blame {
        process,
        api: Some(api),
        site: Some(site),
        elsewhere,
        ..Blame::default()
    });
    Some((api, blame))
}
