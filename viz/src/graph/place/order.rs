//! The order of the stops within each layer, so that few arrows cross.

use super::Stop;

/// How often layers are sorted by the places of their neighbours.
const SWEEPS: usize = 16;

/// The layers, each with its stops in order.
pub(super) fn order(stops: &mut [Stop]) -> Vec<Vec<usize>> {
    let layers = stops.iter().map(|stop| stop.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (at, stop) in stops.iter().enumerate() {
        rows[stop.layer].push(at);
    }
    let mut best = (crossings(stops, &rows), rows.clone());
    for sweep in 0..SWEEPS {
        let forwards = sweep % 2 == 0;
        let numbers: Vec<usize> =
            if forwards { (0..layers).collect() } else { (0..layers).rev().collect() };
        for number in numbers {
            let place = places(stops, &rows);
            let key = |&stop: &usize| {
                let near = if forwards { &stops[stop].before } else { &stops[stop].after };
                if near.is_empty() {
                    return place[stop];
                }
                near.iter().map(|&other| place[other]).sum::<f64>() / near.len() as f64
            };
            rows[number].sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
        let now = crossings(stops, &rows);
        if now < best.0 {
            best = (now, rows.clone());
        }
    }
    best.1
}

/// Where each stop is in its row: from 0 to 1.
fn places(stops: &[Stop], rows: &[Vec<usize>]) -> Vec<f64> {
    let mut places = vec![0.0; stops.len()];
    for row in rows {
        for (number, &stop) in row.iter().enumerate() {
            places[stop] = (number as f64 + 0.5) / row.len() as f64;
        }
    }
    places
}

/// How many pairs of arrows cross between two layers.
fn crossings(stops: &[Stop], rows: &[Vec<usize>]) -> usize {
    let place = places(stops, rows);
    let mut crossings = 0;
    for row in rows {
        let ends: Vec<(f64, f64)> = row
            .iter()
            .flat_map(|&stop| stops[stop].after.iter().map(move |&next| (stop, next)))
            .map(|(stop, next)| (place[stop], place[next]))
            .collect();
        for (number, a) in ends.iter().enumerate() {
            let crossed = |b: &&(f64, f64)| (a.0 - b.0) * (a.1 - b.1) < 0.0;
            crossings += ends[number + 1..].iter().filter(crossed).count();
        }
    }
    crossings
}
