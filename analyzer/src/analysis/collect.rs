//! Collects the figures of threads and their contexts.

mod arguments;
mod creation;

use std::collections::HashMap;

use chase_recorder::layout::{
    NONE, ORIGIN_FORK, OWN_CONTEXT_REF, THREAD_CREATED, THREAD_ENDED, THREAD_MAIN, ThreadRecord,
};
use chase_recorder::reader::{Context, Histogram, Thread};

use self::creation::creation;
use super::part::{Part, Scales};
use super::thread::{CollectedThread, end_with_process};
use super::{Selection, own_code};
use crate::address::CodeAddress;
use crate::address_map::AddressMap;
use crate::clock::{Ns, Ticks};
use crate::contexts::Contexts;
use crate::costs::{self, Cost, PARTS, ThreadCosts};
use crate::image::{Image, SyscallsState};
use crate::names::{ImageNames, Names};
use crate::off_cpu::{Measured, OffCpu};
use crate::on_cpu;
use crate::packed::Packed;
use crate::rows::{
    MeasuredOffCpu, ProcessRow, ThreadApi, ThreadContext, ThreadOrigin, ThreadRow, Totals,
    WaitSource,
};
use crate::sums::{Scale, Sums};
use crate::syscalls::{Collected, Places, Scheduler, TracingCost, wait_source};
use crate::unseen::NotSeen;
use crate::walk::{Forest, NOBODY};

/// What was collected so far, of all images or of a part of one.
pub(super) struct Collector {
    pub(super) names: Names,
    pub(super) contexts: Contexts,
    pub(super) processes: Vec<ProcessRow>,
    pub(super) threads: Vec<CollectedThread>,
    pub(super) not_seen: NotSeen,
    pub(super) syscalls: Collected,
    pub(super) on_cpu: on_cpu::Collected,
    /// The first start and the last end in the selection.
    pub(super) span: Option<(Ns, Ns)>,
    pub(super) scales: Scales,
    /// See [`Forest::outermost`].
    scratch: Vec<u32>,
}

/// What the threads of one image share.
struct Scene<'r> {
    image: &'r Image,
    process: usize,
    names: ImageNames<'r>,
    addresses: AddressMap,
    executable: u32,
    scale: Scale,
    source: WaitSource,
    scheduler: Option<Scheduler>,
    tracing_cost: Option<TracingCost>,
    /// Set if system calls were recorded.
    places: Option<Places>,
}

impl Collector {
    /// Begins with all images, without their threads.
    pub(super) fn new(images: &[Image], selection: Selection) -> Self {
        let mut collector = Self::empty(Scales::new(images));
        collector.processes.reserve_exact(images.len());
        for (process, image) in images.iter().enumerate() {
            collector.add_image(process, image, selection);
        }
        collector
    }

    fn empty(scales: Scales) -> Self {
        Self {
            names: Names::default(),
            contexts: Contexts::default(),
            processes: Vec::new(),
            threads: Vec::new(),
            not_seen: NotSeen::default(),
            syscalls: Collected::default(),
            on_cpu: on_cpu::Collected::default(),
            span: None,
            scales,
            scratch: Vec::new(),
        }
    }

    fn add_image(&mut self, process: usize, image: &Image, selection: Selection) {
        let header = image.recording.header();
        let start = self.scales.time.of_ticks(image, image.start());
        let end = self.scales.time.of_ticks(image, image.end);
        self.processes.push(ProcessRow {
            path: image.path.clone(),
            pid: header.pid,
            parent_pid: header.parent_pid,
            parent: image.parent,
            forked: header.origin == ORIGIN_FORK,
            program: image.program(),
            role: image.role(),
            executable: image.executable(),
            command: image.command(),
            start_ns: self.scales.since_start(start),
            wall_ns: Ns(end.0.saturating_sub(start.0)),
            ending: image.ending,
            end_is_estimate: image.end_is_estimate,
            clock_is_calibrated: image.clock.is_calibrated(),
            is_recorded: image.is_recorded,
            only_counts: image.only_counts(),
            syscalls: image.syscalls_state(),
            wait_source: wait_source(image),
            totals: Totals::default(),
        });
        if !selection.has_process(process) {
            return;
        }
        self.not_seen.add_image(process, image);
        if !matches!(selection, Selection::Thread(..)) {
            self.widen_span(start, end);
        }
    }

