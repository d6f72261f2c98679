//! Takes any bytes for a list of generated functions, and each of its words for a mangled name.
#![no_main]

use chase_fuzz::{LIMITED, Limited, file};
use chase_symbols::{PerfMap, demangle, shorten};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

fuzz_target!(|bytes: &[u8]| {
    let map = PerfMap::read(&file("perf-1.map", bytes)).expect("read");
    for address in [0, 0x10, 0x1000, 0x1010, u64::MAX] {
        assert!(map.name(address).is_none_or(|name| name.len() <= 3 * bytes.len()));
    }
    for name in String::from_utf8_lossy(bytes).split_whitespace() {
        let whole = demangle(name);
        assert!(shorten(&whole).len() <= 2 * whole.len() + 16);
    }
});
