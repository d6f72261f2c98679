//! Makes tables of samples.

use std::collections::{BTreeMap, HashMap};

use super::collect::{Collected, Sample, ThreadKey, ThreadTime};
use super::{OnCpu, OnCpuAddress, OnCpuObject, OnCpuOfThread};
use crate::clock::Ns;
use crate::contexts::Contexts;
use crate::names::Names;
use crate::sampled::{OnCpuOfApi, SampledTime};

/// Threads with fewer samples than this are pooled.
const FEW: u64 = 10;
/// The number of standard deviations of a 95 % interval.
const Z: f64 = 1.96;

/// Sums of samples, and of the time that they stand for.
#[derive(Clone, Copy, Default)]
struct Sum {
    samples: u64,
    kernel_samples: u64,
    kernel_ns: f64,
    ns: f64,
}

impl Sum {
    fn add(&mut self, sample: &Sample, weight: Weight) {
        self.samples = self.samples.saturating_add(sample.user + sample.kernel);
        self.kernel_samples = self.kernel_samples.saturating_add(sample.kernel);
        let kernel_ns = sample.kernel as f64 * weight.kernel_ns;
        self.ns += sample.user as f64 * weight.user_ns + kernel_ns;
        self.kernel_ns += kernel_ns;
    }

    fn time(self, all: Sum, user_only: bool) -> SampledTime {
        SampledTime {
            samples: self.samples,
            on_cpu_ns: Ns::from_f64(self.ns),
            on_cpu_kernel_ns: (!user_only).then(|| Ns::from_f64(self.kernel_ns)),
            on_cpu_ci95_ns: Ns::from_f64(wilson(self.samples, all.samples) * all.ns),
        }
    }
}

/// Returns half the width of Wilson's 95 % interval of the share `k` of `n`.
pub(super) fn wilson(k: u64, n: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let (p, n) = (k as f64 / n as f64, n as f64);
    Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n)
}

/// Time on the CPU, by numbers of the collected tables.
pub(crate) struct ByNumber {
    /// The split of each API.
    pub(crate) apis: Vec<OnCpuOfApi>,
    /// The time of each merged context, without calls inside it, in ns.
    pub(crate) contexts: Vec<f64>,
}

/// Returns the tables, and what other tables need.
pub(crate) fn tables_of(
    collected: &Collected,
    names: &Names,
    contexts: &Contexts,
) -> (OnCpu, ByNumber) {
    let weights = weights(collected);
    let user_only = collected.user_only;
    let mut all = Sum::default();
    let mut watching_ns = 0.0;
    let mut by_object: HashMap<u32, Sum> = HashMap::new();
    let mut by_address: HashMap<(u32, u64, Option<u32>), (OnCpuAddress, Sum)> = HashMap::new();
    let mut of_apis = vec![[Sum::default(); PARTS]; names.apis.len()];
    let mut of_contexts = vec![Sum::default(); contexts.list.len()];
    let mut outside: BTreeMap<u32, Sum> = BTreeMap::new();
    let mut of_threads: BTreeMap<(u32, u32, u32, Option<u32>), Sum> = BTreeMap::new();
    for sample in &collected.samples {
        let weight = weights.get(&sample.thread).copied().unwrap_or_default();
        all.add(sample, weight);
        watching_ns += sample.kernel as f64 * (weight.user_ns - weight.kernel_ns);
        by_object.entry(sample.object).or_default().add(sample, weight);
        let thread = collected.threads.get(&sample.thread).and_then(|time| time.thread);
        let context = contexts.list.get(sample.place as usize);
        let api = context.map(|context| names.imports[context.import as usize].api);
        if let Some(thread) = thread {
            let key = (sample.thread.0, thread, sample.object, api);
            of_threads.entry(key).or_default().add(sample, weight);
        }
        let address = sample.address;
        // Code in no file differs between processes.
        let process = address.svma.is_none().then_some(sample.thread.0);
        let key = (sample.object, address.svma.unwrap_or(address.avma), process);
        let row = OnCpuAddress {
            address,
            object: sample.object,
            process: sample.thread.0 as usize,
            time: SampledTime::default(),
        };
        by_address.entry(key).or_insert((row, Sum::default())).1.add(sample, weight);
        if let Some(api) = api {
            let part = part_of(sample.object, names.apis[api as usize].object, names);
            of_apis[api as usize][part].add(sample, weight);
            of_contexts[sample.place as usize].add(sample, weight);
        } else {
            outside.entry(sample.object).or_default().add(sample, weight);
        }
    }
    let mut objects: Vec<_> = by_object
        .into_iter()
        .map(|(object, sum)| OnCpuObject {
            object,
            name: names.objects[object as usize].name.clone(),
            path: names.objects[object as usize].path.clone(),
            time: sum.time(all, user_only),
        })
        .collect();
    objects.sort_by(|a, b| (b.time.on_cpu_ns, &a.path).cmp(&(a.time.on_cpu_ns, &b.path)));
    let mut addresses: Vec<_> = by_address
        .into_values()
        .map(|(row, sum)| OnCpuAddress { time: sum.time(all, user_only), ..row })
        .collect();
    addresses
        .sort_by_key(|row| (std::cmp::Reverse(row.time.on_cpu_ns), row.object, row.address.avma));
    let on_cpu = collected.threads.values().map(|time| time.on_cpu_ns as f64).sum::<f64>();
    let on_cpu = OnCpu {
        sample_hz: collected.sample_hz,
        samples: all.samples,
        user_only,
        lost_samples: collected.lost_samples,
        on_cpu_ns: Ns::from_f64(on_cpu),
        not_sampled_ns: Ns::from_f64((on_cpu - all.ns - watching_ns).max(0.0)),
        watching_ns: Ns::from_f64(watching_ns),
        objects,
        addresses,
        outside: outside.into_iter().map(|(object, sum)| (object, Ns::from_f64(sum.ns))).collect(),
        of_threads: of_threads
            .into_iter()
            .map(|((process, thread, object, api), sum)| OnCpuOfThread {
                process,
                thread,
                object,
                api,
                ns: Ns::from_f64(sum.ns),
                kernel_ns: Ns::from_f64(sum.kernel_ns),
                samples: sum.samples,
                kernel_samples: sum.kernel_samples,
            })
            .collect(),
    };
    let by_number = ByNumber {
        apis: of_apis.into_iter().map(|parts| of_api(parts, all, user_only)).collect(),
        contexts: of_contexts.into_iter().map(|sum| sum.ns).collect(),
    };
    (on_cpu, by_number)
}

