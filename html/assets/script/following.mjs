// What the sections show while a window of the timeline is chosen: in place of the whole run's figures those of the window,
// as far as single calls and waits tell; where they don't, the heading says that the figures are of the whole run.
import { hasAll } from "./arranging.mjs";
import { element } from "./elements.mjs";
import { onFilter, pageWords } from "./filter.mjs";
import { keepFitting } from "./fitting.mjs";
import { shareText, timeText } from "./quantities.mjs";
import { sampleSums } from "./samples.mjs";
import { busy, blocked, byLargest, longestWaits, queued, sumsOf, wantedLanes, whole } from "./sums.mjs";

const SHOWN = 12;
// Libraries of a table of threads by library.
const COLUMNS = 6;
const OWN = "in no call that was kept";

export class Following {
  // `states` are `{name, colour}`; `onEnd` is called when the window is given up.
  constructor(data, states, onEnd) {
    this.data = data;
    this.states = states;
    this.window = null;
    this.places = [...document.querySelectorAll("[data-follows]")].map((place) => {
      place.classList.add("scroll", "window");
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", `In the window: ${place.dataset.follows}`);
      return { place, what: place.dataset.follows, fit: keepFitting(place) };
    });
    this.chip = document.getElementById("window-chip");
    if (this.chip) this.chip.querySelector("button").addEventListener("click", onEnd);
    onFilter(() => this.fill());
    document.addEventListener("change", (event) => {
      if (event.target.name === "clock") this.fill();
    });
    document.documentElement.dataset.window = "run";
  }

  // `window` is `[from, to]`, or null for the whole run.
  choose(window) {
    const isSame = window === this.window || (window && this.window && window.every((moment, at) => moment === this.window[at]));
    if (isSame) return;
    this.window = window;
    document.documentElement.dataset.window = window ? "chosen" : "run";
    if (this.chip && window) this.chip.querySelector("span").textContent = this.title();
    this.fill();
  }

  title() {
    const [from, to] = this.window;
    return `${timeText(from)} to ${timeText(to)} (${timeText(to - from)})`;
  }

  fill() {
    if (!this.window) return;
    const words = pageWords();
    const { numbers, areFound } = wantedLanes(this.data.lanes, words);
    this.numbers = numbers;
    // Words that name threads have chosen these; others are to be in the rows.
    this.words = areFound ? [] : words;
    this.isCpu = document.documentElement.dataset.clock === "cpu";
    for (const { place, what, fit } of this.places) {
      place.replaceChildren();
      this[what](place);
      fit();
    }
  }

  sums(keyOf) {
    return sumsOf(this.data.lanes, this.numbers, this.window, this.states.length, keyOf);
  }

  library(number) {
    return this.data.libraries[number] || [OWN, "var(--muted)"];
  }

  // Whether the processor's time is told by samples, as it is of the whole run.
  isBySamples() {
    return this.isCpu && this.data.places.length > 0;
  }

  libraries(place) {
    if (this.isBySamples()) return this.processor(place);
    const size = this.isCpu ? busy : whole;
    const rows = byLargest(this.sums((span) => this.data.libraryOf[span[6]]), size);
    const all = rows.reduce((sum, row) => sum + size(row), 0);
    this.table(place, this.isCpu ? "Busy, by library" : "Wall time by library", ["library", "", "share", "busy", "waiting"], rows.map((row) => {
      const [name, colour] = this.library(row.key);
      return [[name, colour], this.bar(row, colour, size(rows[0])), shareText(size(row), all), time(busy(row)), time(blocked(row) + queued(row))];
    }));
  }

  sampled(keyOf) {
    const rows = sampleSums(this.data.lanes, this.numbers, this.window, this.data.places, keyOf);
    return { rows, all: rows.reduce((sum, row) => sum + row.samples, 0) };
  }

