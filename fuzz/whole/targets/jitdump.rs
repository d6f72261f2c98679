//! Reads any bytes as a dump of generated code, and what it makes of them as a list of names.
#![no_main]

use chase_companion::jitdump::write_names;
use chase_damage::Bounded;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Bounded<{ 16 << 20 }> = Bounded;

fuzz_target!(|bytes: &[u8]| {
    let mut list = Vec::new();
    write_names(&mut &*bytes, &mut list).expect("memory can be read and written");
    let list = String::from_utf8(list).expect("text");
    // Each function takes more bytes of a dump than its line has beside its name, and a name may come again by moves.
    assert!(list.lines().all(|line| line.len() < 3 * 4096 + 40));
    assert!(list.lines().count() <= bytes.len() / 56 + 1);
});
