//! Finding the chunks.

use super::{Problem, pod_at};
use crate::layout::{CHUNK_MAGIC, COMMITTED, ChunkHeader, PAGE, UNIT};

/// A chunk whose contents may be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) offset: usize,
    /// Bytes that are there, the header included; at least [`UNIT`].
    pub(super) len: usize,
    pub(super) kind: u32,
    pub(super) owner: u32,
    pub(super) count: u32,
}

impl Chunk {
    pub(super) fn contents<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.offset + UNIT..self.offset + self.len]
    }
}

/// All committed chunks up to `end`. Where none begins, the search goes on at the next page.
pub(super) fn scan(bytes: &[u8], end: usize, problems: &mut Vec<Problem>) -> Vec<Chunk> {
    let bytes = &bytes[..end];
    let mut chunks = Vec::new();
    let mut offset = PAGE;
    while offset < end {
        let Some(header) = header_at(bytes, offset) else {
            let next = next_chunk(bytes, offset);
            // A tail too short for a header is where the file was cut, which is known already.
            if end - offset >= UNIT {
                let (offset, len) = (offset as u64, (next - offset) as u64);
                problems.push(Problem::NotAChunk { offset, len });
            }
            offset = next;
            continue;
        };
        let available = end - offset;
        let whole = usize::try_from(header.len)
            .ok()
            .filter(|&len| len > 0 && len.is_multiple_of(PAGE) && len <= available);
        let len = whole.unwrap_or_else(|| {
            let len = next_chunk(bytes, offset) - offset;
            problems.push(Problem::ChunkLength {
                offset: offset as u64,
                found: header.len,
                available: len as u64,
            });
            len
        });
        if header.state == COMMITTED {
            let ChunkHeader { kind, owner, count, .. } = header;
            chunks.push(Chunk { offset, len, kind, owner, count });
        }
        offset += len;
    }
    chunks
}

fn header_at(bytes: &[u8], offset: usize) -> Option<ChunkHeader> {
    pod_at::<ChunkHeader>(bytes, offset).filter(|header| header.magic == CHUNK_MAGIC)
}

/// Where the next chunk after the page at `offset` begins, or the end.
fn next_chunk(bytes: &[u8], offset: usize) -> usize {
    (offset + PAGE..bytes.len())
        .step_by(PAGE)
        .find(|&next| header_at(bytes, next).is_some())
        .unwrap_or(bytes.len())
}
