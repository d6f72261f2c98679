//! What every chart must keep to, and the charts as they are.
//!
//! `CHASE_BLESS=1 cargo test -p chase-viz` writes the goldens anew; look at them before they are
//! committed.

mod samples;

use chase_viz::{Bar, Error, Group, GroupKind, Heading, Unit, bars, pie};
use roxmltree::{Document, Node};

const HEADING: Heading<'static> = Heading { title: "t", subtitle: "s" };

#[test]
fn svgs_are_the_goldens() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("CHASE_BLESS").is_some_and(|v| v == "1");
    let mut wrong = Vec::new();
    for (name, chart) in samples::all() {
        let chart = chart.unwrap();
        let path = golden.join(name).with_extension("svg");
        if bless {
            std::fs::write(&path, chart.svg()).unwrap();
        } else if std::fs::read_to_string(&path).is_ok_and(|g| g != chart.svg()) || !path.exists() {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} differ; CHASE_BLESS=1 accepts them as they are");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for ((name, first), (_, second)) in samples::all().into_iter().zip(samples::all()) {
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!(first.svg(), second.svg(), "{name}");
        assert_eq!(first.png(320).unwrap(), second.png(320).unwrap(), "{name}");
    }
}

#[test]
fn no_text_overlaps_another_or_leaves_the_page() {
    for (name, chart) in samples::all() {
        let chart = chart.unwrap();
        let svg = Document::parse(chart.svg()).unwrap();
        let page = view_box(&svg);
        let boxes: Vec<TextBox> = svg.descendants().filter_map(TextBox::of).collect();
        assert!(
            boxes.len() >= 3 || name.contains("empty"),
            "{name} has its heading and something else"
        );
        for (i, a) in boxes.iter().enumerate() {
            let inside = a.left >= 0.0 && a.right <= page.0 && a.top >= 0.0 && a.bottom <= page.1;
            assert!(inside, "{name}: {a:?} leaves the page of {page:?}");
            for b in &boxes[i + 1..] {
                let apart = a.right <= b.left
                    || b.right <= a.left
                    || a.bottom <= b.top
                    || b.bottom <= a.top;
                assert!(apart, "{name}: {a:?} and {b:?} overlap");
            }
        }
    }
}

#[test]
fn no_leader_runs_through_a_text_or_the_ring() {
    for (name, chart) in samples::all().into_iter().filter(|(name, _)| name.starts_with("pie")) {
        let chart = chart.unwrap();
        let svg = Document::parse(chart.svg()).unwrap();
        let boxes: Vec<TextBox> = svg.descendants().filter_map(TextBox::of).collect();
        // Leaders are the lines in the colour of secondary text.
        let is_leader =
            |n: &Node| n.has_tag_name("polyline") && n.attribute("stroke") == Some("#555555");
        for line in svg.descendants().filter(is_leader) {
            let points = points(line);
            assert_eq!(points.len(), 4, "{name}");
            for (from, to) in points.iter().zip(&points[1..]) {
                for step in 0..=100 {
                    let t = f64::from(step) / 100.0;
                    let x = from.0 + (to.0 - from.0) * t;
                    let y = from.1 + (to.1 - from.1) * t;
                    let hit = boxes
                        .iter()
                        .find(|b| b.left < x && x < b.right && b.top < y && y < b.bottom);
                    assert!(hit.is_none(), "{name}: a leader runs through {hit:?}");
                    let from_centre = (x - 4800.0).hypot(y - 2680.0);
                    assert!(from_centre > 1400.0, "{name}: a leader runs over the ring");
                }
            }
        }
    }
}

