//! What calls were passed, arguments and texts, and where they were made, by context.

use std::collections::HashMap;

use chase_recorder::layout::LONG_CALLS;
use chase_recorder::reader::Thread;

use super::{Collector, Scene};
use crate::arguments::ArgumentSums;
use crate::clock::Ticks;
use crate::names::Site;

impl Collector {
    /// Adds the arguments of the thread's calls; returns their means by API.
    pub(super) fn add_arguments(
        &mut self,
        scene: &Scene<'_>,
        thread: Thread<'_>,
        (merged, imports): (&[u32], &[u32]),
    ) -> HashMap<u32, f64> {
        let mut rows: Vec<_> = thread.arguments().collect();
        if rows.is_empty() {
            return HashMap::new();
        }
        rows.sort_by_key(|row| row.node_ref);
        let mut by_api: HashMap<u32, ArgumentSums> = HashMap::new();
        for context in thread.contexts().filter(|context| !context.is_inherited()) {
            let at = context.number as usize;
            let first = rows.partition_point(|row| row.node_ref < context.reference);
            for row in rows[first..].iter().take_while(|row| row.node_ref == context.reference) {
                let sums = ArgumentSums::new(row, scene.scale.ns_per_tick);
                self.contexts.list[merged[at] as usize].sums.add_arguments(&sums);
                let api = self.names.imports[imports[at] as usize].api;
                by_api.entry(api).and_modify(|own| own.add(&sums)).or_insert(sums);
            }
        }
        by_api.iter().filter_map(|(&api, sums)| Some((api, sums.mean()?))).collect()
    }

    /// Adds from where the thread's calls were made.
    pub(super) fn add_callers(
        &mut self,
        scene: &Scene<'_>,
        thread: Thread<'_>,
        (merged, imports): (&[u32], &[u32]),
    ) {
        let mut rows: Vec<_> = thread.callers().collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|row| row.node_ref);
        for context in thread.contexts().filter(|context| !context.is_inherited()) {
            let at = context.number as usize;
            let of = |reference: u32| {
                let first = rows.partition_point(|row| row.node_ref < reference);
                rows[first..].iter().take_while(move |row| row.node_ref == reference)
            };
            for row in of(context.reference).chain(of(context.reference | LONG_CALLS)) {
                let place = scene.addresses.find(row.return_avma, Ticks(row.first_ticks));
                let site = match (place.object, place.svma) {
                    (Some(object), Some(svma)) if row.return_avma != 0 => {
                        Some(Site { object, svma })
                    }
                    _ => None,
                };
                let import = self.names.called_from(imports[at], site, scene.process);
                let sums = &mut self.contexts.list[merged[at] as usize].sums;
                let samples = u64::from(row.samples);
                if row.node_ref & LONG_CALLS == 0 {
                    let callers = sums.callers.get_or_insert_default();
                    callers.add_place(import, samples, row.calls);
                } else {
                    let ns = (row.calls as f64 * scene.scale.ns_per_tick) as u64;
                    sums.long_callers.get_or_insert_default().add_place(import, samples, ns);
                }
            }
        }
    }

    /// Adds the texts that the thread's calls were passed.
    pub(super) fn add_texts(&mut self, scene: &Scene<'_>, thread: Thread<'_>, merged: &[u32]) {
        let mut texts: Vec<_> = thread.texts().collect();
        if texts.is_empty() {
            return;
        }
        texts.sort_by_key(|text| text.node_ref);
        for context in thread.contexts().filter(|context| !context.is_inherited()) {
            let first = texts.partition_point(|text| text.node_ref < context.reference);
            for text in texts[first..].iter().take_while(|text| text.node_ref == context.reference)
            {
                let place = merged[context.number as usize] as usize;
                let sums = &mut self.contexts.list[place].sums;
                sums.texts.get_or_insert_default().add_text(text, scene.scale.ns_per_tick);
            }
        }
    }
}
