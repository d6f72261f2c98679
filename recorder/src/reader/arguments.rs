//! What arguments of calls were.

use super::chunks::Chunk;
use super::pod_at;
use crate::layout::{
    ARGUMENT_BUCKETS, ARGUMENT_HOST, ARGUMENT_PATH, ARGUMENT_SHORT_PAIRS, ArgumentHead,
    ArgumentPair, ArgumentRow, ShortArgumentRow, UNIT, argument_bucket,
};

/// What one argument was in the timed calls of one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The context's node.
    pub node_ref: u32,
    /// `ARGUMENT_*`: what the value is, and in which unit.
    pub meaning: u16,
    /// Timed calls.
    pub calls: u64,
    /// Calls that they stand for.
    pub weight: u64,
    /// Sum of the values, each with its weight, without negative ones.
    pub sum: u64,
    /// The largest.
    pub max: u64,
    /// Calls whose value was negative, with their weight.
    pub negative: u64,
    /// Calls by [`argument_bucket`], with their weight, without those whose value was negative.
    pub buckets: [u64; ARGUMENT_BUCKETS],
    /// Some of the calls that have returned, each with the same chance, about.
    pub pairs: Vec<ArgumentPair>,
}

/// The arguments in these chunks, all of one thread.
pub(super) fn arguments<'b>(
    bytes: &'b [u8],
    chunks: &'b [Chunk],
) -> impl Iterator<Item = Arguments> + use<'b> {
    rows(bytes, chunks)
        .filter(|(head, _)| head.longer_ref == 0 && head.node_ref != 0 && !is_text(head.meaning))
        .filter_map(|(head, contents)| arguments_of(contents, head))
}

/// The rows of these chunks: each one's head, and what begins with it. What makes no sense ends its chunk.
pub(super) fn rows<'b>(
    bytes: &'b [u8],
    chunks: &'b [Chunk],
) -> impl Iterator<Item = (ArgumentHead, &'b [u8])> + use<'b> {
    chunks.iter().flat_map(move |chunk| {
        let contents = chunk.contents(bytes);
        let mut rest = &contents[..contents.len().min(chunk.count as usize * UNIT)];
        std::iter::from_fn(move || {
            let head: ArgumentHead = pod_at(rest, 0)?;
            if !matches!(head.units, ArgumentHead::SHORT | ArgumentHead::LONG) {
                return None;
            }
            let row = rest;
            rest = rest.get(usize::from(head.units) * UNIT..).unwrap_or_default();
            Some((head, row))
        })
    })
}

/// Whether a row is of calls with a text.
pub(super) fn is_text(meaning: u16) -> bool {
    matches!(meaning, ARGUMENT_PATH | ARGUMENT_HOST)
}

fn arguments_of(contents: &[u8], head: ArgumentHead) -> Option<Arguments> {
    let ArgumentHead { node_ref, meaning, calls, weight, sum, max, negative, .. } = head;
    let (buckets, pairs) = if head.units == ArgumentHead::LONG {
        let row: ArgumentRow = pod_at(contents, 0)?;
        (row.buckets, row.pairs.to_vec())
    } else {
        let row: ShortArgumentRow = pod_at(contents, 0)?;
        let mut buckets = [0; ARGUMENT_BUCKETS];
        let used = calls.saturating_sub(negative).min(ARGUMENT_SHORT_PAIRS as u64) as usize;
        for pair in &row.pairs[..used] {
            buckets[argument_bucket(pair.value)] += 1;
        }
        (buckets, row.pairs.to_vec())
    };
    let pairs = pairs.into_iter().filter(|pair| pair.ticks > 0).collect();
    Some(Arguments { node_ref, meaning, calls, weight, sum, max, negative, buckets, pairs })
}
