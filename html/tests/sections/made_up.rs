//! A report that has everything.

use chase_export::{Frame, Node, Stacks};
use chase_html::{
    ApiSyscalls, Balance, Blocked, BlockedIn, CauseOfWait, Change, Comparison, Diagram,
    DiagramArrow, DiagramNode, Does, Edge, Finding, Function, FunctionChange, GroupWaits, Header,
    Lane, Library, Life, Member, Outlier, PartUse, Parts, Ran, RanAt, RanFunction, RanObject,
    RanPlace, Report, SectionId, SelfParts, Span, SubGroup, Syscall, Tail, TailCurve, ThreadGroup,
    Timeline, Verdict, WaitCause, WaitSource, Waiting, WaitsForWhom,
};

pub(crate) fn stacks(read_ns: u64) -> Stacks {
    let frame = |function: &str, library: &str| Frame {
        function: function.into(),
        library: library.into(),
        ..Frame::default()
    };
    let node = |parent, frame, self_ns| Node { parent, frame, calls: 1, self_ns };
    Stacks {
        frames: vec![frame("app", "app"), frame("fread", "libc.so.6"), frame("<b>&;", "libz.so.1")],
        nodes: vec![node(None, 0, 500), node(Some(0), 1, read_ns), node(Some(0), 2, 90)],
    }
}

pub(crate) fn libraries() -> Vec<Library> {
    let function = |name: &str, self_ns| Function {
        name: name.into(),
        calls: 1200,
        calls_error: None,
        self_ns,
        self_error_ns: None,
        total_ns: self_ns * 1.5,
        on_cpu_ns: self_ns / 2.0,
        p50_ns: Some(41.0),
        p999_ns: None,
    };
    let library = |name: &str, is_application, self_ns: f64| Library {
        name: name.into(),
        path: format!("/usr/lib/{name}").into(),
        is_application,
        self_ns,
        self_error_ns: None,
        waiting: vec![Waiting { cause: WaitCause::Lock, ns: self_ns / 4.0 }],
        preempted_ns: Some(self_ns / 10.0),
        on_cpu_ns: self_ns / 2.0,
        callees_ns: self_ns / 8.0,
        calls: 2400,
        calls_error: None,
        functions: if is_application {
            Vec::new()
        } else {
            vec![function("fread", self_ns * 0.75), function("<i>close</i>", self_ns * 0.25)]
        },
    };
    vec![
        library("libc.so.6", false, 4e9),
        library("app", true, 3e9),
        library("libz.so.1", false, 1e9),
    ]
}

pub(crate) fn blocked(cause: WaitCause, function: &str, ns: f64, threads: usize) -> BlockedIn {
    BlockedIn { cause, function: function.into(), library: "libc.so.6".into(), ns, threads }
}

fn finding(claim: &str, evidence: &str, section: SectionId) -> Finding {
    let gain = "saves up to 1.00 s (50 %)".into();
    Finding { claim: claim.into(), evidence: evidence.into(), gain, shown_in: Some(section) }
}

fn edge(caller: &str, callee: &str, calls: u64, self_ns: f64) -> Edge {
    Edge {
        caller: caller.into(),
        callee: callee.into(),
        calls,
        calls_error: None,
        self_ns,
        self_error_ns: None,
    }
}

fn group() -> ThreadGroup {
    let member = |number: usize| Member {
        name: format!("worker {number}").into(),
        lifetime_ns: 1e9,
        life: Life {
            running_ns: 5e8 + 1e8 * number as f64,
            runnable_ns: 1e8,
            blocked_ns: 4e8 - 1e8 * number as f64,
            is_measured: true,
        },
        calls: 1200,
        in_libraries_ns: vec![4e8, 1e8 * number as f32],
        on_cpu_ns: vec![5e8 + 1e8 * number as f32],
    };
    ThreadGroup {
        name: "compress_worker".into(),
        members: (0..5).map(member).collect(),
        libraries: vec![0, 1],
        useful_ns: 4e9,
        wait_ns: 1e9,
        balance: Some(Balance {
            load_balance: 0.61,
            imbalance: 0.39,
            imbalance_ns: 3.2e8,
            parallel_efficiency: 0.55,
        }),
        outliers: vec![Outlier { member: 4, reason: "2.3 times the median, in deflate".into() }],
        sub_groups: vec![
            SubGroup { name: "mostly in libz.so.1".into(), threads: 4 },
            SubGroup { name: "mostly waiting".into(), threads: 1 },
        ],
        note: Some("Its threads ended together.".into()),
    }
}

fn main_thread() -> ThreadGroup {
    let main = Member {
        name: "app 4711".into(),
        lifetime_ns: 2e9,
        life: Life { running_ns: 1.5e9, runnable_ns: 0.0, blocked_ns: 5e8, is_measured: true },
        calls: 7,
        in_libraries_ns: vec![1e9, 1e6],
        on_cpu_ns: vec![1.5e9],
    };
    ThreadGroup {
        name: "main".into(),
        members: vec![main],
        libraries: vec![0, 1],
        useful_ns: 2e9,
        wait_ns: 0.0,
        balance: None,
        outliers: Vec::new(),
        sub_groups: Vec::new(),
        note: None,
    }
}

