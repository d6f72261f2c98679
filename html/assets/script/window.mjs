// The window of time that is shown or chosen: arithmetic alone, in nanoseconds since the start of the run.

// A window within [0, end] that is at least `least` long.
export function within([from, to], end, least) {
  const length = Math.min(Math.max(to - from, least), end);
  const start = Math.min(Math.max(from, 0), end - length);
  return [start, start + length];
}

// `view` made `factor` times as long (less than 1: zoomed in) around a moment that stays where it is.
export function zoomed([from, to], factor, at, end, least) {
  return within([at - (at - from) * factor, at + (to - at) * factor], end, least);
}

export const moved = ([from, to], by, end) => within([from + by, to + by], end, to - from);

// Round moments within a window, at most about `count` of them: a distance of 1, 2 or 5 times a power of ten.
export function ticksOf([from, to], count) {
  const rough = (to - from) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, at) => (first + at) * step);
}
