//! What functions of libraries call back. A call of `pthread_once` or `qsort` lasts as long as the program's function that it calls:
//! that is no time of the library, and the samples tell.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::layout::OWN_CONTEXT_REF;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::bounds::{MATERIAL_NS, MATERIAL_SHARE};
use crate::causes::Run;
use crate::event_loops::RanLate;
use crate::groups::{Groups, Unnamed};
use crate::image::Image;

/// The calls are the callback's if it is at least this share of what runs in them.
const MOSTLY: f64 = 0.5;

/// Functions that do nothing of their own: what runs in their calls is called back, in whatever object it is.
const ONLY_CALL_BACK: &[&str] = &["pthread_once", "call_once", "__once_proxy", "dl_iterate_phdr"];

/// A function of a library, in one thread, whose calls mostly run what it calls back.
#[derive(Clone, Debug, Serialize)]
pub struct CalledBack {
    /// The thread, by number in [`Analysis::threads`].
    pub thread: u32,
    /// The function that calls back, by number in [`Analysis::apis`].
    pub api: u32,
    /// The process, by number in [`Analysis::processes`]. The following addresses are valid in it.
    #[serde(skip)]
    pub process: usize,
    /// What it calls back, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
}

/// Finds such functions, where that takes a material time.
pub(crate) fn called_back(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
) -> Vec<CalledBack> {
    // By thread and function: the time of what is called back, and all.
    let mut sums: BTreeMap<(u32, u32), (f64, f64)> = BTreeMap::new();
    let numbers: HashMap<(u32, u32), u32> = (0..)
        .zip(&analysis.threads)
        .map(|(number, row)| ((row.process as u32, row.thread), number))
        .collect();
    for row in &analysis.on_cpu.of_threads {
        let (Some(&thread), Some(api)) = (numbers.get(&(row.process, row.thread)), row.api) else {
            continue;
        };
        let (own, all) = sums.entry((thread, api)).or_default();
        *all += row.ns.as_f64();
        if is_called_back(analysis, api, Some(row.object)) {
            *own += row.ns.as_f64();
        }
    }
    let least_ns = MATERIAL_NS.max(MATERIAL_SHARE * analysis.wall_ns.as_f64());
    sums.retain(|_, &mut (own, all)| own >= least_ns && own >= MOSTLY * all);
    let found = sums.into_keys().map(|(thread, api)| CalledBack {
        thread,
        api,
        process: analysis.threads[thread as usize].process,
        ran: Vec::new(),
    });
    let mut found: Vec<CalledBack> = found.collect();
    if !found.is_empty() {
        add_what_ran(images, analysis, groups, &mut found);
    }
    found
}

/// Whether what runs in a call of `api` is called back, if it is in `object`.
fn is_called_back(analysis: &Analysis, api: u32, object: Option<u32>) -> bool {
    let (api, Some(object)) = (&analysis.apis[api as usize], object) else { return false };
    object != api.object
        && (analysis.objects.get(object as usize).is_some_and(|row| row.executable)
            || ONLY_CALL_BACK.contains(&&*api.symbol))
}

fn add_what_ran(images: &[Image], analysis: &Analysis, groups: &Groups, found: &mut [CalledBack]) {
    let run = Run::new(images, analysis, groups, &Unnamed);
    let places: HashMap<(u32, u32), usize> =
        found.iter().enumerate().map(|(at, one)| ((one.thread, one.api), at)).collect();
    for (process, image) in images.iter().enumerate() {
        let samples = image.syscalls.iter().flat_map(|file| file.samples());
        for row in samples.filter(|row| row.context_ref != OWN_CONTEXT_REF) {
            let (Some(thread), Some(api)) = run.place(process, row.context_ref, row.tid) else {
                continue;
            };
            let Some(&at) = places.get(&(thread, api)) else { continue };
            let Some(address) = run.address(process, row.address) else { continue };
            if is_called_back(analysis, api, address.object) {
                let samples = u64::from(row.user) + u64::from(row.kernel);
                found[at].ran.push(RanLate { address, samples });
            }
        }
    }
    for one in found {
        one.ran.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address.avma));
    }
}
