//! From where sampled calls were made.

use super::chunks::Chunk;
use super::pod_at;
use crate::layout::CallerRow;

/// Returns the rows in chunks of such rows, all of one thread.
pub(super) fn callers<'b>(
    bytes: &'b [u8],
    chunks: &'b [Chunk],
) -> impl Iterator<Item = CallerRow> + use<'b> {
    chunks.iter().flat_map(move |chunk| {
        let contents = chunk.contents(bytes);
        let size = size_of::<CallerRow>();
        let rows = (contents.len() / size).min(chunk.count as usize);
        (0..rows)
            .filter_map(move |number| pod_at::<CallerRow>(contents, number * size))
            .filter(|row| row.node_ref != 0 && row.samples > 0)
    })
}