  // What samples say of the window; a time is that of so many ticks of the processors' clocks.
  processor(place) {
    const { rows, all } = this.sampled((at) => this.data.places[at][0]);
    const most = rows.length ? rows[0].samples : 1;
    this.table(place, `Processor time by library, from ${all} samples`, ["library", "", "share", "time, about", "threads"], rows.map((row) => {
      const [name, colour] = this.data.owners[row.key];
      return [[name, colour], sampleBar(row.samples / most, colour), shareText(row.samples, all), time(row.samples * this.data.sample), String(row.lanes.size)];
    }));
  }

  ran(place) {
    const { rows, all } = this.sampled((at) => this.data.places[at].slice(0, 2).join(" "));
    const most = rows.length ? rows[0].samples : 1;
    this.table(place, "Processor time by function", ["function", "", "library", "share", "time, about"], rows.map((row) => {
      const split = row.key.indexOf(" ");
      const [library, colour] = this.data.owners[Number(row.key.slice(0, split))];
      return [[row.key.slice(split + 1), colour], sampleBar(row.samples / most, colour), library, shareText(row.samples, all), time(row.samples * this.data.sample)];
    }));
  }

  functions(place) {
    if (this.isBySamples()) return this.ran(place);
    const size = this.isCpu ? busy : whole;
    const rows = byLargest(this.sums((span) => (span[3] ? span[6] : null)), size);
    this.table(place, "By function, without calls inside that were kept too", ["function", "", "library", "busy", "waiting for a processor", "waiting", "threads"], rows.map((row) => {
      const [library, colour] = this.library(this.data.libraryOf[row.key]);
      return [[this.data.texts[row.key], colour], this.bar(row, colour, size(rows[0])), library, time(busy(row)), time(queued(row)), time(blocked(row)), String(row.lanes.size)];
    }));
  }

  waits(place) {
    const rows = byLargest(this.sums((span) => (span[2] > 1 ? `${span[2]} ${span[6]}` : null)), blocked);
    const all = rows.reduce((sum, row) => sum + blocked(row), 0);
    this.table(place, "Waits, of idle threads too", ["for", "", "share", "blocked", "threads"], rows.map((row) => {
      const [state, text] = row.key.split(" ").map(Number);
      const { name, colour } = this.states[state];
      return [[`${name.replace(/^waiting for /, "")}, ${this.data.texts[text] || "own code"}`, colour], this.bar(row, null, blocked(rows[0])), shareText(blocked(row), all), timeText(blocked(row)), String(row.lanes.size)];
    }));
  }

  single(place) {
    const rows = longestWaits(this.data.lanes, this.numbers, this.window, 200);
    this.table(place, "The longest waits, one by one", ["thread", "from", "for", "what", "in", "ended by"], rows.map(([number, [from, to, state, text, waker, at]]) => {
      const by = waker < 0 ? "" : this.data.lanes[waker].name + (at ? ` in ${at}` : "");
      const { name, colour } = this.states[state];
      return [[this.data.lanes[number].name, colour], timeText(from), timeText(to - from), name, text, by];
    }));
  }

  threads(place) {
    const size = this.isCpu ? busy : (row) => busy(row) * 1e3 + whole(row);
    const rows = byLargest(this.sums((_, number) => number), size);
    const longest = Math.max(...rows.map(this.isCpu ? busy : whole), 1);
    this.table(place, "Threads", ["thread", "", "busy", "waiting for a processor", "blocked", "group"], rows.map((row) => {
      const lane = this.data.lanes[row.key];
      return [[lane.name], this.bar(row, null, longest), time(busy(row)), time(queued(row)), time(blocked(row)), lane.group];
    }));
  }

