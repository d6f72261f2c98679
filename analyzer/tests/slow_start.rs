//! What libraries do before the program does anything of its own.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{SlotId, SyscallsBuilder};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, Pool, US, outcome};

const PID: u32 = 1_000;

/// A process of one thread.
struct Scene {
    pool: Pool,
    /// The library asks for time, for memory, and gives it back.
    sleep: SlotId,
    malloc: SlotId,
    free: SlotId,
}

impl Scene {
    fn new() -> Self {
        let mut pool = Pool::new();
        let (liba, libb) = (pool.process.liba, pool.process.libb);
        let mut slot = |name| pool.process.builder.slot(liba, Some(libb), name);
        let (sleep, malloc, free) = (slot("nanosleep"), slot("malloc"), slot("free"));
        Self { pool, sleep, malloc, free }
    }

    fn call(&mut self, slot: SlotId, ns: u64) -> &mut Self {
        let main = self.pool.process.main;
        self.pool.call(main, slot, ns, 1);
        self
    }

    /// The program calls a library.
    fn program(&mut self) -> &mut Self {
        let work = self.pool.work;
        self.call(work, MS)
    }

    fn work(&mut self, ns: u64) -> &mut Self {
        let main = self.pool.process.main;
        self.pool.process.builder.timeline(main).work(ns);
        self
    }

    fn finish(mut self) -> Outcome {
        let main = self.pool.process.main;
        self.pool.process.builder.timeline(main).end();
        outcome(vec![self.pool.process.image()])
    }

    /// The same, with a sample each ms: `own` ms are in the library, then `program` in the program, then `later` in the library again.
    fn sampled(mut self, own: u64, program: u64, later: u64) -> Outcome {
        let main = self.pool.process.main;
        self.pool.process.builder.timeline(main).end();
        let builder = &self.pool.process.builder;
        let of_library = builder.code_address(self.pool.process.liba, 0x40);
        let of_program = builder.code_address(self.pool.process.app, 0x40);
        let root = builder.context_refs()[0][0];
        let mut file = SyscallsBuilder::new(PID);
        file.header.sample_hz = 1_000;
        file.on_cpu(PID, (own + program + later) * MS);
        let mut at = 0;
        for (address, samples) in [(of_library, own), (of_program, program), (of_library, later)] {
            file.samples(root, PID, address, samples as u32, 0);
            for _ in 0..samples {
                at += MS;
                file.timed_sample(at);
            }
        }
        let file = SyscallsFile::parse(file.build()).expect("a file");
        outcome(vec![self.pool.process.image().with_syscalls(Some(file))])
    }
}

fn slow(outcome: &Outcome) -> Option<(&Finding, &str, u64, u64)> {
    outcome.findings.iter().find_map(|finding| match finding.kind {
        FindingKind::SlowStart { library, own_ns: Ns(own), calls_ns: Ns(calls), .. } => {
            Some((finding, &*outcome.analysis.objects[library as usize].name, own, calls))
        }
        _ => None,
    })
}

#[test]
fn a_library_waits_before_the_program_calls_anything() {
    let mut scene = Scene::new();
    let (sleep, malloc, free) = (scene.sleep, scene.malloc, scene.free);
    scene.call(malloc, US).call(sleep, 120 * MS).program().work(300 * MS).call(free, US);
    let outcome = scene.finish();
    let (finding, library, own, calls) = slow(&outcome).expect("a finding");
    assert_eq!((library, own, calls), ("liba.so", 0, 120 * MS + US));
    assert_eq!((finding.saves_ns, finding.threads.len()), (Ns(120 * MS + US), 1));
    let (api, ns) = outcome.watched.slow_starts[0].longest.expect("a call");
    assert_eq!((outcome.api(Some(api)), ns), (Some("nanosleep"), Ns(120 * MS)));
    // The same calls are no start where it was attached to in the midst of them.
    let mut scene = Scene::new();
    scene.call(malloc, US).call(sleep, 120 * MS).program().work(300 * MS).call(free, US);
    scene.pool.process.builder.meta("attached", "1 threads, 0 in calls");
    assert!(slow(&scene.finish()).is_none());
}

#[test]
fn what_a_library_does_later_is_no_constructor() {
    let mut scene = Scene::new();
    let (sleep, malloc) = (scene.sleep, scene.malloc);
    // The program has called something.
    scene.program().call(malloc, US).call(sleep, 120 * MS).work(300 * MS);
    assert!(slow(&scene.finish()).is_none());
    // Some of its calls were made before that, and it works on later: most of them may have been made then.
    let mut scene = Scene::new();
    scene.call(sleep, US).program().call(malloc, US).call(sleep, 120 * MS).work(300 * MS);
    assert!(slow(&scene.finish()).is_none());
    // A single one was made when it was made.
    let mut scene = Scene::new();
    scene.call(sleep, 120 * MS).program().call(malloc, US).work(300 * MS);
    assert!(slow(&scene.finish()).is_some());
    // It takes no material time.
    let mut scene = Scene::new();
    scene.call(sleep, 10 * MS).program().work(300 * MS);
    assert!(slow(&scene.finish()).is_none());
}

#[test]
fn a_library_computes_before_the_program_runs() {
    let of = |later: u64| {
        let mut scene = Scene::new();
        let malloc = scene.malloc;
        scene.call(malloc, US).work(100 * MS).program().work(299 * MS);
        scene.sampled(100, 300 - later, later)
    };
    let outcome = of(0);
    let (_, library, own, calls) = slow(&outcome).expect("a finding");
    assert_eq!((library, own, calls), ("liba.so", 100 * MS, US));
    assert_eq!(outcome.watched.slow_starts[0].ran[0].samples, 100);
    // A destructor is no part of it, nor is a library that the program calls through a table of its functions.
    let outcome = of(5);
    assert_eq!(slow(&outcome).expect("a finding").2, 100 * MS);
    assert!(slow(&of(100)).is_none());
}

#[test]
fn what_the_program_begins_with_is_no_constructor() {
    // The library makes its first call after the program's; or none.
    let mut scene = Scene::new();
    let malloc = scene.malloc;
    scene.program().call(malloc, US).work(399 * MS);
    assert!(slow(&scene.sampled(100, 300, 0)).is_none());
    let mut scene = Scene::new();
    scene.program().work(399 * MS);
    assert!(slow(&scene.sampled(100, 300, 0)).is_none());
    // It has made one, but the program is never seen to run: the library is what it runs.
    let mut scene = Scene::new();
    scene.call(malloc, US).program().work(399 * MS);
    assert!(slow(&scene.sampled(400, 0, 0)).is_none());
}
