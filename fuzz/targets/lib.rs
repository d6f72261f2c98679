//! What the fuzz targets share: files for readers that want a path, and a limit to what is allocated.

use std::path::PathBuf;

use chase_damage::Bounded;

/// The most that one allocation may have: far less than what a file could say that it needs.
const LARGEST: usize = 256 << 20;

/// What all targets allocate by.
pub type Limited = Bounded<LARGEST>;
/// The same as a value.
pub const LIMITED: Limited = Bounded;

/// A file of this name with these bytes, where temporary files are.
///
/// # Panics
///
/// If it can't be written.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}
