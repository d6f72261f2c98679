// The timeline's picture, on a canvas: a row per thread, or per folded group of them.
import { columnsOf, wakings } from "./lanes.mjs";
import { timeText } from "./quantities.mjs";
import { sampleReach, strongest } from "./samples.mjs";
import { ticksOf } from "./window.mjs";

export const ROW = 20;
export const HEAD = 22;
// Height of the strip at a row's foot: whose code ran, by samples.
const STRIP = 4;
const MOST_ARROWS = 60;

// Pixels of a moment.
export const xOf = (moment, view, { left, width }) =>
  left + ((moment - view[0]) / (view[1] - view[0])) * (width - left);

export const momentAt = (x, view, { left, width }) =>
  view[0] + ((x - left) / (width - left)) * (view[1] - view[0]);

// Colours and sizes are read from the page, so that they follow its theme.
export function paint(canvas, { data, rows, view, chosen, focus, place, colours, ink }) {
  const scale = devicePixelRatio || 1;
  const height = HEAD + rows.length * ROW + 4;
  canvas.width = Math.round(place.width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = ink.font;
  pen.textBaseline = "middle";
  axis(pen, view, place, height, ink);
  rows.forEach((row, at) => paintRow(pen, data, row, HEAD + at * ROW, { view, place, colours, ink, isFocus: at === focus }));
  paintMarks(pen, data, view, place, height, ink);
  paintArrows(pen, data, rows, view, place, ink);
  if (chosen) {
    const [from, to] = chosen.map((moment) => Math.min(Math.max(xOf(moment, view, place), place.left), place.width));
    pen.globalAlpha = 0.18;
    pen.fillStyle = ink.link;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.link;
    pen.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 1), height - 1);
  }
}

function axis(pen, view, place, height, ink) {
  pen.fillStyle = ink.muted;
  pen.strokeStyle = ink.rule;
  pen.textAlign = "center";
  const count = Math.max(Math.floor((place.width - place.left) / 90), 2);
  for (const moment of ticksOf(view, count)) {
    const x = Math.round(xOf(moment, view, place)) + 0.5;
    pen.beginPath();
    pen.moveTo(x, HEAD - 6);
    pen.lineTo(x, height);
    pen.stroke();
    if (x > place.left + 24 && x < place.width - 24) pen.fillText(timeText(moment).replace(/\.0+ /, " "), x, 8);
  }
}

function shortened(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 2 && pen.measureText(text.slice(0, length) + "…").width > room) length -= 1;
  return text.slice(0, length) + "…";
}

// Each pixel has the states that its threads were in, one on the other, by their time.
function paintRow(pen, data, row, top, { view, place, colours, ink, isFocus }) {
  pen.fillStyle = ink.text;
  pen.textAlign = "left";
  const sign = row.group === null ? "" : row.isOpen ? "▾ " : "▸ ";
  const indent = row.isInner ? 14 : 0;
  pen.fillText(sign + shortened(pen, row.label, place.left - 26 - indent), 2 + indent, top + ROW / 2);
  if (isFocus) {
    pen.strokeStyle = ink.link;
    pen.strokeRect(0.5, top + 0.5, place.width - 1, ROW - 1);
  }
  const columns = Math.max(Math.floor(place.width - place.left), 1);
  const states = colours.states.length;
  const times = new Float64Array(columns * states);
  for (const number of row.lanes) {
    columnsOf(data.lanes[number], view, columns, states, (column, state, time) => {
      times[column * states + state] += time;
    });
  }
  const whole = ((view[1] - view[0]) / columns) * row.lanes.length;
  const strip = data.places.length ? STRIP : 0;
  const room = ROW - 4 - strip;
  // A line of paper is between the strip and the states, which may be nearly as dark.
  const isBusy = (column) => times[column * states] > 0;
  if (strip) paintStrip(pen, data, row, top + ROW - 1 - STRIP, { view, place, columns, owned: colours.owned, isBusy });
  for (let column = 0; column < columns; column += 1) {
    let y = top + ROW - 2 - strip;
    for (let state = 0; state < states; state += 1) {
      const part = (times[column * states + state] / whole) * room;
      if (part <= 0) continue;
      pen.fillStyle = colours.states[state];
      pen.globalAlpha = row.isIdle ? 0.5 : 1;
      pen.fillRect(place.left + column, y - part, 1, part);
      y -= part;
    }
  }
  pen.globalAlpha = 1;
}

// What a sample has found lasts until the next one, or until the thread waits, so that a thread that runs has a line without gaps.
function paintStrip(pen, data, row, top, { view, place, columns, owned, isBusy }) {
  const owners = strongest(data.lanes, row.lanes, view, data.places, columns);
  // A thread that runs has a sample in each of so many columns.
  const gap = Math.ceil((2 * sampleReach(data)) / ((view[1] - view[0]) / columns)) + 1;
  for (let column = 0; column < columns; column += 1) {
    if (owners[column] < 0) continue;
    let next = column + 1;
    while (next < columns && next < column + gap && owners[next] < 0 && isBusy(next)) next += 1;
    const lasts = next < columns && (owners[next] >= 0 || !isBusy(next));
    pen.fillStyle = owned[owners[column]];
    pen.fillRect(place.left + column, top, lasts ? next - column : 1, STRIP - 1);
  }
}

function paintMarks(pen, data, view, place, height, ink) {
  pen.strokeStyle = ink.text;
  pen.setLineDash([3, 3]);
  for (const [moment] of data.marks) {
    if (moment < view[0] || moment > view[1]) continue;
    const x = Math.round(xOf(moment, view, place)) + 0.5;
    pen.beginPath();
    pen.moveTo(x, HEAD - 4);
    pen.lineTo(x, height);
    pen.stroke();
  }
  pen.setLineDash([]);
}

// From who woke to who was woken, where both are in sight and there are few enough to be told apart.
function paintArrows(pen, data, rows, view, place, ink) {
  const rowOf = new Map();
  rows.forEach((row, at) => {
    if (!row.isIdle) for (const lane of row.lanes) rowOf.set(lane, at);
  });
  const found = wakings(data.lanes, rowOf.keys(), view, MOST_ARROWS + 1);
  if (found.length > MOST_ARROWS) return;
  pen.strokeStyle = ink.text;
  pen.fillStyle = ink.text;
  pen.globalAlpha = 0.5;
  pen.lineWidth = 0.75;
  for (const [lane, waker, moment] of found) {
    const [to, from] = [rowOf.get(lane), rowOf.get(waker)];
    if (to === undefined || from === undefined || to === from) continue;
    const x = xOf(moment, view, place);
    const y = (row) => HEAD + row * ROW + ROW / 2;
    const way = to > from ? 1 : -1;
    const end = y(to) - way * (ROW / 2 - 2);
    pen.beginPath();
    pen.moveTo(x, y(from));
    pen.lineTo(x, end);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x, end);
    pen.lineTo(x - 3, end - way * 5);
    pen.lineTo(x + 3, end - way * 5);
    pen.fill();
  }
  pen.globalAlpha = 1;
  pen.lineWidth = 1;
}
