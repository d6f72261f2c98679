//! The format of pprof: `profile.proto` of <https://github.com/google/pprof>, compressed by gzip.
//!
//! The messages are written down here with their field numbers; those that are not filled in are
//! left out.

use std::collections::HashMap;
use std::io::Write;

use flate2::{Compression, GzBuilder};
use prost::Message;

use crate::{Error, Stacks};

/// When something was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Start, nanoseconds since 1970.
    pub start_ns: u64,
    /// Wall time, nanoseconds.
    pub duration_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Strings by number; number 0 is the empty one.
struct Strings<'s> {
    list: Vec<String>,
    numbers: HashMap<&'s str, i64>,
}

impl<'s> Strings<'s> {
    fn number(&mut self, text: &'s str) -> i64 {
        let next = self.list.len() as i64;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.list.push(text.to_owned());
        }
        number
    }
}

/// `stacks` as a compressed profile with two values per sample: calls, and self time in
/// nanoseconds, which pprof shows unless it is told otherwise. `comment` says where it comes from.
///
/// # Errors
///
/// [`Error::Compress`] where the bytes can't be compressed, which no input is known to cause.
pub fn pprof(stacks: &Stacks, moment: Moment, comment: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = GzBuilder::new().write(Vec::new(), Compression::default());
    bytes.write_all(&message(stacks, moment, comment).encode_to_vec())?;
    Ok(bytes.finish()?)
}

fn message(stacks: &Stacks, moment: Moment, comment: &str) -> ProfileMessage {
    let mut strings = Strings { list: vec![String::new()], numbers: HashMap::from([("", 0)]) };
    let mut value_type =
        |name, unit| ValueType { r#type: strings.number(name), unit: strings.number(unit) };
    let sample_type = vec![value_type("calls", "count"), value_type("self", "nanoseconds")];
    let default_sample_type = sample_type[1].r#type;

    let mut mapping: Vec<Mapping> = Vec::new();
    let mut mappings: HashMap<&str, u64> = HashMap::new();
    let (mut location, mut function) = (Vec::new(), Vec::new());
    for (id, frame) in (1..).zip(&stacks.frames) {
        let file = if frame.path.is_empty() { &frame.library } else { &frame.path };
        let next = mapping.len() as u64 + 1;
        let mapping_id = *mappings.entry(file).or_insert(next);
        if mapping_id == next {
            let (filename, build_id) = (strings.number(file), strings.number(&frame.build_id));
            mapping.push(Mapping { id: next, filename, build_id, has_functions: true });
        }
        let name = strings.number(&frame.function);
        function.push(Function { id, name, system_name: name, filename: strings.number(file) });
        location.push(Location { id, mapping_id, line: vec![Line { function_id: id }] });
    }
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let sample = |(number, node): (usize, &crate::Node)| {
        let path = stacks.path(number);
        Sample {
            // The leaf is the first.
            location_id: path.iter().rev().map(|&frame| u64::from(frame) + 1).collect(),
            value: vec![signed(node.calls), signed(node.self_ns)],
        }
    };
    ProfileMessage {
        sample: stacks.with_values().map(sample).collect(),
        comment: vec![strings.number(comment)],
        sample_type,
        mapping,
        location,
        function,
        string_table: strings.list,
        time_nanos: signed(moment.start_ns),
        duration_nanos: signed(moment.duration_ns),
        default_sample_type,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        let stacks = crate::stacks::sample::stacks();
        let moment = Moment { start_ns: 17, duration_ns: 609 };
        let bytes = pprof(&stacks, moment, "chase").expect("made");
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut plain).expect("gzip");
        let profile = ProfileMessage::decode(&*plain).expect("a profile");
        assert_eq!(profile, message(&stacks, moment, "chase"));
        assert_eq!(profile.string_table[0], "");
        assert_eq!(profile.sample.iter().map(|sample| sample.value[1]).sum::<i64>(), 609);
        assert_eq!(profile.sample[2].location_id, [3, 2, 1]);
        assert_eq!(profile.mapping.len(), 4);
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let stacks = crate::stacks::sample::stacks();
        let make = || pprof(&stacks, Moment::default(), "chase").expect("made");
        assert_eq!(make(), make());
    }
}