#[test]
fn labels_are_text_whatever_they_contain() {
    let (_, chart) =
        samples::all().into_iter().find(|(name, _)| *name == "bars-long-names").unwrap();
    let chart = chart.unwrap();
    let svg = Document::parse(chart.svg()).unwrap();
    let known = ["svg", "g", "title", "rect", "path", "polyline", "text"];
    for element in svg.descendants().filter(Node::is_element) {
        assert!(known.contains(&element.tag_name().name()), "{element:?}");
        let script = element.attributes().find(|a| a.name().starts_with("on"));
        assert!(script.is_none(), "{script:?}");
    }
    let texts: Vec<&str> = svg.descendants().filter_map(|n| n.text()).map(str::trim).collect();
    for text in [
        "<img src=x onerror=alert(1)>",
        "</text><script>alert(1)</script>",
        "]]>&amp;<!-- -->",
        r"new\u{a}line\u{9}tab\u{7}bell",
    ] {
        assert!(texts.contains(&text), "{text} is shown as it is");
    }
    assert!(chart.svg().chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn shortened_names_are_whole_in_their_tooltips() {
    let (_, chart) =
        samples::all().into_iter().find(|(name, _)| *name == "pie-long-names").unwrap();
    let chart = chart.unwrap();
    let svg = Document::parse(chart.svg()).unwrap();
    let whole = "/opt/vendor/product-2026.11/lib/x86_64-linux-gnu/libQt6WebEngineCore.so.6";
    let shortened: Vec<Node> = svg
        .descendants()
        .filter(|n| n.has_tag_name("title") && n.text() == Some(whole))
        .filter_map(|n| n.parent()?.children().find(|c| c.has_tag_name("text")))
        .collect();
    assert_eq!(shortened.len(), 2, "once at the ring and once in the legend");
    for text in shortened {
        let text = text.text().unwrap().trim();
        let (start, end) = text.split_once('…').expect("shortened in the middle");
        assert!(whole.starts_with(start) && whole.ends_with(end), "{text}");
    }
}

#[test]
fn a_name_of_megabytes_makes_no_chart_of_megabytes() {
    for (name, chart) in samples::all() {
        assert!(chart.unwrap().svg().len() < 300_000, "{name}");
    }
}

#[test]
fn bars_and_slices_of_a_group_have_one_colour() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let groups: Vec<Group> = names
        .iter()
        .map(|n| Group { name: (*n).to_owned(), kind: GroupKind::Library, value: 10.0 })
        .collect();
    let entry = |i: usize| Bar { label: format!("f{i}"), group: i, value: 1.0 + i as f64 };
    let entries: Vec<Bar> = (0..10).map(entry).collect();
    let slices = pie(&HEADING, Unit::Nanoseconds, &groups).unwrap();
    let rows = bars(&HEADING, Unit::Nanoseconds, &groups, &entries, 25).unwrap();
    let slices = fills(slices.svg(), "path");
    let rows = fills(rows.svg(), "rect");
    for (i, name) in names.iter().enumerate() {
        let of_slice = slices.iter().find(|(title, _)| title.starts_with(&format!("{name}:")));
        let of_row = rows.iter().find(|(title, _)| title.starts_with(&format!("f{i} ({name})")));
        let (_, row) = of_row.expect("each entry has its bar");
        match of_slice {
            Some((_, slice)) => assert_eq!(slice, row, "{name}"),
            None => assert_eq!(row, &slices.last().unwrap().1, "{name} is among the others"),
        }
    }
    assert_eq!(slices.len(), 8);
}

#[test]
fn entries_beyond_the_top_are_added_up_by_group() {
    let group = |name: &str| Group { name: name.into(), kind: GroupKind::Library, value: 500.0 };
    let groups = [group("liba"), group("libb")];
    let entry = |i| Bar { label: format!("f{i}"), group: usize::from(i >= 6), value: f64::from(i) };
    let entries: Vec<Bar> = (0..10).map(entry).collect();
    let chart = bars(&HEADING, Unit::Count("calls"), &groups, &entries, 3).unwrap();
    let titles: Vec<String> = fills(chart.svg(), "rect").into_iter().map(|(t, _)| t).collect();
    assert_eq!(
        titles,
        [
            "f9 (libb): 9 · 0.9 %",
            "f8 (libb): 8 · 0.8 %",
            "f7 (libb): 7 · 0.7 %",
            "liba (6 more): 15 · 1.5 %",
            "libb (1 more): 6 · 0.6 %",
        ]
    );
    assert!(chart.svg().contains("The other 7, added up"));
}

#[test]
fn one_entry_too_many_is_shown_and_not_added_up() {
    let groups = [Group { name: "liba".into(), kind: GroupKind::Library, value: 5.0 }];
    let entry = |i| Bar { label: format!("f{i}"), group: 0, value: f64::from(i) };
    let entries: Vec<Bar> = (1..=4).map(entry).collect();
    let chart = bars(&HEADING, Unit::Nanoseconds, &groups, &entries, 3).unwrap();
    assert_eq!(fills(chart.svg(), "rect").len(), 4);
    assert!(!chart.svg().contains("added up"));
}

#[test]
fn bad_input_is_an_error_that_names_it() {
    let group = |value| Group { name: "libbad.so".into(), kind: GroupKind::Library, value };
    let unit = Unit::Nanoseconds;
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let error = pie(&HEADING, unit, &[group(value)]).unwrap_err();
        assert!(error.to_string().contains("libbad.so"), "{error}");
        let bar = Bar { label: "bad_api".into(), group: 0, value };
        let error = bars(&HEADING, unit, &[group(1.0)], &[bar], 5).unwrap_err();
        assert!(error.to_string().contains("bad_api"), "{error}");
    }
    let overflow = pie(&HEADING, unit, &[group(f64::MAX), group(f64::MAX)]);
    assert!(matches!(overflow, Err(Error::Value { .. })));
    let bar = Bar { label: "bad_api".into(), group: 1, value: 1.0 };
    let stray = bars(&HEADING, unit, &[group(1.0)], &[bar], 5);
    assert!(matches!(stray, Err(Error::Group { group: 1, groups: 1, .. })));
}

