// Threads as lanes of the timeline: which are shown, what of them is in a window, who woke whom. No page needed.
//
// A lane is `{name, group, idle, spans, ran}`; `ran` are samples (samples.mjs); spans are sorted `[from, to, state, text, waker, at, number]`: nanoseconds, a number of a
// state, what to say of it, the number of the lane that ended it (or -1), what that did, and the number of the text.
import { unpackedSamples } from "./samples.mjs";

// Lanes as the page has them: of a span only its length and what it is, `[state, text, waker, at]`, by number, in one list for all
// of a lane's; -1 is a gap. Most spans begin where the one before ends, and most are alike.
export function unpacked({ texts, kinds, lanes, ...rest }) {
  const spansOf = (packed) => {
    const spans = [];
    let from = 0;
    for (let at = 0; at < packed.length; at += 2) {
      const to = from + packed[at];
      if (packed[at + 1] >= 0) {
        const [state, text, waker, doing] = kinds[packed[at + 1]];
        spans.push([from, to, state, texts[text], waker, texts[doing], text]);
      }
      from = to;
    }
    return spans;
  };
  const lane = ({ spans, ran, ...named }) => ({ ...named, spans: spansOf(spans), ran: unpackedSamples(ran) });
  return { ...rest, texts, lanes: lanes.map(lane) };
}

// Threads that have hardly anything to do are one group, and come last.
const IDLE = "idle threads";
export const foldedGroup = (lane) => (lane.idle ? IDLE : lane.group);

// What a lane without others of its group is called: as the group is in the rest of the page, unless its own name says as much.
export function aloneName({ name, group }) {
  const own = name.replace(/ \d+$/, "");
  return !group || own === group ? name : `${group}, ${name}`;
}

// The lanes and groups that are shown, top to bottom: a group of several threads is folded to one row until it is opened.
export function shownRows(lanes, open, isFound) {
  const groups = new Map();
  for (const isIdle of [false, true]) {
    lanes.forEach((lane, number) => {
      if (Boolean(lane.idle) !== isIdle || !isFound(lane)) return;
      const group = foldedGroup(lane);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(number);
    });
  }
  const rows = [];
  for (const [group, members] of groups) {
    if (members.length === 1) {
      rows.push({ label: aloneName(lanes[members[0]]), lanes: members, group: null });
      continue;
    }
    const isOpen = open.has(group);
    const isIdle = group === IDLE && !isOpen;
    rows.push({ label: `${group} (${members.length})`, lanes: members, group, isOpen, isIdle });
    if (isOpen) for (const member of members) rows.push({ label: lanes[member].name, lanes: [member], group: null, isInner: true });
  }
  return rows;
}

// Position of the first span that ends after `from`.
export function firstAfter(spans, from) {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle][1] > from) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Time in each state within a window.
export function stateTimes(lane, [from, to], states) {
  const times = new Array(states).fill(0);
  for (let at = firstAfter(lane.spans, from); at < lane.spans.length; at += 1) {
    const span = lane.spans[at];
    if (span[0] >= to) break;
    times[span[2]] += Math.min(span[1], to) - Math.max(span[0], from);
  }
  return times;
}

// How a lane looks in `columns` of equal length: for each, the time in each state.
export function columnsOf(lane, [from, to], columns, states, add) {
  const width = (to - from) / columns;
  for (let at = firstAfter(lane.spans, from); at < lane.spans.length; at += 1) {
    const [start, end, state] = lane.spans[at];
    if (start >= to) break;
    let column = Math.max(Math.floor((start - from) / width), 0);
    const last = Math.min(Math.ceil((end - from) / width), columns);
    for (; column < last; column += 1) {
      const left = from + column * width;
      add(column, state, Math.min(end, left + width) - Math.max(start, left));
    }
  }
}

// The span of a lane at a moment.
export function spanAt(lane, moment) {
  const span = lane.spans[firstAfter(lane.spans, moment)];
  return span && span[0] <= moment ? span : null;
}

// Wakings whose end is in the window, the longest waits first: `[lane, waker, moment, length]`.
export function wakings(lanes, numbers, [from, to], most) {
  const found = [];
  for (const number of numbers) {
    const { spans } = lanes[number];
    for (let at = firstAfter(spans, from); at < spans.length; at += 1) {
      const [start, end, , , waker] = spans[at];
      if (end > to) break;
      if (waker >= 0) found.push([number, waker, end, end - start]);
    }
  }
  return found.sort((a, b) => b[3] - a[3]).slice(0, most);
}
