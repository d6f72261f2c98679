//! Records a thread's creation, so that reports can tell which of the program's functions the thread runs.
//!
//! A language runtime has the same start routine for all its threads; they differ in the object that the argument
//! points to. That object is valid: the application has just passed it, and the new thread has not run yet. Of its
//! first words, those that point into loaded objects are copied; the reader of the recording interprets them with the
//! symbols at hand. The other words are the application's private data. Only Python's functions have names that are
//! in no file, so these are read here ([`super::python`]).

use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{
    ORIGIN_COMPLETE, ORIGIN_INNER_WORDS, ORIGIN_SMALL, ORIGIN_TEXT, OriginRecord,
};

use super::python;
use crate::readable::Reader;
use crate::thread::Thread;
use crate::{loading, recording};
use chase_logic::text::Text;

/// A thread that is about to be created.
pub(crate) struct Plan<'a> {
    pub(crate) routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: &'a Thread,
    /// Stack pointer at the call.
    pub(crate) sp: usize,
    /// The `pthread_attr_t`, or null.
    pub(crate) attributes: usize,
}

/// Describes a thread that is about to be created. Signals are blocked.
pub(super) fn describe(plan: &Plan<'_>, record: &mut OriginRecord) {
    *record = OriginRecord::EMPTY;
    if recording::stopped() {
        return;
    }
    let known_site = usize::from(plan.creation_site != 0);
    if let Some(first) = record.stack.first_mut().filter(|_| known_site == 1) {
        *first = plan.creation_site as u64;
    }
    let around = record.stack.get_mut(known_site..).unwrap_or_default();
    record.stack_len = (known_site + plan.creator.callers(plan.sp, around)) as u16;
    let Some(mut reader) = Reader::new() else { return };
    // APR's threads have their data behind their pool and their handle.
    let of_apr =
        loading::place_of(plan.routine).is_some_and(|it| it.name.starts_with(b"libapr-1."));
    read_words(&mut reader, plan.argument, if of_apr { 2 } else { 1 }, record);
    let mut text = Text::<{ ORIGIN_TEXT + 1 }>::new();
    if let Some(types) = loading::with_image(plan.routine, python::types_in).flatten() {
        chase_logic::python::name(&mut reader, &types, &record.inner_words, &mut text);
    }
    keep_addresses(record);
    for (place, &byte) in record.text.iter_mut().zip(text.as_bytes()) {
        *place = byte;
    }
    record.text_len = text.as_bytes().len() as u16;
}

/// Records what a thread was given that was found with this argument. That may be the application's no more: the
/// reader believes what it points to where the runtime is known to keep it. Signals are blocked.
pub(crate) fn note_found(argument: usize, thread: &Thread) {
    if argument == 0 || thread.is_left_out() {
        return;
    }
    let mut record = OriginRecord::EMPTY;
    let Some(mut reader) = Reader::new() else { return };
    read_words(&mut reader, argument, 1, &mut record);
    keep_addresses(&mut record);
    write(&record, thread.index());
}

/// Reads what `argument` points to, and what the word at `place` there does.
fn read_words(reader: &mut Reader, argument: usize, place: usize, record: &mut OriginRecord) {
    record.word_count = reader.words(argument, &mut record.words);
    if let Some(&pointer) = record.words.get(place) {
        let mut words = [0; ORIGIN_INNER_WORDS];
        record.inner_word_count = reader.words(pointer as usize, &mut words);
        record.inner_words = words;
    }
}

fn keep_addresses(record: &mut OriginRecord) {
    loading::keep_addresses(&mut record.words, ORIGIN_SMALL);
    loading::keep_addresses(&mut record.inner_words, ORIGIN_SMALL);
}

/// Writes that description to the recording, as that of thread number `thread`. Signals are blocked.
pub(super) fn write(noted: &OriginRecord, thread: u32) {
    if noted.stack_len == 0 && noted.word_count == 0 {
        return;
    }
    let Some(record) = recording::origin_record() else { return };
    // SAFETY: the record was given to this thread; `state`, stored last, makes it readable.
    unsafe {
        *record = OriginRecord { state: 0, thread, ..*noted };
        AtomicU32::from_ptr(&raw mut (*record).state).store(ORIGIN_COMPLETE, Ordering::Release);
    }
}
