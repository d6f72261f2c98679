//! What was seen of the creation of threads.

use std::borrow::Cow;

use super::chunks::Chunk;
use super::{pod_at, text};
use crate::layout::{ORIGIN_COMPLETE, OriginRecord, UNIT};

/// Where the records are, by number of the thread.
#[derive(Debug, Default)]
pub(super) struct OriginIndex {
    places: Vec<(u32, usize)>,
}

impl OriginIndex {
    pub(super) fn new<'c>(bytes: &[u8], chunks: impl Iterator<Item = &'c Chunk>) -> Self {
        let mut places = Vec::new();
        for chunk in chunks {
            let end = chunk.offset + chunk.len;
            for offset in (chunk.offset + UNIT..end).step_by(size_of::<OriginRecord>()) {
                // The first two fields.
                let Some([state, thread]) = pod_at::<[u32; 2]>(bytes, offset) else { break };
                if state == ORIGIN_COMPLETE && offset + size_of::<OriginRecord>() <= end {
                    places.push((thread, offset));
                }
            }
        }
        places.sort_unstable();
        places.dedup_by_key(|place| place.0);
        Self { places }
    }

    pub(super) fn get(&self, bytes: &[u8], thread: u32) -> Option<Origin> {
        let at = self.places.binary_search_by_key(&thread, |place| place.0).ok()?;
        Some(Origin { record: pod_at(bytes, self.places[at].1)? })
    }
}

/// What was seen of a thread's creation. Addresses are those of the process (avma).
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    record: OriginRecord,
}

impl Origin {
    /// The record as it stands in the file.
    #[must_use]
    pub fn record(&self) -> &OriginRecord {
        &self.record
    }

    /// Return addresses, innermost first: of the call that created the thread, then of the library
    /// calls that it was made in.
    #[must_use]
    pub fn stack(&self) -> &[u64] {
        up_to(&self.record.stack, self.record.stack_len)
    }

    /// What the start routine's argument pointed to; empty if it was no address. Words that are no
    /// addresses in objects are 0.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        up_to(&self.record.words, self.record.word_count)
    }

    /// What the second of the [`words`](Self::words) pointed to; empty if it was no address.
    #[must_use]
    pub fn inner_words(&self) -> &[u64] {
        up_to(&self.record.inner_words, self.record.inner_word_count)
    }

    /// What the Python interpreter runs in the thread: `module.qualname`.
    #[must_use]
    pub fn python_function(&self) -> Option<Cow<'_, str>> {
        Some(text(self.text())).filter(|name| !name.is_empty())
    }

    /// Name of the interpreter's `Thread` object.
    #[must_use]
    pub fn python_thread_name(&self) -> Option<Cow<'_, str>> {
        let at = self.text().iter().position(|&byte| byte == 0)?;
        Some(text(&self.text()[at + 1..])).filter(|name| !name.is_empty())
    }

    fn text(&self) -> &[u8] {
        up_to(&self.record.text, self.record.text_len)
    }
}

fn up_to<T>(all: &[T], count: u16) -> &[T] {
    &all[..all.len().min(count.into())]
}
