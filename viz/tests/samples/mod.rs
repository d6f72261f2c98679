//! Charts of all the shapes that have to look right.

use chase_viz::{
    Bar, Cell, Chart, Curve, Error, Group, GroupKind, Heading, HeatRow, Part, Segment, Sheet,
    StackRow, Unit, bars, heat, percentiles, pie, stacked, sunburst,
};

/// Name of the golden, and the chart.
pub(crate) type Sample = (&'static str, Result<Chart, Error>);

/// All samples.
pub(crate) fn all() -> Vec<Sample> {
    let heading = Heading {
        title: "Time per library",
        subtitle: "app (pid 4711), self time, 17 threads, 12.4 s wall",
    };
    let by_api = Heading { title: "Time per API", ..heading };
    let calls = Heading { title: "Calls per library", subtitle: "app (pid 4711)" };
    let ns = Unit::Nanoseconds;
    let count = Unit::Count("calls");
    let (five, one, many, tiny) = (five(), one(), many(), tiny());
    let (named, zeros) = (long_names(), zeros());
    let (run, steps) = (run(), steps());
    let (alone, narrow) = (Sheet::alone(heading), Sheet::inside(heading, 360.0));
    let parts = stack_parts();
    let mut samples = vec![
        ("pie-five-libraries", pie(&heading, ns, &five)),
        ("pie-one-library", pie(&heading, ns, &one)),
        ("pie-many-libraries", pie(&heading, ns, &many)),
        ("pie-tiny-slices", pie(&calls, count, &tiny)),
        ("pie-run", pie(&heading, ns, &run)),
        ("pie-steps", pie(&heading, ns, &steps)),
        ("pie-long-names", pie(&LONG_HEADING, ns, &named)),
        ("pie-zeros", pie(&heading, ns, &zeros)),
        ("pie-empty", pie(&heading, count, &[])),
        ("bars-five-libraries", bars(&by_api, ns, &five, &apis(&five, 18), 25)),
        ("bars-one-library", bars(&by_api, ns, &one, &apis(&one, 1), 25)),
        ("bars-300-apis", bars(&by_api, ns, &many, &apis(&many, 300), 25)),
        ("bars-long-names", bars(&LONG_HEADING, ns, &named, &long_apis(), 8)),
        ("bars-zeros", bars(&by_api, count, &zeros, &apis(&zeros, 4), 25)),
        ("bars-empty", bars(&by_api, count, &[], &[], 25)),
    ];
    // Wide, and as on a telephone.
    for (at, sheet) in [&alone, &narrow].into_iter().enumerate() {
        let name = |names: [&'static str; 2]| names[at];
        samples.extend([
            (
                name(["sunburst", "narrow-sunburst"]),
                sunburst(sheet, ns, "app", &segments(&many, 300)),
            ),
            (
                name(["sunburst-long-names", "narrow-sunburst-long-names"]),
                sunburst(sheet, ns, "</svg><script>alert(1)</script>", &segments(&named, 9)),
            ),
            (
                name(["sunburst-no-parts", "narrow-sunburst-no-parts"]),
                sunburst(sheet, ns, "libc.so.6", &segments(&five, 0)),
            ),
            (name(["sunburst-empty", "narrow-sunburst-empty"]), sunburst(sheet, ns, "app", &[])),
            (name(["stacked", "narrow-stacked"]), stacked(sheet, ns, &parts, &stack_rows(&five))),
            (
                name(["stacked-long-names", "narrow-stacked-long-names"]),
                stacked(sheet, ns, &parts, &stack_rows(&named)),
            ),
            (name(["stacked-empty", "narrow-stacked-empty"]), stacked(sheet, ns, &parts, &[])),
            (name(["heat", "narrow-heat"]), heat_of(sheet, &five, 20)),
            (name(["heat-long-names", "narrow-heat-long-names"]), heat_of(sheet, &named, 3)),
            (name(["heat-many", "narrow-heat-many"]), heat_of(sheet, &many[..12], 50)),
            (name(["heat-empty", "narrow-heat-empty"]), heat(sheet, &[], &[], ("0 %", "100 %"))),
            (name(["percentiles", "narrow-percentiles"]), percentiles(sheet, ns, &curves())),
            (name(["percentiles-empty", "narrow-percentiles-empty"]), percentiles(sheet, ns, &[])),
        ]);
    }
    samples
}

fn segments(groups: &[Group], parts: usize) -> Vec<Segment> {
    let of_group = |group: &Group, number: usize| {
        let shares = (0..parts / groups.len().max(1)).map(|i| 0.5 * 0.6f64.powi(i as i32) * 0.8);
        let part = |(i, share)| Part { label: format!("function_{i}"), value: group.value * share };
        let parts = shares.enumerate().map(part).collect();
        Segment { group: group.clone(), parts, key: Some(format!("time-{number}")) }
    };
    (0..).zip(groups).map(|(number, group)| of_group(group, number)).collect()
}

fn stack_parts() -> Vec<Group> {
    let part = |name: &str, kind| Group { name: name.to_owned(), kind, value: 0.0 };
    vec![
        part("running", GroupKind::Library),
        part("waiting for a lock", GroupKind::Library),
        part("waiting for input or output", GroupKind::Library),
        part("no row has this", GroupKind::Library),
        part("in libraries that it calls", GroupKind::Rest),
    ]
}

fn stack_rows(groups: &[Group]) -> Vec<StackRow> {
    let row = |group: &Group| StackRow {
        label: group.name.clone(),
        values: [0.5, 0.3, 0.001, 0.0, 0.2].map(|part| part * group.value).to_vec(),
    };
    let nothing = StackRow { label: "libidle.so".to_owned(), values: vec![] };
    groups.iter().map(row).chain([nothing]).collect()
}

fn heat_of(sheet: &Sheet<'_>, groups: &[Group], rows: usize) -> Result<Chart, Error> {
    let columns: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let cell = |row: usize, column: usize| {
        let part = (row * 7 + column * 13) % 101;
        let text = format!("{part} %");
        Cell { part: part as f64 / 100.0, detail: text.clone(), text }
    };
    let row = |row: usize| HeatRow {
        label: format!("worker thread {row} of the pool"),
        marked: row % 9 == 4,
        cells: (0..columns.len()).map(|column| cell(row, column)).collect(),
    };
    heat(sheet, &columns, &(0..rows).map(row).collect::<Vec<_>>(), ("0 %", "100 % of the lifetime"))
}

fn curves() -> Vec<Curve> {
    let curve = |label: &str, number, dashed, scale: f64, last: i32| Curve {
        label: label.to_owned(),
        kind: GroupKind::LibraryNumber(number),
        dashed,
        points: std::iter::once((2.0, 41.0 * scale))
            .chain((1..=last).map(|n| (10_f64.powi(n), 60.0 * scale * 3_f64.powi(n))))
            .collect(),
    };
    vec![
        curve("read", 0, false, 1.0, 6),
        curve("read, before", 0, true, 1.4, 5),
        curve("<img src=x onerror=alert(1)>", 1, false, 8.0, 3),
        curve(&"std::vector<int>::".repeat(20), 2, false, 700.0, 1),
    ]
}

const LONG_HEADING: Heading<'static> = Heading {
    title: "Time per library of a program whose command line is so long that no page is wide \
            enough for it --and --its --many --options",
    subtitle: "/very/long/path/to/an/application/that/was/built/deep/in/a/tree/of/directories/\
               target/x86_64-unknown-linux-gnu/release/app (pid 4711), self time, 17 threads",
};

fn group(name: impl Into<String>, value: f64) -> Group {
    Group { name: name.into(), kind: GroupKind::Library, value }
}

fn application(value: f64) -> Group {
    Group { name: "app".to_owned(), kind: GroupKind::Application, value }
}

fn five() -> Vec<Group> {
    vec![
        application(4.72e9),
        group("libzstd.so.1", 3.65e9),
        group("libc.so.6", 2.88e9),
        group("libstdc++.so.6", 8.1e8),
        group("libcrypto.so.3", 3.0e8),
    ]
}

fn one() -> Vec<Group> {
    vec![group("libc.so.6", 1_234_567.0)]
}

fn many() -> Vec<Group> {
    let library = |i: i32| group(format!("libpart{i:02}.so.{i}"), 4e9 * 0.75f64.powi(i));
    let mut groups: Vec<_> = (0..40).map(library).collect();
    groups.insert(2, application(2.5e9));
    groups
}

fn tiny() -> Vec<Group> {
    let mut groups = vec![group("libc.so.6", 9.9e8), application(0.0)];
    groups.extend((1..=30).map(|i| group(format!("libtiny{i}.so"), f64::from(4000 / i))));
    groups
}

/// A run of several executables, one of which is called as a library too.
fn run() -> Vec<Group> {
    let executable = |name: &str, value| Group { name: name.to_owned(), ..application(value) };
    vec![
        executable("rustc", 3.10e9),
        group("libLLVM.so.22.1-rust-1.95.0-stable", 1.62e9),
        group("libc.so.6", 1.17e9),
        group("rustc", 2.37e8),
        executable("rust-lld", 4.41e7),
        executable("rustup", 9.0e6),
        executable("collect2", 1.02e6),
        executable("x86_64-linux-gnu-gcc-12", 9.32e5),
        executable("ld.lld", 9.25e5),
        group("librustc_driver-6108105cd7e839cf.so", 3.09e5),
        group("libgcc_s.so.1", 2.13e5),
    ]
}

/// Slices that have a right to a label, and no room for all of them.
fn steps() -> Vec<Group> {
    let shares = [62.0, 11.0, 9.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.1, 0.4];
    let named = |(i, share)| group(format!("libstep{i}.so.{i}"), share * 1e7);
    let mut groups: Vec<Group> = shares.into_iter().enumerate().map(named).collect();
    groups[1].kind = GroupKind::Application;
    groups[6].kind = GroupKind::Application;
    groups
}

fn long_names() -> Vec<Group> {
    vec![
        group("/opt/vendor/product-2026.11/lib/x86_64-linux-gnu/libQt6WebEngineCore.so.6", 5e9),
        application(3e9),
        group("<img src=x onerror=alert(1)>", 2.2e9),
        group("lib\u{1b}[31mred\u{202e}\0.so & \"co\"", 1e9),
        group("lib漢字ライブラリー名前とても長い名前.so", 4e8),
    ]
}

fn zeros() -> Vec<Group> {
    vec![application(0.0), group("libc.so.6", 0.0), group("libm.so.6", 0.0)]
}

fn apis(groups: &[Group], n: usize) -> Vec<Bar> {
    const NAMES: [&str; 6] =
        ["ZSTD_compressStream2", "memcpy", "pthread_mutex_lock", "read", "EVP_DigestUpdate", "f"];
    let bar = |i: usize| {
        let group = i * 7 % groups.len();
        let name = NAMES[i % NAMES.len()];
        // A third of the group for its first API, and less for each one after.
        let value = groups[group].value / 3.0 / (1 + i / groups.len()) as f64;
        Bar { label: format!("{name}_{i}"), group, value }
    };
    (0..n).map(bar).collect()
}

fn long_apis() -> Vec<Bar> {
    let names = [
        format!("std::vector<{}>::push_back(int const&)", "std::pair<int, std::string>, ".repeat(30)),
        "<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + core::marker::Send> \
         as core::ops::function::FnOnce<()>>::call_once::{{closure}}::h0123456789abcdef"
            .to_owned(),
        "<img src=x onerror=alert(1)>".to_owned(),
        "</text><script>alert(1)</script>".to_owned(),
        "]]>&amp;<!-- -->".to_owned(),
        "new\nline\ttab\u{7}bell".to_owned(),
        "W".repeat(500),
        "i".repeat(2_000_000),
        String::new(),
        "関数".repeat(60),
        "short".to_owned(),
    ];
    let bar = |(i, label)| Bar { label, group: i % 5, value: 9e8 / (i + 1) as f64 };
    names.into_iter().enumerate().map(bar).collect()
}