  // Thread × library: what the heat maps show of the whole run.
  shades(place) {
    const size = this.isCpu ? busy : whole;
    const threads = byLargest(this.sums((_, number) => number), size).slice(0, SHOWN).map((row) => row.key);
    const cells = new Map(this.sums((span, number) => `${number} ${this.data.libraryOf[span[6]]}`).map((row) => [row.key, size(row)]));
    const libraries = byLargest(this.sums((span) => this.data.libraryOf[span[6]]), size).slice(0, COLUMNS).map((row) => row.key);
    const longest = Math.max(...cells.values(), 1);
    const rows = threads.map((number) => [[this.data.lanes[number].name], ...libraries.map((library) => {
      const ns = cells.get(`${number} ${library}`) || 0;
      return { shade: ns / longest, text: time(ns) };
    })]);
    const names = libraries.map((library) => this.library(library)[0]);
    this.table(place, this.isCpu ? "Busy, by thread and library" : "Threads by library", ["thread", ...names], rows);
  }

  // By the processor's clock what was busy, otherwise all that a row has, by states.
  bar(row, own, longest) {
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.ariaHidden = "true";
    this.states.forEach(({ name, colour }, state) => {
      const part = row.times[state];
      if (!part || (this.isCpu && state > 0 && busy(row) > 0)) return;
      const mark = element("i", undefined, bar);
      mark.title = `${name} ${timeText(part)}`;
      mark.style.setProperty("--w", ((part / longest) * 100).toFixed(2));
      mark.style.setProperty("--c", own && state === 0 ? own : colour);
    });
    return bar;
  }

  // Cells are texts, bars, a name with its colour, or a text on a shade.
  table(place, name, columns, rows) {
    const table = element("table", undefined, place);
    table.className = columns.includes("") ? "bars" : "";
    element("caption", `${name}, ${this.title()}`, table);
    const head = element("tr", undefined, element("thead", undefined, table));
    const isNumber = columns.map((_, at) => at > 0 && rows.every((row) => /^(|[<>]?[\d.]+( \S+)?)$/.test(row[at].text ?? row[at])));
    columns.forEach((column, at) => {
      const cell = element("th", column, head);
      cell.scope = "col";
      if (isNumber[at] && column) cell.className = "number";
    });
    const body = element("tbody", undefined, table);
    const text = (row) => row.map((cell) => (Array.isArray(cell) ? cell[0] : typeof cell === "string" ? cell : "")).join(" ").toLowerCase();
    const found = rows.filter((row) => hasAll(text(row), this.words));
    for (const row of found.slice(0, SHOWN)) this.row(body, columns, row, isNumber);
    if (!found.length) element("p", rows.length ? "Nothing in the window has these words." : "Nothing is known of it in this window.", place).className = "note";
    if (found.length > SHOWN) element("p", `… and ${found.length - SHOWN} more with less.`, place).className = "note";
  }

  row(body, columns, row, isNumber) {
    const line = element("tr", undefined, body);
    row.forEach((value, at) => {
      const cell = element(at ? "td" : "th", undefined, line);
      if (at) cell.dataset.label = columns[at];
      else cell.scope = "row";
      if (value instanceof Node) {
        cell.className = "fill";
        cell.append(value);
      } else if (value.text !== undefined) {
        [cell.className, cell.textContent] = ["number shade", value.text];
        cell.style.setProperty("--p", (value.shade * 100).toFixed(1));
        if (!value.text) cell.classList.add("empty");
      } else if (Array.isArray(value)) {
        const entry = element("span", undefined, cell);
        entry.className = "entry";
        if (value[1]) {
          const swatch = element("i", undefined, entry);
          swatch.className = "swatch";
          swatch.style.setProperty("--c", value[1]);
        }
        element("span", value[0], entry).className = "name";
      } else if (isNumber[at]) {
        [cell.className, cell.textContent] = ["number", value];
      } else {
        element("span", value, cell).className = "name";
      }
      if (at && value === "") cell.classList.add("empty");
    });
  }
}

function sampleBar(share, colour) {
  const bar = document.createElement("span");
  bar.className = "bar";
  bar.ariaHidden = "true";
  const mark = element("i", undefined, bar);
  mark.style.setProperty("--w", (share * 100).toFixed(2));
  mark.style.setProperty("--c", colour);
  return bar;
}

// Nothing is left empty.
const time = (ns) => (ns > 0 ? timeText(ns) : "");
