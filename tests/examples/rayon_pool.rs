//! A pool of rayon's, whose threads have a function of that crate. Built by cargo with the tests.

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let sum: u64 = pool.install(|| {
        use rayon::prelude::*;
        (0..100_000_u64).into_par_iter().map(|n| n * n % 7).sum()
    });
    // Without this, the process may end before its second thread has begun.
    pool.broadcast(|_| ());
    // Written once, and not by a macro: a test compares it.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("{sum}\n").as_bytes());
}