fn changed(function: &str, before: f64, now: f64, verdict: Verdict) -> FunctionChange {
    let change = |measure: &str, before, now, is_time| Change {
        measure: measure.into(),
        before,
        now,
        is_time,
        p: is_time.then_some(0.008),
    };
    let of = |value: f64| (value > 0.0).then_some(value);
    let parts = |ns: f64| SelfParts { code_ns: ns / 2.0, wait_ns: ns / 2.0, ..Default::default() };
    FunctionChange {
        function: function.into(),
        library: "libc.so.6".into(),
        verdict,
        figures: vec![
            change("per call", of(before), of(now), true),
            change("calls", of(7.0), of(8.0), false),
            change("system calls per call", None, None, false),
        ],
        parts: [before, now].map(|ns| of(ns).map(parts)),
    }
}

fn syscall(name: &str, category: &str, count: u64) -> Syscall {
    Syscall {
        name: name.into(),
        category: category.into(),
        count,
        errors: vec![("EAGAIN".into(), 3), ("EINTR".into(), 1)],
        total_ns: 5e6,
        max_ns: 4e5,
        bytes: Some(81_920),
    }
}

pub(crate) fn node(lines: &[&str], is_round: bool) -> DiagramNode {
    DiagramNode { lines: lines.iter().map(Into::into).collect(), is_round, is_marked: false }
}

fn arrow(from: usize, to: usize, label: &str) -> DiagramArrow {
    DiagramArrow { from, to, label: label.into(), is_dashed: label.is_empty() }
}

/// Workers that wait for each other, and for one that has what they need.
fn waits_for_whom() -> WaitsForWhom {
    let waits = |group: &str, target: &str, ns: f64| GroupWaits {
        group: group.into(),
        target: target.into(),
        ns,
        waits: 398,
        place: "pthread_mutex_lock at update app.c:14".into(),
        object: "stats_mu".into(),
    };
    let keeper = DiagramNode { is_marked: true, ..node(&["bottleneck:", "keeper <1>"], false) };
    WaitsForWhom {
        diagram: Diagram {
            nodes: vec![node(&["compress_worker"], false), keeper, node(&["time"], true)],
            arrows: vec![arrow(0, 1, "3.10 s"), arrow(0, 0, "1.00 s"), arrow(1, 2, "5.00 ms")],
        },
        bottleneck: "keeper <1>".into(),
        waits: vec![
            waits("compress_worker", "keeper <1>", 3.1e9),
            waits("compress_worker", "compress_worker", 1e9),
            waits("keeper <1>", "time", 5e6),
        ],
    }
}

/// A pipeline, and a file.
fn parts() -> Parts {
    let written = PartUse {
        program: "seq (12)".into(),
        thing: "A pipe".into(),
        written: 3_893,
        writes: 1,
        write_ns: 2e4,
        ..PartUse::default()
    };
    Parts {
        diagram: Diagram {
            nodes: vec![
                node(&["sh (11)"], false),
                node(&["seq (12)"], false),
                node(&["<wc> (13)", "2 threads"], false),
                node(&["The file out & in"], true),
            ],
            arrows: vec![
                arrow(0, 1, ""),
                arrow(0, 2, ""),
                arrow(1, 2, "3.89 kB"),
                arrow(2, 3, "5 B"),
            ],
        },
        more_programs: 2,
        sentences: vec!["sh (11) started seq (12) and <wc> (13).".into()],
        missing: "".into(),
        uses: vec![written],
        more_uses: 7,
    }
}

