//! Time that a virtual machine's host takes away. Nobody inside sees which call it was in.

use std::fs;

use crate::need;

/// The share of processor time from which on times prove nothing.
const MUCH: f64 = 0.02;

/// What was taken since it was made.
pub struct Steal(Option<[f64; 2]>);

impl Steal {
    /// Begins to watch.
    #[must_use]
    pub fn watch() -> Self {
        Self(taken_of_all())
    }

    /// The share of the processors' time that was taken; 0 where the system does not tell.
    #[must_use]
    pub fn share(&self) -> f64 {
        match (self.0, taken_of_all()) {
            (Some([taken, all]), Some([taken_now, all_now])) if all_now > all => {
                (taken_now - taken) / (all_now - all)
            }
            _ => 0.0,
        }
    }

    /// Ends a test whose `failures` are about times: it has failed, unless so much time was taken from
    /// the machine that they prove nothing.
    ///
    /// # Panics
    ///
    /// If it has failed.
    pub fn judge(&self, what: &str, failures: &[String]) {
        let share = self.share();
        assert!(share > MUCH, "{what}:\n{}", failures.join("\n"));
        let reason = format!("the host took {:.0} % of the processors' time", share * 100.0);
        need::skip(what, &reason);
    }
}

/// Time taken by the host, and all of it.
fn taken_of_all() -> Option<[f64; 2]> {
    const STEAL: usize = 7;
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // What guests of ours take is in the first two already.
    Some([*fields.get(STEAL)?, fields.iter().take(STEAL + 1).sum()])
}
