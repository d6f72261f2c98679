//! What texts long calls were passed: paths, names of hosts.

use std::borrow::Cow;

use super::arguments::{is_text, rows};
use super::chunks::Chunk;
use super::pod_at;
use crate::layout::{TEXT_UNITS, TextRow, UNIT};

/// The long calls of one context that were passed one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'b> {
    /// The context's node.
    pub node_ref: u32,
    /// The text; of a long one, `…` and its end. `None` for all texts of the context that are not kept.
    pub text: Option<Cow<'b, str>>,
    /// Calls that took long.
    pub calls: u64,
    /// Their total time in ticks, including the hook's inside cost.
    pub ticks: u64,
    /// The longest; 0 if unknown.
    pub max_ticks: u64,
}

/// Returns the texts in chunks of rows of texts, all of one thread.
pub(super) fn texts<'b>(
    bytes: &'b [u8],
    chunks: &'b [Chunk],
) -> impl Iterator<Item = Text<'b>> + use<'b> {
    let size = TEXT_UNITS * UNIT;
    chunks.iter().flat_map(move |chunk| {
        let contents = chunk.contents(bytes);
        let rows = contents.len().min(chunk.count as usize * UNIT) / size;
        (0..rows).filter_map(move |number| {
            let contents = contents.get(number * size..(number + 1) * size)?;
            let row: TextRow = pod_at(contents, 0)?;
            let len = usize::from(row.len);
            let start = size - row.text.len();
            let text = contents.get(start..start + len).filter(|text| !text.is_empty())?;
            let text = String::from_utf8_lossy(text);
            let text = if row.is_cut == 0 { text } else { Cow::Owned(format!("…{text}")) };
            let TextRow { node_ref, calls, ticks, max_ticks, .. } = row;
            (node_ref != 0).then_some(Text { node_ref, text: Some(text), calls, ticks, max_ticks })
        })
    })
}

/// Returns what is known of texts that have no row, from chunks of rows of arguments of one thread.
pub(super) fn others<'b>(
    bytes: &'b [u8],
    chunks: &'b [Chunk],
) -> impl Iterator<Item = Text<'b>> + use<'b> {
    rows(bytes, chunks)
        .filter(|(head, _)| is_text(head.meaning) && head.negative > 0 && head.node_ref != 0)
        .map(|(head, _)| Text {
            node_ref: head.node_ref,
            text: None,
            calls: head.negative,
            ticks: head.sum,
            max_ticks: 0,
        })
}
