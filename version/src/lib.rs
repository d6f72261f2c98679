//! The version that programs and recordings state. Only what is linked into programs depends on it: it changes with each commit.
#![no_std]

/// `0.1.0 (d1f70b7aa3c1)` for a package that was made of this commit, with a plus after it where files differed from the commit;
/// `0.1.0 (d1f70b7aa3c1 or later)` for what `cargo build --release` makes in a repository; else the number alone.
pub const VERSION: &str = env!("CHASE_VERSION");
