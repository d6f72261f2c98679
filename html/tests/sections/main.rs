//! Sections from made-up data: what each shows, and that none is there without data.
//!
//! `CHASE_BLESS=1 cargo test -p chase-html` writes the goldens anew; look at them first.

mod made_up;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use chase_export::Stacks;
use chase_html::{Estimates, Flame, FlameKind, Report, page, pictures};
use made_up::{made_up, stacks};
use roxmltree::Document;

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CHASE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("golden written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs from its golden; CHASE_BLESS=1 accepts it");
}

/// The sections, an element a line, without the pictures: those have goldens of their own.
fn outline(page: &str) -> String {
    let mut out = String::new();
    let main = page.split_once("<main").expect("a main part").1;
    let main = main.split_once("</main>").expect("its end").0;
    for (at, part) in main.split("<svg").enumerate() {
        let text = if at == 0 { part } else { part.split_once("</svg>").expect("a picture").1 };
        out.push_str(text);
    }
    out.replace("><", ">\n<")
}

#[test]
fn every_section_shows_what_it_is_given() {
    let page = page(&made_up()).expect("a page");
    golden("sections.html", &outline(&page));
    // To be looked at.
    let whole = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sections.html");
    std::fs::write(whole, &page).expect("page written");
    for (name, svg) in
        pictures(&made_up(), "made up").expect("pictures").iter().map(|p| (&p.name, p.chart.svg()))
    {
        Document::parse(svg).expect("well-formed");
        golden(&format!("{name}.svg"), svg);
    }
}

/// Zoom, groups, window and filter, by mouse and keys.
#[test]
fn the_timeline_works_in_a_browser() {
    let browser = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/browser");
    let chromium = std::env::var_os("CHASE_CHROMIUM").unwrap_or("/usr/bin/chromium".into());
    let report = Report { comparison: None, ..made_up() };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("timeline.html");
    std::fs::write(&file, page(&report).expect("a page")).expect("page written");
    if !browser.join("node_modules").exists() || !Path::new(&chromium).exists() {
        // Not by `eprintln`, which is heard only where a test fails.
        let why =
            "skipped: the timeline in a browser: no Chromium, or no npm ci in cli/tests/browser";
        let _ = writeln!(std::io::stderr(), "{why}");
        return;
    }
    let output = Command::new("node").arg("timeline.mjs").arg(&file).current_dir(browser).output();
    let output = output.expect("node runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn estimates_are_marked() {
    // What samples say is always one.
    let mut report = Report { processor: None, ..made_up() };
    let exact = page(&report).expect("a page");
    assert!(exact.contains("counts are exact."));
    let exact = outline(&exact);
    for mark in ["~", " ± ", "≤ ", "≥ "] {
        assert!(!exact.contains(mark), "{mark}");
    }

    report.header.estimates = Estimates::Calls;
    let library = &mut report.libraries[0];
    (library.self_error_ns, library.calls_error) = (Some(2e8), Some(120.0));
    let [fread, close] = &mut library.functions[..] else { panic!("two functions") };
    (fread.self_error_ns, fread.calls_error) = (Some(3e8), Some(0.0));
    close.self_error_ns = Some(2e9);
    report.edges[0].self_error_ns = Some(1e9);
    report.tails[0].sampled = true;
    let page = page(&report).expect("a page");
    let cells = [
        // The library; of the functions, share, self, total and calls.
        "~4.00 s ± 5.0 %</td>",
        "~2400 ± 5.0 %</td>",
        "~75.0 %</td><td class=\"number\">~3.00 s ± 10.0 %</td><td class=\"number\">~4.50 s</td><td class=\"number\">~1200</td>",
        // As much as itself, or more.
        "~25.0 %</td><td class=\"number\">≤ 3.00 s</td>",
        "~4.00 s ± 25.0 %</td>",
        "≥ 2.00 ms</td>",
        "~31.0 %</td>",
        "counts without ~ are exact",
        "Times of functions that were called very often are estimates",
    ];
    for cell in cells {
        assert!(page.contains(cell), "{cell}: {}", outline(&page));
    }
}

#[test]
fn a_section_without_data_is_not_there() {
    let empty = page(&Report::default()).expect("a page");
    assert!(!empty.contains("<section"), "{empty}");
    let full = page(&made_up()).expect("a page");
    let sections = "findings where waits timeline compare processor blocked wait-graph time libraries \
        threads tail syscalls calls components";
    for section in sections.split(' ') {
        assert!(full.contains(&format!("<section id=\"{section}\"")), "{section}");
        let is_first = matches!(section, "where" | "waits");
        let link = format!("<li><a href=\"#{section}\"");
        assert!(is_first || full.contains(&link), "{section} is in the contents");
    }
    for absent in ["flame", "rows"] {
        assert!(!full.contains(&format!("id=\"{absent}\"")), "{absent}");
    }
}

/// What a program writes it may read again: nothing is lost on the way.
#[test]
fn a_report_that_went_through_json_is_the_same() {
    let json = serde_json::to_string(&made_up()).expect("JSON");
    let back: Report = serde_json::from_str(&json).expect("a report");
    assert!(page(&back).expect("a page") == page(&made_up()).expect("a page"));
}

/// Samples are few: what they did not find took some time, too.
#[test]
fn no_processor_time_is_told_of_what_no_sample_found() {
    let mut report = made_up();
    assert!(report.processor.is_some());
    report.libraries.iter_mut().for_each(|library| library.on_cpu_ns = 0.0);
    let text = page(&report).expect("a page");
    let tables = text.split("aria-label=\"Time by library\"").skip(1);
    let tables: Vec<&str> = tables.filter_map(|rest| rest.split("</table>").next()).collect();
    let of_processor = tables.iter().find(|table| table.contains("processor")).expect("a table");
    assert!(of_processor.contains("libz.so.1"), "{of_processor}");
    assert!(!of_processor.contains(">0 ns<") && !of_processor.contains(">0 %<"), "{of_processor}");
}

#[test]
fn flame_graphs_are_drawn_and_so_are_differences() {
    let flame = |name: &str, kind| Flame { name: name.into(), on_cpu: false, kind };
    let difference = FlameKind::Difference { before: stacks(100), now: stacks(900) };
    let mut report = made_up();
    report.flames = vec![
        flame("All threads", FlameKind::Time(stacks(900))),
        flame("Difference", difference),
        flame("nobody", FlameKind::Time(Stacks::default())),
    ];
    let text = page(&report).expect("a page");
    assert_eq!(text.matches("<iframe").count(), 2, "what took no time has no picture");
    assert!(text.contains("&amp;lt;b&amp;gt;&amp;amp;: [libz.so.1]"), "names are escaped twice");
    assert!(!text.contains("<b>&"), "a name is markup");
    // What has not changed is as light as paper: in the dark theme it would be the loudest.
    assert_eq!(text.matches("#frames { filter: invert(").count(), 1, "of the difference alone");
    let pictures = pictures(&report, "made up").expect("pictures");
    let flame = pictures.iter().find(|picture| picture.name == "flame").expect("a flame graph");
    assert!(flame.chart.png(640).expect("a PNG").starts_with(b"\x89PNG"));
    golden("flame.svg", flame.chart.svg());
    // The box of all would be the lightest thing in the dark theme.
    let all = flame.chart.svg().split("<title>all").nth(1).expect("a box of all");
    let colour = all.split("fill=\"").nth(1).and_then(|rest| rest.split('"').next());
    let darkened = format!("rect[fill='{}'] {{ fill: #2b3038 }}", colour.expect("a colour"));
    assert!(text.contains(&darkened), "{darkened}");
}
