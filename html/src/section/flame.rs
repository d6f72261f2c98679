//! Flame graphs of library calls, by inferno.

use chase_export::{Stacks, folded, folded_frame};
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection, from_reader};
use maud::{Markup, PreEscaped, html};

use crate::colours::Colours;
use crate::model::{Flame, FlameKind};
use crate::{Error, Label, Report};

/// Frames narrower than this many percent of the whole are not drawn.
const NARROWEST: f64 = 0.1;
/// As measured: what fits in DejaVu Sans also fits in other fonts.
const FONT: &str = "DejaVu Sans,Verdana,sans-serif";
/// Its characters are about as wide as this, in em.
const CHARACTER: f64 = 0.62;
/// The colours of a picture in the dark theme.
pub(crate) const DARK: &str = "@media screen and (prefers-color-scheme: dark) { \
    #background stop { stop-color: #1b1e23 } \
    #title, #details, #search, #matched, #unzoom, #subtitle { fill: #e6e8eb } \
    rect[fill='rgb(238,238,238)'] { fill: #2b3038 } rect[fill='rgb(238,238,238)'] + text { fill: #e6e8eb } }\n";
/// What the page adds to a picture: its width, and no traces in the history of the browser, which frames like these may not leave.
const FITTED: &str = "<style>body { margin: 0 } svg { display: block; width: 100% } \
    svg #search { opacity: 1; text-decoration: underline }</style>\
    <script>history.replaceState = function () {}; \
    addEventListener('resize', (e) => innerWidth || e.stopImmediatePropagation());</script>";
/// What has changed is the redder or bluer on light paper, what has not is white: on dark paper the other way round, each of its hue.
const DIFFERENCE: &str = "<style>@media screen and (prefers-color-scheme: dark) \
    { #frames { filter: invert(.88) hue-rotate(180deg) } }</style>";
/// The box of all; [`FITTED`] has another colour for it in the dark theme.
const ALL: Color = Color { r: 238, g: 238, b: 238 };
/// How a picture says that it is to be laid out once it is loaded.
const START: &str = " onload=\"init(evt)\"";
/// In a part of the page that is closed it has no width: it is laid out when it gets one.
const LATER: &str = "<script>(function start() { if (innerWidth > 0) init(); \
    else addEventListener('resize', start, { once: true }); })();</script>";

/// How a picture finds its width: while a page is printed, a part of it that is closed has none, less than its margins.
const WIDTH: &str = "svg.width.baseVal.value - xpad * 2";

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let mut graphs = Vec::new();
    for flame in &report.flames {
        if let Some(svg) = svg(report, flame, None)? {
            graphs.push((flame, svg));
        }
    }
    if graphs.is_empty() {
        return Ok(None);
    }
    // The first is that of the processor then, and the second the same by the wall's clock.
    let has_clocks = graphs.len() > 1 && graphs[0].0.on_cpu;
    Ok(Some(html! {
        p.note {
            "Each box is a library call, in the box of the call that made it; its width is time"
            @if has_clocks {
                span.of-cpu { ": of the processor, by samples, for all threads; of single groups wall time of calls. " }
                span.of-wall { ": wall time of calls. " }
            } @else { ". Wall time of calls, not of the processor alone. " }
            "Boxes have the colour of their library. Click a box to zoom; Ctrl-F searches. The same "
            "as a table: Contexts in " a href="#rows" { "All rows" } "."
        }
        @for (at, (flame, svg)) in graphs.iter().enumerate() {
            details.flame.of-cpu[has_clocks && flame.on_cpu].of-wall[has_clocks && at == 1] open[at <= usize::from(has_clocks)] {
                summary { (flame.name) }
                iframe title={ "Flame graph of " (flame.name) } style={ "height:" (height(svg)) "px" }
                    srcdoc=(framed(&flame.kind, svg)) {}
            }
        }
    }))
}

/// The picture, or nothing where no time was spent. Without a width it is as wide as its place,
/// and can be zoomed and searched.
pub(crate) fn svg(
    report: &Report,
    flame: &Flame,
    width: Option<usize>,
) -> Result<Option<String>, Error> {
    let mut palette = PaletteMap::default();
    let mut options = Options::default();
    options.title = flame.name.to_string();
    options.font_type = FONT.to_owned();
    options.font_width = CHARACTER;
    options.count_name = "ns".to_owned();
    options.min_width = NARROWEST;
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.bgcolors = Some(BackgroundColor::Flat(Color::new(255, 255, 255)));
    options.image_width = width;
    options.no_javascript = width.is_some();
    let lines = match &flame.kind {
        FlameKind::Time(stacks) => {
            let stacks = labelled(stacks);
            colour(report, &stacks, &mut palette);
            options.palette_map = Some(&mut palette);
            folded(&stacks)
        }
        FlameKind::Difference { before, now } => {
            let mut lines = Vec::new();
            let (before, now) = (folded(&labelled(before)), folded(&labelled(now)));
            let settings = inferno::differential::Options::default();
            inferno::differential::from_readers(
                settings,
                before.as_bytes(),
                now.as_bytes(),
                &mut lines,
            )
            .map_err(Error::Flame)?;
            String::from_utf8_lossy(&lines).into_owned()
        }
    };
    if lines.is_empty() {
        return Ok(None);
    }
    let mut svg = Vec::new();
    from_reader(&mut options, lines.as_bytes(), &mut svg).map_err(Error::Flame)?;
    // Three fonts, of which inferno makes the name of one.
    let quoted = format!("font-family:\"{FONT}\"");
    let fonts = format!("font-family:{FONT}");
    Ok(Some(String::from_utf8_lossy(&svg).replacen(&quoted, &fonts, 1)))
}

/// The stacks with names as the rest of the page has them.
fn labelled(stacks: &Stacks) -> Stacks {
    let mut stacks = stacks.clone();
    for frame in &mut stacks.frames {
        frame.function = Label::from(&frame.function).into();
        frame.library = Label::from(&frame.library).into();
    }
    stacks
}

/// The picture as a document in an attribute. Of all characters only two can end it or mean
/// another one.
fn framed(kind: &FlameKind, svg: &str) -> PreEscaped<String> {
    let start = svg.find("<svg").unwrap_or(0);
    let picture = svg[start..].replacen(START, "", 1);
    let picture = picture.replacen(WIDTH, &format!("Math.max(1, {WIDTH})"), 1);
    let colours = match kind {
        FlameKind::Time(_) => "",
        FlameKind::Difference { .. } => DIFFERENCE,
    };
    let document = format!("<!DOCTYPE html><style>{DARK}</style>{FITTED}{colours}{picture}{LATER}");
    PreEscaped(document.replace('&', "&amp;").replace('"', "&quot;"))
}

/// Gives frames the colour that their library or application has in the other pictures. (An application's own time, and calls
/// into it as a library, have one name and one colour.)
fn colour(report: &Report, stacks: &Stacks, palette: &mut PaletteMap) {
    let colours = Colours::new(report);
    // The box of all has no name.
    palette.insert("", ALL);
    for frame in &stacks.frames {
        let name = Label::from(&frame.library);
        let own = inferno::flamegraph::color::parse_hex_color(&colours.part(&name));
        palette.insert(folded_frame(frame), own.unwrap_or(ALL));
    }
}

/// Height of a picture as it says itself, pixels.
fn height(svg: &str) -> f64 {
    let after = svg.split(" height=\"").nth(1).and_then(|rest| rest.split('"').next());
    after.and_then(|number| number.parse().ok()).unwrap_or(400.0)
}