    /// Collects what is in the threads of consecutive parts.
    pub(super) fn of_parts(
        images: &[Image],
        parts: &[Part],
        selection: Selection,
        scales: &Scales,
    ) -> Self {
        let mut collector = Self::empty(scales.clone());
        for part in parts {
            collector.add_part(images, part, selection);
        }
        collector
    }

    fn add_part(&mut self, images: &[Image], part: &Part, selection: Selection) {
        let collector = self;
        let Part { process, ref threads, .. } = *part;
        let image = &images[process];
        let ns_per_reference_tick = collector.scales.ns_per_reference_tick;
        let names = collector.names.image(process, &image.recording);
        let executable = match names.executable() {
            Some(object) => object,
            None => collector.names.executable(&image.executable()),
        };
        let mut scene = Scene {
            image,
            process,
            addresses: AddressMap::new(&image.recording, |object| names.object(object.record().id)),
            names,
            executable,
            scale: Scale {
                ns_per_tick: image.clock.ns_per_tick(),
                ns_per_reference_tick,
                inside: image.recording.header().cost_inside as f64 / PARTS,
            },
            source: wait_source(image),
            scheduler: Scheduler::from_image(image),
            tracing_cost: TracingCost::from_image(image),
            places: image.syscalls.as_ref().map(|_| Places::new(image)),
        };
        for thread in image.recording.threads().skip(threads.start).take(threads.len()) {
            if selection.has_thread(thread.record().index) {
                collector.add_thread(&mut scene, thread);
            }
        }
        let wanted = |thread: Option<u32>| match selection {
            Selection::Thread(_, selected) => thread == Some(selected),
            Selection::All | Selection::Process(_) => true,
        };
        if let Some(places) = &scene.places {
            collector.syscalls.add(process, image, places, wanted);
            let (addresses, names) = (&scene.addresses, &mut collector.names);
            collector.on_cpu.add(process, image, places, addresses, names, wanted);
        }
    }

    /// Makes room for so many threads in all: there may be very many.
    pub(super) fn expect_threads(&mut self, threads: usize) {
        self.threads.reserve_exact(threads);
    }

    /// Adds what was collected in some parts.
    pub(super) fn merge(&mut self, part: Self) {
        let numbers = self.names.merge(part.names);
        let places = self.contexts.merge(part.contexts, &numbers.imports);
        self.syscalls.merge(part.syscalls, &places);
        self.on_cpu.merge(part.on_cpu, &numbers, &places);
        if let Some((start, end)) = part.span {
            self.widen_span(start, end);
        }
        for mut thread in part.threads {
            thread.renumber(&numbers, &places);
            self.not_seen.lost_calls =
                self.not_seen.lost_calls.saturating_add(thread.row.lost_calls);
            self.threads.push(thread);
        }
    }

