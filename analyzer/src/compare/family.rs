//! What chance makes of many functions that are compared at once.
//!
//! Of many functions, some always differ from side to side by more than one in twenty does by chance. How far the most different of them are
//! apart by chance is seen by dealing the same runs to the sides otherwise, again and again: a difference counts only if
//! in less than one of twenty deals any function has as large a one (P. H. Westfall, S. S. Young, "Resampling-Based Multiple
//! Testing", 1993: the maximum of a studentised statistic). All functions of a run are dealt together, so that what makes
//! all of them slow at once counts once.

/// Up to so many deals, all are made; of more, so many at random.
const DEALS: usize = 2_000;
/// Added to the error of a difference, as a part of the value: functions whose runs are alike by chance differ by nothing that matters.
const LEAST_ERROR: f64 = 0.01;

/// Time per call of one function, in the runs before and after; `None` where it is not known.
pub(super) struct Row {
    pub(super) before: Vec<Option<f64>>,
    pub(super) after: Vec<Option<f64>>,
}

/// Returns for each row the probability that any of them differs so much by chance. `None` without two values on each side.
pub(super) fn probabilities(rows: &[Row]) -> Vec<Option<f64>> {
    let Some(first) = rows.first() else { return Vec::new() };
    let (before, all) = (first.before.len(), first.before.len() + first.after.len());
    let values: Vec<Vec<Option<f64>>> = rows
        .iter()
        .map(|row| {
            let both = row.before.iter().chain(&row.after);
            both.map(|value| value.filter(|ns| *ns > 0.0).map(f64::ln)).collect()
        })
        .collect();
    let as_made: Vec<bool> = (0..all).map(|run| run < before).collect();
    let seen: Vec<Option<f64>> = values.iter().map(|row| distance(row, &as_made)).collect();
    let largest: Vec<f64> = deals(before, all)
        .iter()
        .map(|deal| values.iter().filter_map(|row| distance(row, deal)).fold(0.0, f64::max))
        .collect();
    let as_large = |distance: f64| {
        let number = largest.iter().filter(|&&most| most >= distance * (1.0 - 1e-9)).count();
        number as f64 / largest.len() as f64
    };
    seen.into_iter().map(|distance| distance.map(as_large)).collect()
}

/// How many times its error the difference of the sides' means is; `deal` says which runs are of the first side.
fn distance(values: &[Option<f64>], deal: &[bool]) -> Option<f64> {
    let side = |first: bool| {
        let of_side = || {
            let both = values.iter().zip(deal).filter(|(_, of_first)| **of_first == first);
            both.filter_map(|(value, _)| *value)
        };
        let number = of_side().count() as f64;
        let mean = of_side().sum::<f64>() / number;
        let squares = of_side().map(|value| (value - mean).powi(2)).sum::<f64>();
        (number >= 2.0).then(|| (mean, squares / (number - 1.0) / number))
    };
    let ((before, of_before), (after, of_after)) = side(true).zip(side(false))?;
    Some((after - before).abs() / ((of_before + of_after).sqrt() + LEAST_ERROR))
}

/// The ways to deal `all` runs to two sides, `before` of them to the first, the one that was made among them.
fn deals(before: usize, all: usize) -> Vec<Vec<bool>> {
    let mut number = 1.0_f64;
    for at in 0..before {
        number = number * (all - at) as f64 / (at + 1) as f64;
    }
    if number <= DEALS as f64 {
        return all_deals(before, all);
    }
    let mut deal: Vec<bool> = (0..all).map(|run| run < before).collect();
    let mut deals = vec![deal.clone()];
    // Knuth's MMIX: the same each time, so that a comparison says the same each time.
    let mut state = 1_u64;
    while deals.len() < DEALS {
        for last in (1..all).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            deal.swap(last, (state >> 33) as usize % (last + 1));
        }
        deals.push(deal.clone());
    }
    deals
}

fn all_deals(before: usize, all: usize) -> Vec<Vec<bool>> {
    if all == 0 {
        return vec![Vec::new()];
    }
    let mut deals = Vec::new();
    for (first, of_rest) in [(true, before.checked_sub(1)), (false, Some(before))] {
        let Some(of_rest) = of_rest.filter(|&of_rest| of_rest < all) else { continue };
        let rest = all_deals(of_rest, all - 1);
        deals.extend(rest.into_iter().map(|rest| [&[first], &rest[..]].concat()));
    }
    deals
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: usize = 60;

    /// Functions whose times differ from run to run by 2 to 20 %, and now and then by far more.
    fn rows(runs: usize, seed: u64) -> Vec<Row> {
        let mut state = seed;
        let mut side = |spread: f64| -> Vec<Option<f64>> {
            (0..runs).map(|_| Some(1_000.0 * noise(&mut state, spread))).collect()
        };
        let spread = |at: usize| 0.02 + 0.18 * at as f64 / FUNCTIONS as f64;
        (0..FUNCTIONS).map(|at| Row { before: side(spread(at)), after: side(spread(at)) }).collect()
    }

    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12_345);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn noise(state: &mut u64, spread: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| uniform(state)).sum::<f64>() - 6.0;
        let busy = if uniform(state) < 0.05 { 2.0 } else { 1.0 };
        busy * (spread * sum).exp()
    }

    fn least(rows: &[Row]) -> f64 {
        probabilities(rows).into_iter().flatten().fold(1.0, f64::min)
    }

    #[test]
    fn of_many_functions_of_identical_runs_rarely_one_seems_changed() {
        for runs in [4, 5] {
            let seeds = 1..=100_u64;
            let alarms = seeds.filter(|&seed| least(&rows(runs, seed * 7_919)) < 0.05).count();
            assert!(alarms <= 10, "{alarms} of 100 comparisons of {runs} with {runs}");
        }
    }

    #[test]
    fn one_that_is_slower_is_found_among_many() {
        for (runs, factor) in [(4, 2.0), (5, 1.5), (10, 1.2)] {
            let found = (1..=20_u64).filter(|&seed| {
                let mut rows = rows(runs, seed * 104_729);
                let mut state = seed;
                let Row { before, after } = &mut rows[0];
                for (side, factor) in [(before, 1.0), (after, factor)] {
                    // Without what is rare.
                    let sum = |state: &mut u64| (0..12).map(|_| uniform(state)).sum::<f64>() - 6.0;
                    side.fill_with(|| Some(1_000.0 * factor * (0.02 * sum(&mut state)).exp()));
                }
                probabilities(&rows)[0].is_some_and(|p| p < 0.05)
            });
            let found = found.count();
            assert!(found >= 15, "{found} of 20 with {runs} runs, {factor} times as slow");
        }
    }

    #[test]
    fn all_deals_are_made_or_some() {
        assert_eq!(deals(4, 8).len(), 70);
        assert_eq!(deals(10, 20).len(), DEALS);
        let is_right = |deal: &Vec<bool>| deal.iter().filter(|first| **first).count() == 10;
        assert!(deals(10, 20).iter().all(is_right));
        assert_eq!(probabilities(&[]), []);
        let one = Row { before: vec![Some(1.0)], after: vec![None, Some(2.0)] };
        assert_eq!(probabilities(&[one]), [None]);
    }
}
