//! The largest entries, as horizontal bars with their names above them.

use crate::canvas::Align;
use crate::chart::{BODY, Chart, MARGIN, NOTE, Page, Sheet, TOP, WIDTH};
use crate::data::total;
use crate::palette::{self, Colour, REST, RULE};
use crate::pie::{outline, rest_name};
use crate::quantity::{quantity, share};
use crate::{Bar, Error, Group, Heading, Unit};

/// Height of a name and its bar, and the space to the next.
const ROW: f64 = 46.0;
const NAME_BASELINE: f64 = 15.0;
const BAR_TOP: f64 = 22.0;
const BAR_BOTTOM: f64 = 37.0;
const VALUE_BASELINE: f64 = 35.0;
/// Height of the line above what is added up.
const SECTION: f64 = 40.0;
/// Most room for the group's name behind an entry's.
const GROUP_ROOM: f64 = 230.0;
/// A value above 0 is never invisible.
const LEAST: f64 = 1.5;

struct Row {
    name: String,
    group: String,
    value: f64,
    colour: Colour,
}

/// The `top` largest of `bars`, then what is left of each group.
///
/// Bars have the colour of their group, as in [`pie`](crate::pie()) of the same groups; shares
/// are of the sum of the groups' values. If just one bar would be left over it is shown as well.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite, [`Error::Group`] for a bar whose
/// group does not exist.
pub fn bars(
    heading: &Heading<'_>,
    unit: Unit<'_>,
    groups: &[Group],
    bars: &[Bar],
    top: usize,
) -> Result<Chart, Error> {
    let whole = total(groups.iter().map(|g| (g.name.as_str(), g.value)))?;
    total(bars.iter().map(|b| (b.label.as_str(), b.value)))?;
    if let Some(bar) = bars.iter().find(|b| b.group >= groups.len()) {
        let (label, group, groups) = (bar.label.clone(), bar.group, groups.len());
        return Err(Error::Group { label, group, groups });
    }

    let mut sorted: Vec<&Bar> = bars.iter().collect();
    sorted.sort_by(|a, b| {
        let ties = || a.label.cmp(&b.label).then(a.group.cmp(&b.group));
        b.value.total_cmp(&a.value).then_with(ties)
    });
    let top = if sorted.len() == top.saturating_add(1) { sorted.len() } else { top };
    let (first, left) = sorted.split_at(top.min(sorted.len()));
    let colours = palette::assign(groups);
    let first: Vec<Row> = first
        .iter()
        .map(|bar| Row {
            name: bar.label.clone(),
            group: groups[bar.group].shown(),
            value: bar.value,
            colour: colours[bar.group].unwrap_or(REST),
        })
        .collect();
    let added = add_up(groups, &colours, left);

    let section = if added.is_empty() { 0.0 } else { SECTION };
    let rows = (first.len() + added.len()).max(1) as f64;
    let height = TOP + ROW * rows + section + MARGIN / 2.0;
    let mut page = Page::new(&Sheet::alone(*heading))?;
    if bars.is_empty() {
        let room = WIDTH - 2.0 * MARGIN;
        page.label("Nothing to show.", (MARGIN, TOP + 20.0), Align::Left, room, NOTE);
    }
    let scale = Scale::new(&page, &[&first, &added], unit, whole);
    draw(&mut page, &first, TOP, &scale);
    if !added.is_empty() {
        let y = TOP + ROW * first.len() as f64;
        let title = format!("The other {}, added up", left.len());
        let room = WIDTH - 2.0 * MARGIN;
        page.label(&title, (MARGIN, y + 24.0), Align::Left, room, NOTE);
        draw(&mut page, &added, y + SECTION, &scale);
    }
    page.finish(height)
}

/// What is left of each group, in the order of the groups; the colourless ones together.
fn add_up(groups: &[Group], colours: &[Option<Colour>], left: &[&Bar]) -> Vec<Row> {
    let mut sums = vec![(0, 0.0); groups.len()];
    for bar in left {
        let (count, sum) = &mut sums[bar.group];
        *count += 1;
        *sum += bar.value;
    }
    let row = |name: String, (count, value): (usize, f64), colour| Row {
        name,
        group: format!("{count} more"),
        value,
        colour,
    };
    let mut rows = Vec::new();
    let (mut rest, mut rest_sum) = (Vec::new(), (0, 0.0));
    for ((group, colour), &sum) in groups.iter().zip(colours).zip(&sums) {
        match colour {
            _ if sum.1 <= 0.0 => {}
            Some(colour) => rows.push(row(group.shown(), sum, *colour)),
            None => {
                rest.push(group);
                rest_sum = (rest_sum.0 + sum.0, rest_sum.1 + sum.1);
            }
        }
    }
    rows.sort_by(|a, b| b.value.total_cmp(&a.value));
    rows.extend(rest_name(&rest).map(|name| row(name, rest_sum, REST)));
    rows
}

/// Length of bars, and the text at their ends.
struct Scale<'a> {
    pixels_per_unit: f64,
    value_room: f64,
    unit: Unit<'a>,
    whole: f64,
}

impl<'a> Scale<'a> {
    fn new(page: &Page, rows: &[&[Row]], unit: Unit<'a>, whole: f64) -> Self {
        let mut scale = Self { pixels_per_unit: 0.0, value_room: 0.0, unit, whole };
        let mut largest: f64 = 0.0;
        for row in rows.iter().copied().flatten() {
            let width = page.font.width(&scale.value(row), BODY.size, BODY.weight);
            scale.value_room = scale.value_room.max(width + 1.0);
            largest = largest.max(row.value);
        }
        if largest > 0.0 {
            let longest = WIDTH - 2.0 * MARGIN - scale.value_room - 10.0;
            scale.pixels_per_unit = longest / largest;
        }
        scale
    }

    fn length(&self, row: &Row) -> f64 {
        if row.value > 0.0 { (row.value * self.pixels_per_unit).max(LEAST) } else { 0.0 }
    }

    fn value(&self, row: &Row) -> String {
        format!("{} · {}", quantity(row.value, self.unit), share(row.value, self.whole))
    }
}

fn draw(page: &mut Page, rows: &[Row], top: f64, scale: &Scale<'_>) {
    for (i, row) in rows.iter().enumerate() {
        let y = top + ROW * i as f64;
        let room = WIDTH - 2.0 * MARGIN;
        let group_room =
            (page.font.width(&row.group, BODY.size, BODY.weight) + 1.0).min(GROUP_ROOM);
        let name_room = room - group_room - 12.0;
        let name_width =
            page.label(&row.name, (MARGIN, y + NAME_BASELINE), Align::Left, name_room, BODY);
        let group_x = MARGIN + name_width + 12.0;
        page.label(&row.group, (group_x, y + NAME_BASELINE), Align::Left, group_room, NOTE);

        let (from, to) = ((MARGIN, y + BAR_TOP), (MARGIN + scale.length(row), y + BAR_BOTTOM));
        let value = scale.value(row);
        if row.value > 0.0 {
            page.canvas.rectangle(from, to, row.colour);
            page.describe(&format!("{} ({})", row.name, row.group), &value);
            page.canvas.line(outline(from, to), 1.0, row.colour.darker());
        } else {
            // Where it would begin.
            page.canvas.line(vec![from, (from.0, to.1)], 1.0, RULE);
        }
        let value_at = (to.0 + 10.0, y + VALUE_BASELINE);
        page.label(&value, value_at, Align::Left, scale.value_room, BODY);
    }
}