    fn add_thread(&mut self, scene: &mut Scene<'_>, thread: Thread<'_>) {
        let record = thread.record();
        if let Some(places) = &mut scene.places {
            places.add_thread(record.index, record.tid, record.root_ref);
        }
        // For each context of the thread: the import that it calls, and its merged context.
        let mut imports: Vec<u32> = Vec::new();
        let mut merged: Vec<u32> = Vec::new();
        let mut sums = Sums::default();
        let references: Vec<u32> = match scene.scheduler {
            Some(_) => thread.contexts().map(|context| context.reference).collect(),
            None => Vec::new(),
        };
        let ns_per_tick = scene.scale.ns_per_tick;
        // A value from when the thread last asked doesn't include what came after.
        let final_cpu_ns = if record.cpu_is_final == 1 { record.cpu_ns } else { 0 };
        let scheduler = scene.scheduler.as_ref();
        let off_cpu_ticks = scheduler
            .map(|it| it.off_cpu_ticks(scene.image, record, &references, final_cpu_ns))
            .unwrap_or_default();
        let lacking = |at: usize, of: &Cost| {
            let reference = *references.get(at)?;
            let missing = scheduler?.missing(reference, record.tid, of.sampling(ns_per_tick))?;
            Some((missing.ns / ns_per_tick, missing.variance / (ns_per_tick * ns_per_tick)))
        };
        let each = |context: &Context<'_>, histogram: &Histogram| {
            let (import, class) = self.names.slot(&mut scene.names, context.slot());
            let place = if context.scope < context.number {
                merged[context.scope as usize]
            } else {
                let caller = context.caller.map_or(NOBODY, |caller| merged[caller as usize]);
                self.contexts.number(caller, import)
            };
            if !context.is_inherited() {
                self.contexts.list[place as usize].sums.add_durations(histogram, &scene.scale);
                sums.add_durations(histogram, &scene.scale);
            }
            imports.push(import);
            merged.push(place);
            if let Some(places) = &mut scene.places {
                places.add_context(record.index, record.tid, context.reference, place);
            }
            class
        };
        let mut costs = costs::of_thread(scene.image, thread, each, &lacking, &off_cpu_ticks);
        take_out_tracing(scene, thread, &mut costs);
        let lifetime_ns = (costs.end.0 - costs.start.0) as f64 * scene.scale.ns_per_tick;
        let mut off_cpu = self.off_cpu(scene, thread, &costs.contexts, &imports);
        let mut application_off_cpu = match &mut scene.scheduler {
            None => OffCpu { measured: Measured::NOTHING, ..OffCpu::default() },
            Some(scheduler) => {
                let mut own = scheduler.take(record.root_ref, record.tid);
                if record.state == THREAD_ENDED && final_cpu_ns > 0 {
                    // Some of that may be before its beginning, or after its end.
                    let in_calls: f64 = off_cpu.iter().map(|one| one.measured.sum()).sum();
                    let room_ns = (lifetime_ns - final_cpu_ns as f64 - in_calls).max(0.0);
                    own.measured = own.measured.within(room_ns);
                }
                own.within(costs.application * scene.scale.ns_per_tick)
            }
        };
        if record.state != THREAD_ENDED {
            let ran_ns = scene.scheduler.as_ref().map_or(0, |it| it.ran_ns(record.tid));
            let room = (lifetime_ns, ran_ns as f64);
            end_with_process(&mut off_cpu, &costs.contexts, &mut application_off_cpu, room);
        }
        let mut contexts = Vec::with_capacity(costs.contexts.len());
        for ((cost, &off_cpu), &place) in costs.contexts.iter().zip(&off_cpu).zip(&merged) {
            contexts.push(thread_context(place, cost, off_cpu, &scene.scale));
            self.contexts.list[place as usize].sums.add_cost(cost, off_cpu, &scene.scale);
            sums.add_cost(cost, off_cpu, &scene.scale);
            sums.within_ns += cost.total * scene.scale.ns_per_tick;
        }
        sums.total_ns = sums.self_ns;
        let means = self.add_arguments(scene, thread, (&merged, &imports));
        self.add_texts(scene, thread, &merged);
        self.add_callers(scene, thread, (&merged, &imports));
        let apis = self.thread_apis(&costs.contexts, &off_cpu, &imports, &scene.scale, &means);
        let ns = |ticks: f64| ticks * scene.scale.ns_per_tick;
        let ThreadCosts {
            start, end, application, application_uncertainty, own_cost, overlap, ..
        } = costs;
        let untimed = own_code::Untimed::new(&costs.contexts, &scene.scale, scene.source);
        let unattributed_ns = match scene.source {
            WaitSource::Scheduler | WaitSource::Asked => {
                untimed.take_preempted(&mut application_off_cpu, ns(application))
            }
            WaitSource::Name | WaitSource::Mixed => {
                untimed.unattributed_ns(final_cpu_ns as f64, lifetime_ns - sums.off_cpu.wait_ns)
            }
        };
        let unattributed_ns = unattributed_ns.min(ns(application));
        let application_ns = ns(application) - unattributed_ns;
        let mut measured = sums.off_cpu.measured;
        measured.add(application_off_cpu.measured);
        let mut outside = |context| {
            let off_cpu = scene.scheduler.as_mut().map(|it| it.take(context, record.tid));
            off_cpu.unwrap_or_default().measured
        };
        let (nowhere, at_edges) = (outside(0), outside(OWN_CONTEXT_REF));
        let measures = sums.measures(0.0, scene.scale.ns_per_reference_tick);
        let row = self.thread_row(scene, thread, (start, end));
        let own_object = own_code::object(&row, &self.names, scene.executable);
        let on_cpu_ns = (final_cpu_ns > 0).then_some(Ns(final_cpu_ns));
        let collected = CollectedThread {
            application_off_cpu,
            row: ThreadRow {
                measures,
                apis,
                contexts: contexts.into_iter().collect(),
                own_object,
                on_cpu_ns,
                ..row
            },
            is_own_code_application: own_object == scene.executable,
            self_ns: sums.self_ns,
            off_cpu: sums.off_cpu,
            measured,
            nowhere,
            at_edges,
            lifetime_ns,
            application_ns,
            unattributed_ns,
            unattributed_off_cpu: OffCpu::preempted(unattributed_ns),
            application_uncertainty: application_uncertainty * scene.scale.ns_per_tick,
            own_cost_ns: ns(own_cost),
            own_wait_ns: 0.0,
            overlap_ns: ns(overlap),
        };
        self.threads.push(collected);
    }

    /// Returns the time off the CPU by context: from the scheduler if that was observed, otherwise estimated by name.
    fn off_cpu(
        &self,
        scene: &mut Scene<'_>,
        thread: Thread<'_>,
        costs: &[Cost],
        imports: &[u32],
    ) -> Vec<OffCpu> {
        let self_ns = |cost: &Cost| cost.self_time * scene.scale.ns_per_tick;
        let Some(scheduler) = &mut scene.scheduler else {
            let by_name = |(cost, &import): (&Cost, &u32)| OffCpu {
                wait_ns: self.names.cause(import).map_or(0.0, |_| self_ns(cost)),
                measured: Measured::NOTHING,
                ..OffCpu::default()
            };
            return costs.iter().zip(imports).map(by_name).collect();
        };
        let mut off_cpu = vec![OffCpu::default(); costs.len()];
        for context in thread.contexts() {
            // The scope has the self time of a folded context.
            let scope = costs[context.number as usize].scope as usize;
            off_cpu[scope].add(scheduler.take(context.reference, thread.record().tid));
        }
        costs.iter().zip(off_cpu).map(|(cost, off_cpu)| off_cpu.within(self_ns(cost))).collect()
    }

    /// Makes the row without its figures.
    fn thread_row(
        &mut self,
        scene: &Scene<'_>,
        thread: Thread<'_>,
        (start, end): (Ticks, Ticks),
    ) -> ThreadRow {
        let record = thread.record();
        let moment = |ticks| self.scales.time.of_ticks(scene.image, ticks);
        let (start_ns, end_ns) = (moment(start), moment(end));
        self.widen_span(start_ns, end_ns);
        let code = |avma: u64| -> Option<CodeAddress> {
            (avma != 0).then(|| scene.addresses.find(avma, start))
        };
        ThreadRow {
            process: scene.process,
            thread: record.index,
            tid: record.tid,
            name: thread.name().into_owned(),
            origin: match record.origin {
                THREAD_MAIN => ThreadOrigin::Main,
                THREAD_CREATED => ThreadOrigin::Created,
                _ => ThreadOrigin::Found,
            },
            start_ns: self.scales.since_start(start_ns),
            end_ns: self.scales.since_start(end_ns),
            lifetime_ns: Ns(end_ns.0.saturating_sub(start_ns.0)),
            end_is_estimate: scene.image.end_is_estimate && record.state != THREAD_ENDED,
            application_ns: Ns(0),
            own_object: scene.executable,
            unattributed_ns: Ns(0),
            unattributed_wait_ns: Ns(0),
            unattributed_preempted_ns: Ns(0),
            application_wait_ns: None,
            application_preempted_ns: None,
            woken_ns: Ns(0),
            on_cpu_ns: None,
            ran_ns: None,
            off_cpu: MeasuredOffCpu::default(),
            own_cost_ns: Ns(0),
            own_wait_ns: Ns(0),
            slow_ns: Ns::from_f64(record.slow_ticks as f64 * scene.scale.ns_per_tick),
            overlap_ns: Ns(0),
            start_routine: code(record.start_routine_avma),
            start_argument: record.start_argument,
            creation_site: code(record.creation_site_avma),
            creator: (record.creator != NONE).then_some(record.creator),
            creation: creation(scene, thread, start),
            lost_calls: record.untimed_calls,
            measures: crate::rows::Measures::default(),
            apis: Packed::default(),
            contexts: Packed::default(),
        }
    }

    /// Returns what the thread spent in each API, by number of the API.
    fn thread_apis(
        &mut self,
        costs: &[Cost],
        off_cpu: &[OffCpu],
        imports: &[u32],
        scale: &Scale,
        argument_means: &HashMap<u32, f64>,
    ) -> Packed<ThreadApi> {
        self.scratch.resize(self.names.apis.len(), 0);
        let names = &self.names;
        let api_of = |at: u32| names.imports[imports[at as usize] as usize].api;
        let forest = Forest::new(costs.iter().map(|cost| cost.caller));
        let outermost = forest.outermost(api_of, &mut self.scratch);
        let mut by_api: Vec<u32> = (0..costs.len() as u32).collect();
        by_api.sort_by_key(|&at| api_of(at));
        let of_one_api = |contexts: &[u32]| {
            let (mut calls, mut total, mut own) = (0_u64, 0.0, 0.0);
            let (mut wait_ns, mut preempted_ns) = (0.0, 0.0);
            for &at in contexts {
                let cost = &costs[at as usize];
                calls = calls.saturating_add(cost.calls);
                own += cost.self_time;
                wait_ns += off_cpu[at as usize].wait_ns;
                preempted_ns += off_cpu[at as usize].preempted_ns.unwrap_or(0.0);
                total += if outermost[at as usize] { cost.total } else { 0.0 };
            }
            ThreadApi {
                api: api_of(contexts[0]),
                calls,
                total_ns: Ns::from_f64(total * scale.ns_per_tick),
                self_ns: Ns::from_f64(own * scale.ns_per_tick),
                wait_ns: Ns::from_f64(wait_ns),
                preempted_ns: Ns::from_f64(preempted_ns),
                argument_mean: argument_means.get(&api_of(contexts[0])).map(|&mean| mean as f32),
            }
        };
        let by_api = || by_api.chunk_by(|&a, &b| api_of(a) == api_of(b));
        by_api().map(of_one_api).collect()
    }

    fn widen_span(&mut self, start: Ns, end: Ns) {
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
    }

    /// Completes the tables after all parts were added.
    pub(super) fn finish(mut self) -> Self {
        let anything = self.processes.iter().any(|row| row.syscalls != SyscallsState::None);
        self.not_seen.syscalls.finish(anything);
        self
    }
}

fn thread_context(place: u32, cost: &Cost, off_cpu: OffCpu, scale: &Scale) -> ThreadContext {
    ThreadContext {
        context: place,
        calls: cost.calls,
        total_ns: Ns::from_f64(cost.total * scale.ns_per_tick),
        self_ns: Ns::from_f64(cost.self_time * scale.ns_per_tick),
        wait_ns: Ns::from_f64(off_cpu.wait_ns),
    }
}

/// Subtracts the overhead of observing system calls from a thread's times.
fn take_out_tracing(scene: &mut Scene<'_>, thread: Thread<'_>, costs: &mut ThreadCosts) {
    let Some(cost) = &mut scene.tracing_cost else { return };
    let ThreadRecord { tid, root_ref, .. } = *thread.record();
    let mut ticks = |reference| cost.take(reference, tid).in_units(scene.scale.ns_per_tick);
    let of_contexts: Vec<_> = thread.contexts().map(|context| ticks(context.reference)).collect();
    let mut outside = ticks(root_ref);
    outside += ticks(0);
    costs.take_out(&of_contexts, outside);
}
