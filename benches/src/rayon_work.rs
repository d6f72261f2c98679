//! Work on four threads of rayon's, which is measured as other programs are: sorting texts, and counting in parallel.

use std::io::Write;
use std::process::ExitCode;

use rayon::prelude::*;

const NUMBERS: u64 = 3_000_000;

/// Does it, and prints what came out.
pub(crate) fn run() -> ExitCode {
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(4).build() else {
        return ExitCode::FAILURE;
    };
    let (first, letters) = pool.install(|| {
        let text = |number: u64| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut texts: Vec<String> = (0..NUMBERS).into_par_iter().map(text).collect();
        texts.par_sort_unstable();
        let letters = |text: &String| text.bytes().filter(u8::is_ascii_alphabetic).count();
        (texts.first().cloned().unwrap_or_default(), texts.par_iter().map(letters).sum::<usize>())
    });
    // Nobody is left to tell if stdout is closed.
    let _ = writeln!(std::io::stdout(), "{first} {letters}");
    ExitCode::SUCCESS
}
