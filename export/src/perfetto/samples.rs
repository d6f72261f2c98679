//! Samples of what ran.

use std::collections::HashMap;

use super::messages::{
    Callstack, Defaults, Interned, InternedData, Mapping, Packet, PerfSample, PerfSampleDefaults,
    StackFrame, Timebase,
};
use super::{MONOTONIC, NEEDED, SEQUENCE, Writer};
use crate::trace::Trace;

/// `PerfEvents.Counter`.
const CPU_CLOCK: i32 = 1;
/// `Profiling.CpuMode`.
const IN_KERNEL: i32 = 1;
const IN_USER_SPACE: i32 = 2;

impl Writer {
    /// Samples as `perf` would have taken them: functions are frames, their libraries mappings without addresses.
    pub(super) fn samples(&mut self, trace: &Trace) {
        let threads = || {
            let of = |process: &'_ crate::trace::TraceProcess| process.pid;
            trace.processes.iter().flat_map(move |process| {
                process.threads.iter().map(move |thread| (of(process), thread))
            })
        };
        if threads().all(|(_, thread)| thread.samples.is_empty()) {
            return;
        }
        self.packets.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDED),
            trace_packet_defaults: Some(Defaults {
                perf_sample_defaults: Some(PerfSampleDefaults {
                    timebase: Some(Timebase {
                        frequency: Some(trace.sample_hz),
                        counter: Some(CPU_CLOCK),
                        name: Some("cpu-clock".to_owned()),
                    }),
                }),
            }),
            interned_data: Some(stacks(trace)),
            ..Packet::default()
        });
        for (pid, thread) in threads() {
            let mut count = 0;
            for sample in &thread.samples {
                count += u64::from(sample.stands_for);
                let mode = if sample.is_in_kernel { IN_KERNEL } else { IN_USER_SPACE };
                self.events.push(Packet {
                    timestamp: Some(sample.at_ns),
                    timestamp_clock_id: Some(MONOTONIC),
                    trusted_packet_sequence_id: Some(SEQUENCE),
                    sequence_flags: Some(NEEDED),
                    perf_sample: Some(PerfSample {
                        pid: Some(pid),
                        tid: Some(thread.tid),
                        callstack_iid: Some(u64::from(sample.stack) + 1),
                        cpu_mode: Some(mode),
                        timebase_count: Some(count),
                    }),
                    ..Packet::default()
                });
            }
        }
    }
}

/// All stacks, with what they are made of. Numbers of messages are one more than those of the trace, since 0 is none.
fn stacks(trace: &Trace) -> InternedData {
    let interned = |iid: u64, text: &str| Interned { iid: Some(iid), name: Some(text.to_owned()) };
    let mut libraries: Vec<&str> = trace.functions.iter().map(|f| &*f.library).collect();
    libraries.sort_unstable();
    libraries.dedup();
    let numbers: HashMap<&str, u64> = libraries.iter().copied().zip(1..).collect();
    let numbered = || (1..).zip(&trace.functions);
    let frame_ids = |stack: &Vec<u32>| stack.iter().map(|&frame| u64::from(frame) + 1).collect();
    InternedData {
        function_names: numbered().map(|(iid, f)| interned(iid, &f.name)).collect(),
        mapping_paths: (1..).zip(&libraries).map(|(iid, name)| interned(iid, name)).collect(),
        mappings: (1..=libraries.len() as u64)
            .map(|iid| Mapping { iid: Some(iid), path_string_ids: vec![iid] })
            .collect(),
        frames: numbered()
            .map(|(iid, f)| StackFrame {
                iid: Some(iid),
                function_name_id: Some(iid),
                mapping_id: numbers.get(&*f.library).copied(),
            })
            .collect(),
        callstacks: (1..)
            .zip(&trace.stacks)
            .map(|(iid, stack)| Callstack { iid: Some(iid), frame_ids: frame_ids(stack) })
            .collect(),
        ..InternedData::default()
    }
}
