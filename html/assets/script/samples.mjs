// Samples of what threads ran. A lane's are sorted `[moment, place]`, with the number of a place; a place is `[owner, function, weight]`:
// the number of the library, a name, and how many samples such a one stands for. No page needed.

// Samples as the page has them: how much later each is than the one before, in microseconds, and its place.
export function unpackedSamples(packed = []) {
  const samples = [];
  let moment = 0;
  for (let at = 0; at < packed.length; at += 2) {
    moment += packed[at] * 1000;
    samples.push([moment, packed[at + 1]]);
  }
  return samples;
}

// Position of the first sample that is not before `moment`.
export function firstSample(samples, moment) {
  let [low, high] = [0, samples.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (samples[middle][0] >= moment) high = middle;
    else low = middle + 1;
  }
  return low;
}

// How far apart samples of a thread that runs may be: where they are thinned out, each stands for several ticks.
export const sampleReach = ({ sample, places }) => sample * places.reduce((most, [, , weight]) => Math.max(most, weight), 1);

// One row for each thing that `keyOf` tells places apart by: how many samples of the window found it, and in which lanes.
export function sampleSums(lanes, numbers, [from, to], places, keyOf) {
  const rows = new Map();
  for (const number of numbers) {
    const { ran } = lanes[number];
    for (let at = firstSample(ran, from); at < ran.length && ran[at][0] < to; at += 1) {
      const key = keyOf(ran[at][1]);
      if (!rows.has(key)) rows.set(key, { key, samples: 0, lanes: new Set() });
      const row = rows.get(key);
      row.samples += places[ran[at][1]][2];
      row.lanes.add(number);
    }
  }
  return [...rows.values()].sort((a, b) => b.samples - a.samples);
}

// The library that most samples found in each of `columns` of equal length; -1 where there are none.
export function strongest(lanes, numbers, [from, to], places, columns) {
  const width = (to - from) / columns;
  const counts = Array.from({ length: columns }, () => null);
  for (const number of numbers) {
    const { ran } = lanes[number];
    for (let at = firstSample(ran, from); at < ran.length && ran[at][0] < to; at += 1) {
      const column = Math.min(Math.floor((ran[at][0] - from) / width), columns - 1);
      const [owner, , weight] = places[ran[at][1]];
      counts[column] ||= new Map();
      counts[column].set(owner, (counts[column].get(owner) || 0) + weight);
    }
  }
  return counts.map((of) => (of ? [...of].reduce((most, one) => (one[1] > most[1] ? one : most))[0] : -1));
}

// The sample of a lane that is nearest to a moment, no further from it than `reach`; null if there is none.
export function nearestSample({ ran }, moment, reach) {
  const after = firstSample(ran, moment);
  const near = [ran[after - 1], ran[after]].filter((sample) => sample && Math.abs(sample[0] - moment) <= reach);
  return near.sort((a, b) => Math.abs(a[0] - moment) - Math.abs(b[0] - moment))[0] || null;
}