#[test]
fn pngs_have_the_width_asked_for_and_the_shape_of_the_svg() {
    for (name, chart) in samples::all() {
        let chart = chart.unwrap();
        let svg = Document::parse(chart.svg()).unwrap();
        let (w, h) = view_box(&svg);
        let png = chart.png(640).unwrap();
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n", "{name}");
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!(size(16), 640, "{name}");
        assert_eq!(f64::from(size(20)), (640.0 * h / w).round(), "{name}");
    }
    let chart = pie(&HEADING, Unit::Nanoseconds, &[]).unwrap();
    for width in [0, 16_385, u32::MAX] {
        assert!(matches!(chart.png(width), Err(Error::Size { .. })), "{width}");
    }
}

fn view_box(svg: &Document<'_>) -> (f64, f64) {
    let view_box = svg.root_element().attribute("viewBox").unwrap();
    let mut numbers = view_box.split(' ').map(|n| n.parse::<f64>().unwrap());
    (numbers.nth(2).unwrap(), numbers.next().unwrap())
}

/// Tooltip and fill of all `shape`s that have a tooltip.
fn fills(svg: &str, shape: &str) -> Vec<(String, String)> {
    let svg = Document::parse(svg).unwrap();
    let described = |n: Node| {
        let title = n.parent()?.children().find(|c| c.has_tag_name("title"))?;
        Some((title.text()?.to_owned(), n.attribute("fill")?.to_owned()))
    };
    svg.descendants().filter(|n| n.has_tag_name(shape)).filter_map(described).collect()
}

fn points(line: Node<'_, '_>) -> Vec<(f64, f64)> {
    let pair = |p: &str| {
        let (x, y) = p.split_once(',')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    };
    line.attribute("points").unwrap().split_whitespace().filter_map(pair).collect()
}

/// Where a text element is, in the units of the SVG.
#[derive(Debug)]
#[expect(dead_code, reason = "the text is there for the messages")]
struct TextBox {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl TextBox {
    fn of(node: Node<'_, '_>) -> Option<Self> {
        if !node.has_tag_name("text") {
            return None;
        }
        let number = |name| node.attribute(name)?.parse::<f64>().ok();
        let (x, y, size) = (number("x")?, number("y")?, number("font-size")?);
        let text = node.text()?.trim().to_owned();
        let bold = node.attribute("font-weight") == Some("bold");
        let font = if bold { dejavu::sans::bold() } else { dejavu::sans::regular() };
        let face = ttf_parser::Face::parse(font, 0).ok()?;
        let advance = |c| {
            let units = face.glyph_index(c).and_then(|g| face.glyph_hor_advance(g));
            units.map_or(1.0, |units| f64::from(units) / f64::from(face.units_per_em()))
        };
        let width = size * text.chars().map(advance).sum::<f64>();
        let left = match node.attribute("text-anchor").unwrap_or("start") {
            "start" => x,
            "middle" => x - width / 2.0,
            _ => x - width,
        };
        if node.attribute("transform").is_some_and(|turn| turn.starts_with("rotate(270")) {
            // Upwards from `y`; `x` is the left of the ascenders.
            let (left, right, top, bottom) = (x, x + size, y - width, y);
            return Some(Self { text, left, right, top, bottom });
        }
        // `y` is 0.76 em above the baseline, where ascenders begin; descenders go 0.24 em below.
        Some(Self { text, left, right: left + width, top: y, bottom: y + size })
    }
}
