// Maps and vectors that grow and go.
// cause: none
use std::collections::BTreeMap;

fn main() {
    let mut sum = 0_u64;
    for round in 0..30_u64 {
        let mut map = BTreeMap::new();
        for key in 0..4000_u64 {
            map.insert((key * 7919 + round) % 4001, vec![round; 4]);
        }
        sum += map.values().map(|value| value[0]).sum::<u64>();
    }
    println!("{sum}");
}
