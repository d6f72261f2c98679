// What is known of a window of time: sums over the spans of lanes, by library, function and thread. No page needed.
import { hasAll } from "./arranging.mjs";
import { firstAfter } from "./lanes.mjs";

const RUN = 0;
const QUEUE = 1;

// Lanes whose names have all words; all of them where none has, since the words may be about something else.
export function wantedLanes(lanes, words) {
  const all = lanes.map((_, number) => number);
  const found = words.length ? all.filter((number) => hasAll(`${lanes[number].name} ${lanes[number].group}`.toLowerCase(), words)) : all;
  return { numbers: found.length ? found : all, areFound: words.length > 0 && found.length > 0 };
}

// One row for each thing that `keyOf` tells spans apart by: its times in each state, and the lanes that it was in.
export function sumsOf(lanes, numbers, [from, to], states, keyOf) {
  const rows = new Map();
  for (const number of numbers) {
    const { spans } = lanes[number];
    for (let at = firstAfter(spans, from); at < spans.length; at += 1) {
      const span = spans[at];
      if (span[0] >= to) break;
      const key = keyOf(span, number);
      if (key === null) continue;
      if (!rows.has(key)) rows.set(key, { key, times: new Array(states).fill(0), lanes: new Set() });
      const row = rows.get(key);
      row.times[span[2]] += Math.min(span[1], to) - Math.max(span[0], from);
      row.lanes.add(number);
    }
  }
  return [...rows.values()];
}

// A row's time: busy, waiting for a processor, and waiting for anything else.
export const busy = (row) => row.times[RUN];
export const queued = (row) => row.times[QUEUE];
export const blocked = (row) => row.times.reduce((sum, time, state) => sum + (state > QUEUE ? time : 0), 0);
export const whole = (row) => row.times.reduce((sum, time) => sum + time, 0);

// Rows from the largest by `sizeOf` on; equals as they were; those of nothing are left out.
export const byLargest = (rows, sizeOf) =>
  rows.filter((row) => sizeOf(row) > 0).sort((a, b) => sizeOf(b) - sizeOf(a));

// Single waits in the window, the longest first: `[lane, span]`.
export function longestWaits(lanes, numbers, [from, to], most) {
  const found = [];
  for (const number of numbers) {
    const { spans } = lanes[number];
    for (let at = firstAfter(spans, from); at < spans.length && spans[at][0] < to; at += 1) {
      if (spans[at][2] > QUEUE) found.push([number, spans[at]]);
    }
  }
  const length = ([, span]) => span[1] - span[0];
  return found.sort((a, b) => length(b) - length(a)).slice(0, most);
}