pub(crate) fn made_up() -> Report {
    let curve = |scale: f64| TailCurve {
        points: vec![
            (2.0, 41.0 * scale),
            (10.0, 60.0 * scale),
            (100.0, 900.0 * scale),
            (1200.0, 2e6),
        ],
    };
    Report {
        header: Header {
            program: "app".into(),
            command: "./app '<script>'".into(),
            lead: vec![("2.00 s".into(), "wall time".to_owned())],
            incomplete: vec!["process 4712 after 3 s: no space".into()],
            facts: vec![("Host".to_owned(), "box".into())],
            gaps: 1,
            not_seen: vec![
                "3 imports left alone: used as a function pointer, or taken to be".into(),
            ],
            threads: 6,
            whole_ns: 8e9,
            ..Header::default()
        },
        findings: vec![
            finding("nginx: worker process starves", ": 90 % of its time", SectionId::Time),
            finding("worker 4 is slow", "", SectionId::Threads),
            finding("Deep", "", SectionId::Flame),
            Finding {
                gain: "".into(),
                shown_in: None,
                ..finding("All", " of it", SectionId::Time)
            },
        ],
        causes: vec![CauseOfWait {
            function: "pthread_mutex_lock".into(),
            site: "update <stats> app.c:14".into(),
            group: "worker".into(),
            is_idle: false,
            object: "stats_mu".into(),
            ns: 3.1e9,
            waits: 398,
            holder: "worker, in nanosleep".into(),
            waker: "worker, in pthread_mutex_unlock".into(),
        }],
        waits_for_whom: Some(waits_for_whom()),
        parts: Some(parts()),
        processor: Some(Ran {
            samples: 4_000,
            on_cpu_ns: 4.1e9,
            not_sampled_ns: 1e8,
            user_only: false,
            unwatched: 0,
            objects: vec![RanObject {
                name: "app".into(),
                is_application: true,
                ns: 4e9,
                error_ns: 4e6,
                kernel_ns: Some(1e9),
                functions: vec![RanFunction {
                    name: "compare_rows".into(),
                    ns: 4e9,
                    line: "rows.c:12".into(),
                }],
            }],
        }),
        blocked: Blocked {
            rows: vec![
                blocked(WaitCause::Lock, "pthread_mutex_lock", 3e9, 4),
                blocked(WaitCause::Io, "fsync", 1e9, 1),
                blocked(WaitCause::Lock, "sem_wait", 1e8, 1),
            ],
            idle: "24 threads idle in pthread_cond_wait".into(),
            idle_ns: 9e9,
            runnable: Some("1.20 s, 23 % of the time in which threads wanted one".into()),
        },
        libraries: libraries(),
        waits: WaitSource::Scheduler,
        groups: vec![group(), main_thread()],
        tails: vec![Tail {
            function: "fread".into(),
            library: "libc.so.6".into(),
            group: "compress_worker".into(),
            calls: 1200,
            sampled: false,
            longest_ns: 2e6,
            now: curve(1.0),
            before: Some(curve(0.5)),
            ratio: Some(48.8),
            share_above_p99: Some(0.31),
            held_by: Some("one thread, worker 4".into()),
            syscalls: "read 1.90 ms".into(),
        }],
        syscalls: vec![
            ApiSyscalls {
                function: "fread".into(),
                library: "libc.so.6".into(),
                calls: Some(1200),
                syscalls: vec![
                    syscall("read", "input and output", 20),
                    syscall("futex", "synchronisation", 600),
                ],
            },
            ApiSyscalls {
                function: "(outside library calls)".into(),
                library: "".into(),
                calls: None,
                syscalls: vec![syscall("mmap", "memory", 3)],
            },
        ],
        more_syscalls: 3,
        edges: vec![edge("app", "libc.so.6", 2400, 4e9), edge("libc.so.6", "libz.so.1", 7, 1e4)],
        flames: Vec::new(),
        timeline: Some(timeline()),
        comparison: Some(Comparison {
            before: "monday.chase".into(),
            now: "tuesday.chase".into(),
            notes: vec!["Five runs of each.".into()],
            totals: vec![Change {
                measure: "wall time".into(),
                before: Some(3e9),
                now: Some(2e9),
                is_time: true,
                p: Some(0.0001),
            }],
            functions: vec![
                changed("fread", 41.0, 82.0, Verdict::Slower),
                changed("close", 90.0, 70.0, Verdict::Faster),
                changed("open", 0.0, 5.0, Verdict::OnlyAfter),
                changed("stat", 5.0, 5.1, Verdict::NoClearChange),
            ],
            more_functions: 2,
        }),
        tables: Vec::new(),
    }
}

/// Two workers: the second waits for a lock that the first holds.
pub(crate) fn timeline() -> Timeline {
    let span = |from_ns, to_ns, does, text: &str, waker: Option<usize>| Span {
        from_ns,
        to_ns,
        does,
        text: text.into(),
        library: (!text.is_empty()).then_some(0),
        waker,
        waker_in: if waker.is_some() { "pthread_mutex_unlock" } else { "" }.into(),
    };
    let lane = |number: usize, spans| Lane {
        name: format!("worker {number}").into(),
        group: "compress_worker".into(),
        is_idle: false,
        spans,
        ran: (0..4)
            .map(|at| RanAt { at_ns: f64::from(at) * 4e8, place: at as usize % 2 })
            .collect(),
    };
    let place = |library: &str, function: &str| RanPlace {
        library: library.into(),
        is_application: library == "app",
        function: function.into(),
        stands_for: 1,
    };
    let waits = Does::Wait(WaitCause::Lock);
    Timeline {
        end_ns: 2e9,
        lanes: vec![
            lane(1, vec![span(0.0, 2e9, Does::Run, "", None)]),
            lane(
                2,
                vec![
                    span(0.0, 5e8, Does::Run, "", None),
                    span(5e8, 1.4e9, waits, "pthread_mutex_lock </script>", Some(0)),
                    span(1.4e9, 1.5e9, Does::Queue, "", None),
                    span(1.5e9, 2e9, Does::Run, "", None),
                ],
            ),
        ],
        marks: vec![(1e9, "half <way>".into())],
        ran_places: vec![place("libz.so.1", "deflate_<slow>"), place("app", "main")],
        sample_ns: 1e6,
        left_out_ns: 2e6,
        seems_busy_ns: 3e6,
        more_lanes: 0,
        notes: vec!["12 events were overwritten.".into()],
    }
}
