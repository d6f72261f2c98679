//! Reads any bytes, and walks all that they gave.
#![no_main]

use chase_fuzz::{LIMITED, Limited};
use chase_recorder::reader::{Histogram, Recording};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::parse(bytes) else { return };
    for (key, value) in recording.meta() {
        assert!(key.len() + value.len() <= 3 * bytes.len());
    }
    for object in recording.objects() {
        let _ = (object.path(), object.soname(), object.build_id());
        object.segments().for_each(drop);
        for slot in object.slots() {
            assert!(slot.name().len() + slot.version().len() <= 6 * bytes.len());
        }
        assert!(recording.object(object.record().id).is_some());
    }
    let mut contexts = 0;
    let mut sum = Histogram::default();
    for thread in recording.threads() {
        let _ = thread.name();
        if let Some(origin) = thread.origin() {
            let _ = (origin.stack(), origin.words(), origin.inner_words());
            let _ = (origin.python_function(), origin.python_thread_name());
        }
        for (context, number) in thread.contexts().zip(0..) {
            assert_eq!(context.number, number);
            assert!(context.caller.is_none_or(|caller| caller < number));
            assert!(context.scope <= number);
            let _ = recording.slot(context.slot()).map(|slot| slot.class());
            assert!(context.samples().is_none() || context.is_sampled());
            let _ = context.calls();
            sum.merge(&context.histogram());
            contexts += 1;
        }
    }
    assert_eq!(contexts, recording.context_count());
    assert!(contexts * 128 <= bytes.len());
    for q in [0.0, 0.5, 1.0] {
        assert!(sum.quantile(q).is_none_or(|ticks| ticks <= sum.max()));
    }
    for problem in recording.problems() {
        assert!(!problem.to_string().is_empty());
    }
    // One for how long the file is, two for each chunk, one for each record or row within.
    assert!(recording.problems().len() <= 1 + bytes.len() / 64);
});
