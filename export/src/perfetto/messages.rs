//! The messages of the format, as far as they are filled in.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TraceMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "66")]
    pub(super) perf_sample: Option<PerfSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<ClockValue>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ClockValue {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub(super) cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
    #[prost(int64, optional, tag = "7")]
    pub(super) start_timestamp_ns: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub(super) unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(super) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<Annotation>,
    #[prost(int32, optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Annotation {
    #[prost(bool, optional, tag = "2")]
    pub(super) bool_value: Option<bool>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<Interned>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<Interned>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<StackFrame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<Interned>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Interned {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct StackFrame {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) mapping_id: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    /// Outermost first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path_string_ids: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) tid: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) callstack_iid: Option<u64>,
    /// `Profiling.CpuMode`.
    #[prost(int32, optional, tag = "5")]
    pub(super) cpu_mode: Option<i32>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) timebase_count: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Defaults {
    #[prost(message, optional, tag = "12")]
    pub(super) perf_sample_defaults: Option<PerfSampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PerfSampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub(super) timebase: Option<Timebase>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Timebase {
    #[prost(uint64, optional, tag = "2")]
    pub(super) frequency: Option<u64>,
    /// `PerfEvents.Counter`.
    #[prost(int32, optional, tag = "4")]
    pub(super) counter: Option<i32>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}
