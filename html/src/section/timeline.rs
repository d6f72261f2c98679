//! Threads by time: drawn by the script, since only it knows what is looked at.

use std::collections::HashMap;

use chase_viz::{State, state_colour};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::colours::{Colours, cause_words, state};
use crate::figure::{count, plural, table, time};
use crate::model::{Does, Library, RanAt, RanPlace, Span, Timeline, WaitCause};
use crate::{Error, Label, Report};

/// Spans of the table for those who can't see the picture.
const LONGEST: usize = 50;
/// States, in the order in which the picture puts one on the other.
const STATES: [Does; 10] = [
    Does::Run,
    Does::Queue,
    Does::Wait(WaitCause::Lock),
    Does::Wait(WaitCause::Condition),
    Does::Wait(WaitCause::Barrier),
    Does::Wait(WaitCause::Join),
    Does::Wait(WaitCause::Sleep),
    Does::Wait(WaitCause::Io),
    Does::Wait(WaitCause::Page),
    Does::Wait(WaitCause::Other),
];

/// What the script is handed; see `assets/script/lanes.mjs`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'r> {
    end: u64,
    states: Vec<String>,
    texts: Vec<&'r Label>,
    /// Of each text, the library of that function; -1 if it is none.
    library_of: Vec<i64>,
    /// Name and colour.
    libraries: Vec<(&'r Label, String)>,
    kinds: Vec<Kind>,
    lanes: Vec<LaneData<'r>>,
    marks: Vec<(u64, &'r Label)>,
    /// What samples have found: library, function, how many samples such a one stands for. Empty: there are none.
    places: Vec<(usize, &'r Label, usize)>,
    /// Libraries of these: name and colour.
    owners: Vec<(&'r Label, String)>,
    /// The processor time that a sample stands for.
    sample: u64,
}

#[derive(Serialize)]
struct LaneData<'r> {
    name: &'r Label,
    group: &'r Label,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    idle: bool,
    /// Length and number of the kind, one after the other; the kind of a gap is -1.
    spans: Vec<i64>,
    /// Of each sample, how much later it was taken than the one before, in microseconds, and what it has found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ran: Vec<u64>,
}

/// What a span is: number of the state, text, waker, and what that did.
type Kind = (usize, usize, i64, usize);

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(timeline) = report.timeline.as_ref().filter(|timeline| timeline.end_ns > 0.0) else {
        return Ok(None);
    };
    let json = serde_json::to_string(&data(report, timeline))?.replace('<', "\\u003c");
    let used = |does: &Does| {
        timeline.lanes.iter().flat_map(|lane| &lane.spans).any(|span| span.does == *does)
    };
    let buttons = [
        ("in", "Zoom in"),
        ("out", "Zoom out"),
        ("left", "←"),
        ("right", "→"),
        ("window", "Zoom to the chosen part"),
        ("all", "All of it"),
        ("unfold", "Open or fold groups"),
    ];
    Ok(Some(html! {
        div #timeline-box hidden {
            p.note.hint { "Drag over a part of it, and the page is about that part. Click a group to see its threads." }
            @if timeline.more_lanes > 0 {
                p.note { "The picture has " (plural(timeline.lanes.len(), "thread")) "; of " (count(timeline.more_lanes as u64)) " more nothing is shown." }
            }
            @if is_notably_wrong(timeline) {
                p.note { "Of what is busy here, " (time(timeline.seems_busy_ns)) " are waits too short to be kept one by one." }
            }
            @if timeline.left_out_ns > 0.0 {
                p.note { "There are so many that calls and waits of less than " (time(timeline.left_out_ns)) " are left out: threads seem busy then." }
            }
            div.tools { @for (does, text) in buttons {
                button type="button" data-do=(does) aria-label=[name_of(does)] { (text) }
            } }
            ul.legend { @for does in STATES {
                li hidden[!used(&does)] { i.swatch style={ "--c:" (colour(does)) } {} (words(does)) }
            } }
            canvas tabindex="0" role="application" aria-label="Threads by time" {}
            p.status role="status" {}
            details.folded {
                summary { "Keys, and what the picture shows" }
                p.note {
                    "While a window is chosen, all sections that can follow it do; the others say that they are about the whole run. "
                    "Ctrl and the wheel zoom. With the keys: arrows, + and −, Shift with the arrows chooses, Enter opens or zooms, Escape leaves. "
                    "Lines lead from who ended a wait to who waited, once few enough are in sight."
                    @if !timeline.ran_places.is_empty() {
                        " At the foot of a row: whose code most samples found to run there, in the colours of libraries."
                    }
                }
                @for note in &timeline.notes { p.note { (note) } }
            }
            div.window.scroll role="region" aria-label="Threads in the window" tabindex="0" {}
        }
        noscript { p { "The picture needs the script of this page. The longest waits are below." } }
        @if !timeline.marks.is_empty() {
            p { "Marks: "
                @for (at, (moment, name)) in timeline.marks.iter().enumerate() {
                    @if at > 0 { ", " } (name) " at " (time(*moment))
                }
            }
        }
        details.folded { summary { "The longest waits, one by one" } (longest(timeline)) }
        script #timeline-data type="application/json" { (PreEscaped(json)) }
    }))
}

/// Whether the picture has notably more that is busy than there was.
fn is_notably_wrong(timeline: &Timeline) -> bool {
    const NOTABLE: f64 = 0.02;
    let spans = timeline.lanes.iter().flat_map(|lane| &lane.spans);
    let all: f64 = spans.map(|span| span.to_ns - span.from_ns).sum();
    timeline.seems_busy_ns > NOTABLE * all
}