impl OnCpu {
    /// Gives APIs the numbers of their table, which is sorted later.
    pub(crate) fn renumber_apis(&mut self, new_api: &[u32]) {
        for row in &mut self.of_threads {
            row.api = row.api.map(|api| new_api[api as usize]);
        }
    }
}

/// The split of an API: in the library itself, in an application, elsewhere.
const PARTS: usize = 3;

fn part_of(object: u32, library: u32, names: &Names) -> usize {
    if object == library {
        0
    } else if names.objects[object as usize].executable {
        1
    } else {
        2
    }
}

fn of_api(parts: [Sum; PARTS], all: Sum, user_only: bool) -> OnCpuOfApi {
    let [inside, application, elsewhere] = parts.map(|sum| Ns::from_f64(sum.ns));
    let sum = parts.iter().fold(Sum::default(), |sum, part| Sum {
        kernel_samples: sum.kernel_samples.saturating_add(part.kernel_samples),
        samples: sum.samples.saturating_add(part.samples),
        kernel_ns: sum.kernel_ns + part.kernel_ns,
        ns: sum.ns + part.ns,
    });
    OnCpuOfApi {
        time: sum.time(all, user_only),
        on_cpu_inside_ns: inside,
        on_cpu_application_ns: application,
        on_cpu_elsewhere_ns: elsewhere,
    }
}

/// What a sample stands for, in ns.
#[derive(Clone, Copy, Default)]
struct Weight {
    user_ns: f64,
    /// Reduced by the overhead of observing system calls.
    kernel_ns: f64,
}

impl Weight {
    fn from_time(time: &ThreadTime) -> Self {
        if time.samples == 0 {
            return Self::default();
        }
        let each_ns = time.on_cpu_ns as f64 / time.samples as f64;
        let each_ns = if time.most_ns == 0 { each_ns } else { each_ns.min(time.most_ns as f64) };
        let in_kernel_ns = each_ns * time.kernel_samples as f64;
        let own = if time.watching_ns == 0 {
            0.0
        } else {
            // With few samples, the time in the kernel may be underestimated.
            (time.watching_ns as f64 / in_kernel_ns).min(1.0)
        };
        Self { user_ns: each_ns, kernel_ns: each_ns * (1.0 - own) }
    }
}

/// Returns what a sample of each thread stands for.
fn weights(collected: &Collected) -> HashMap<ThreadKey, Weight> {
    let mut few: HashMap<u32, ThreadTime> = HashMap::new();
    for ((process, _), time) in &collected.threads {
        if time.samples < FEW {
            let all = few.entry(*process).or_default();
            all.on_cpu_ns = all.on_cpu_ns.saturating_add(time.on_cpu_ns);
            all.samples += time.samples;
            all.most_ns = all.most_ns.max(time.most_ns);
            all.kernel_samples += time.kernel_samples;
            all.watching_ns = all.watching_ns.saturating_add(time.watching_ns);
        }
    }
    let weight = |(&key, time): (&ThreadKey, &ThreadTime)| {
        (key, Weight::from_time(if time.samples < FEW { &few[&key.0] } else { time }))
    };
    collected.threads.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::{ThreadTime, Weight, wilson};

    #[test]
    fn intervals_are_wilsons() {
        // 10 of 100: 0.0552 to 0.1744.
        assert!((wilson(10, 100) - (0.1744 - 0.0552) / 2.0).abs() < 1e-4);
        assert!(wilson(0, 100) > 0.0 && wilson(100, 100) > 0.0);
        assert!(wilson(0, 0) == 0.0);
    }

    #[test]
    fn what_watching_took_is_taken_off_the_kernel_part_and_no_more_than_all_of_it() {
        let time = ThreadTime {
            on_cpu_ns: 1_000,
            samples: 100,
            kernel_samples: 40,
            watching_ns: 100,
            ..ThreadTime::default()
        };
        let weight = Weight::from_time(&time);
        assert!((weight.user_ns - 10.0).abs() < 1e-9 && (weight.kernel_ns - 7.5).abs() < 1e-9);
        let weight = Weight::from_time(&ThreadTime { watching_ns: 500, ..time });
        assert!((weight.user_ns - 10.0).abs() < 1e-9 && weight.kernel_ns.abs() < 1e-9);
        // None was seen there.
        let weight = Weight::from_time(&ThreadTime { kernel_samples: 0, ..time });
        assert!(weight.kernel_ns.abs() < 1e-9);
        assert!(Weight::from_time(&ThreadTime::default()).user_ns.abs() < 1e-9);
    }
}