/// What a button does whose text is a sign.
fn name_of(button: &str) -> Option<&'static str> {
    match button {
        "left" => Some("Earlier"),
        "right" => Some("Later"),
        _ => None,
    }
}

fn words(does: Does) -> String {
    match does {
        Does::Run => "busy".to_owned(),
        Does::Queue => "waiting for a processor".to_owned(),
        Does::Wait(cause) => format!("waiting for {}", cause_words(cause)),
    }
}

fn colour(does: Does) -> String {
    state_colour(match does {
        Does::Run => State::Running,
        Does::Queue => State::Runnable,
        Does::Wait(cause) => state(cause),
    })
}

fn data<'r>(report: &'r Report, timeline: &'r Timeline) -> Data<'r> {
    let colours = Colours::new(report);
    let library = |library: &'r Library| (&library.name, colours.named(&library.name));
    let mut texts = Texts::default();
    let mut kinds = Kinds::default();
    let lanes = timeline.lanes.iter().map(|lane| LaneData {
        name: &lane.name,
        group: &lane.group,
        idle: lane.is_idle,
        spans: packed(&lane.spans, &mut texts, &mut kinds),
        ran: packed_samples(&lane.ran),
    });
    let lanes = lanes.collect();
    let mut owners: Vec<(&Label, String)> = Vec::new();
    let mut place = |place: &'r RanPlace| {
        let owner = (&place.library, colours.ran(place));
        let known = owners.iter().position(|known| *known == owner);
        let owner = known.unwrap_or_else(|| {
            owners.push(owner);
            owners.len() - 1
        });
        (owner, &place.function, place.stands_for)
    };
    let places = timeline.ran_places.iter().map(&mut place).collect();
    Data {
        end: timeline.end_ns.round() as u64,
        states: STATES.map(words).into(),
        texts: texts.all,
        library_of: texts.library_of,
        libraries: report.libraries.iter().map(library).collect(),
        kinds: kinds.all,
        lanes,
        marks: timeline.marks.iter().map(|(moment, name)| (moment.round() as u64, name)).collect(),
        places,
        owners,
        sample: timeline.sample_ns.round() as u64,
    }
}

/// Texts, each of them once.
#[derive(Default)]
struct Texts<'r> {
    all: Vec<&'r Label>,
    library_of: Vec<i64>,
    numbers: HashMap<(&'r Label, Option<usize>), usize>,
}

impl<'r> Texts<'r> {
    fn number(&mut self, text: &'r Label, library: Option<usize>) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry((text, library)).or_insert(next);
        if number == next {
            self.all.push(text);
            self.library_of.push(library.map_or(-1, |library| library as i64));
        }
        number
    }
}

/// Kinds of spans, each of them once: most spans are of a few.
#[derive(Default)]
struct Kinds {
    all: Vec<Kind>,
    numbers: HashMap<Kind, usize>,
}

impl Kinds {
    fn number(&mut self, kind: Kind) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(kind).or_insert(next);
        if number == next {
            self.all.push(kind);
        }
        number
    }
}

/// The spans of a lane, as [`LaneData`] has them.
fn packed<'r>(spans: &'r [Span], texts: &mut Texts<'r>, kinds: &mut Kinds) -> Vec<i64> {
    let mut packed = Vec::new();
    let mut end = 0;
    for span in spans {
        let (from, to) = (span.from_ns.round() as i64, span.to_ns.round() as i64);
        if from != end {
            packed.extend([from - end, -1]);
        }
        end = from.max(to);
        let does = STATES.iter().position(|does| *does == span.does).unwrap_or_default();
        let waker = span.waker.map_or(-1, |waker| waker as i64);
        let (text, doing) =
            (texts.number(&span.text, span.library), texts.number(&span.waker_in, None));
        packed.extend([end - from, kinds.number((does, text, waker, doing)) as i64]);
    }
    packed
}

/// The samples of a lane, as [`LaneData`] has them.
fn packed_samples(ran: &[RanAt]) -> Vec<u64> {
    let mut before = 0;
    let pair = |sample: &RanAt| {
        let at = (sample.at_ns / 1e3).round() as u64;
        let later = at.saturating_sub(before);
        before = at;
        [later, sample.place as u64]
    };
    ran.iter().flat_map(pair).collect()
}

fn longest(timeline: &Timeline) -> Markup {
    let mut all: Vec<(&Label, &Span)> = Vec::new();
    for lane in &timeline.lanes {
        let waits = lane.spans.iter().filter(|span| span.does != Does::Run);
        all.extend(waits.map(|span| (&lane.name, span)));
    }
    let length = |span: &Span| span.to_ns - span.from_ns;
    all.sort_by(|(_, a), (_, b)| length(b).total_cmp(&length(a)));
    let columns = [
        ("thread", false),
        ("from", true),
        ("for", true),
        ("what", false),
        ("in", false),
        ("ended by", false),
    ];
    let row = |(name, span): &(&Label, &Span)| {
        let waker = span.waker.and_then(|waker| timeline.lanes.get(waker));
        vec![
            crate::figure::name(name),
            time(span.from_ns),
            time(length(span)),
            html! { span.words { (words(span.does)) } },
            crate::figure::name(&span.text),
            html! { @if let Some(waker) = waker { (waker.name) @if !span.waker_in.as_str().is_empty() { " in " (span.waker_in) } } },
        ]
    };
    let rows: Vec<_> = all.iter().take(LONGEST).map(row).collect();
    html! {
        (table("The longest waits", &columns, &rows))
        @if all.len() > LONGEST { p.note { "… and " (plural(all.len() - LONGEST, "shorter one")) "." } }
    }
}
