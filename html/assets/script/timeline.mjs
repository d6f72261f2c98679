// The timeline: threads by time, with zoom, folded groups and a brush that chooses a window.
import { hasAll } from "./arranging.mjs";
import { HEAD, ROW, momentAt, paint } from "./drawing.mjs";
import { element } from "./elements.mjs";
import { onFilter, pageWords } from "./filter.mjs";
import { keepFitting } from "./fitting.mjs";
import { Following } from "./following.mjs";
import { foldedGroup, shownRows, spanAt, stateTimes, unpacked } from "./lanes.mjs";
import { shareText, timeText } from "./quantities.mjs";
import { nearestSample, sampleReach } from "./samples.mjs";
import { moved, within, zoomed } from "./window.mjs";

export function startTimeline() {
  const box = document.getElementById("timeline-box");
  if (box) new Timeline(box);
}

// Rows of the picture.
const MOST_ROWS = 60;
// Rows of the table of the window.
const LISTED = 8;
// What is waited for, in the heading of a column.
const inBrief = (states) => states.map((state) => state.replace(/^waiting for /, "for "));

class Timeline {
  constructor(box) {
    this.data = unpacked(JSON.parse(document.getElementById("timeline-data").textContent));
    this.box = box;
    this.canvas = box.querySelector("canvas");
    this.status = box.querySelector(".status");
    this.list = box.querySelector(".window");
    this.fit = keepFitting(this.list);
    this.open = new Set();
    this.view = [0, this.data.end];
    this.least = Math.min(1000, this.data.end);
    this.chosen = null;
    this.focus = -1;
    const states = [...box.querySelectorAll(".legend .swatch")].map((swatch, at) => ({
      name: this.data.states[at], colour: swatch.style.getPropertyValue("--c"),
    }));
    this.following = new Following(this.data, states, () => {
      this.chosen = null;
      this.draw();
    });
    box.hidden = false;
    for (const button of box.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => this.act(button.dataset.do));
    }
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointerleave", () => this.say(""));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    onFilter(() => this.draw());
    addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  rows() {
    const words = pageWords();
    const isFound = (lane) => words.length === 0 || hasAll(`${lane.name} ${lane.group}`.toLowerCase(), words);
    const rows = shownRows(this.data.lanes, this.open, isFound);
    // Where nothing has the words, the picture stays: they may be about something else.
    const found = rows.length ? rows : shownRows(this.data.lanes, this.open, () => true);
    return found.slice(0, MOST_ROWS);
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    const width = this.box.clientWidth;
    this.place = { left: Math.round(Math.min(Math.max(width * 0.17, Math.min(width * 0.36, 130)), 220)), width };
    this.shown = this.rows();
    const swatches = [...this.box.querySelectorAll(".legend .swatch")];
    const colours = { states: swatches.map((swatch) => getComputedStyle(swatch).backgroundColor), owned: this.owned() };
    const ink = { text: get("--ink"), muted: get("--muted"), rule: get("--rule"), link: get("--link"), font: "12px " + getComputedStyle(document.body).fontFamily };
    const { data, shown: rows, view, chosen, focus, place } = this;
    paint(this.canvas, { data, rows, view, chosen, focus, place, colours, ink });
    this.summary();
    this.following.choose(chosen);
  }

  // Colours of the libraries that ran, as the page's theme has them.
  owned() {
    const probe = element("i", undefined, this.box);
    probe.className = "swatch";
    const colours = this.data.owners.map(([, colour]) => {
      probe.style.setProperty("--c", colour);
      return getComputedStyle(probe).backgroundColor;
    });
    probe.remove();
    return colours;
  }

  // What happened in the chosen window, or in what is shown.
  summary() {
    const window = this.chosen || this.view;
    const length = window[1] - window[0];
    const numbers = [...new Set(this.shown.flatMap((row) => row.lanes))];
    const states = this.data.states;
    const rows = numbers.map((number) => [number, stateTimes(this.data.lanes[number], window, states.length)]);
    const busy = ([, times]) => times[0] * 1e3 + times.reduce((sum, time) => sum + time, 0);
    rows.sort((a, b) => busy(b) - busy(a) || a[0] - b[0]);
    const listed = rows.slice(0, LISTED);
    const used = states.map((_, state) => listed.some(([, times]) => times[state] > 0));
    this.list.replaceChildren();
    const table = element("table", undefined, this.list);
    const caption = element("caption", undefined, table);
    caption.textContent = `${this.chosen ? "Chosen window" : "Shown"}: ${timeText(window[0])} to ${timeText(window[1])}, ${timeText(length)}`;
    const head = element("tr", undefined, element("thead", undefined, table));
    for (const [at, name] of ["thread", ...inBrief(states.filter((_, state) => used[state])), "group"].entries()) {
      const cell = element("th", name, head);
      cell.scope = "col";
      if (at && name !== "group") cell.className = "number";
    }
    const body = element("tbody", undefined, table);
    for (const [number, times] of listed) {
      const line = element("tr", undefined, body);
      element("th", this.data.lanes[number].name, line).scope = "row";
      times.forEach((time, state) => {
        if (!used[state]) return;
        const cell = element("td", time > 0 ? `${timeText(time)}, ${shareText(time, length)}` : "", line);
        cell.className = "number";
        cell.dataset.label = states[state];
        if (!time) cell.classList.add("empty");
      });
      const group = element("td", this.data.lanes[number].group, line);
      group.dataset.label = "group";
    }
    if (rows.length > LISTED) element("p", `… and ${rows.length - LISTED} more ${rows.length === LISTED + 1 ? "thread" : "threads"} that ran less.`, this.list).className = "note";
    this.fit();
  }

  act(what) {
    const middle = (this.view[0] + this.view[1]) / 2;
    const { end } = this.data;
    if (what === "in") this.view = zoomed(this.view, 0.5, middle, end, this.least);
    if (what === "out") this.view = zoomed(this.view, 2, middle, end, this.least);
    if (what === "all") [this.view, this.chosen] = [[0, end], null];
    if (what === "window" && this.chosen) [this.view, this.chosen] = [within(this.chosen, end, this.least), null];
    if (what === "left" || what === "right") {
      const by = (this.view[1] - this.view[0]) / 5;
      this.view = moved(this.view, what === "left" ? -by : by, end);
    }
    if (what === "unfold") {
      const groups = this.data.lanes.map(foldedGroup);
      if (this.open.size) this.open.clear();
      else this.open = new Set(groups);
    }
    this.draw();
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((y - HEAD) / ROW);
    return { x, row: y >= HEAD && row < this.shown.length ? row : -1, moment: momentAt(x, this.view, this.place) };
  }

  press(event) {
    const { x, row, moment } = this.point(event);
    if (x < this.place.left) {
      this.toggle(row);
      return;
    }
    this.canvas.setPointerCapture(event.pointerId);
    this.from = moment;
  }

  toggle(row) {
    const group = row >= 0 ? this.shown[row].group : null;
    if (group === null) return;
    if (!this.open.delete(group)) this.open.add(group);
    this.draw();
  }

  hover(event) {
    const { x, row, moment } = this.point(event);
    if (this.from !== undefined) {
      this.brush(this.from, moment);
      return;
    }
    this.describe(x < this.place.left ? -1 : row, moment);
  }

  describe(row, moment) {
    if (row < 0) return this.say("");
    const { label, lanes } = this.shown[row];
    if (lanes.length > 1) return this.say(`${timeText(moment)}: ${label}`);
    const lane = this.data.lanes[lanes[0]];
    const span = spanAt(lane, moment);
    if (!span) return this.say(`${timeText(moment)}: ${label}`);
    const [from, to, state, text, waker, at] = span;
    const by = waker >= 0 ? `, ended by ${this.data.lanes[waker].name}${at ? " in " + at : ""}` : "";
    return this.say(`${timeText(moment)}: ${label}: ${this.data.states[state]}${text ? ", " + text : ""}, ${timeText(to - from)}${by}${this.ran(lane, moment)}`);
  }

  // What a sample found there, no further away than a few pixels or the next sample.
  ran(lane, moment) {
    const pixel = (this.view[1] - this.view[0]) / Math.max(this.place.width - this.place.left, 1);
    const sample = nearestSample(lane, moment, Math.max(3 * pixel, sampleReach(this.data)));
    if (!sample) return "";
    const [owner, name] = this.data.places[sample[1]];
    return `; a sample at ${timeText(sample[0])}: ${name} (${this.data.owners[owner][0]})`;
  }

  say(text) {
    this.status.textContent = text;
  }

  brush(a, b) {
    const end = this.data.end;
    const [from, to] = [Math.min(a, b), Math.max(a, b)].map((moment) => Math.min(Math.max(moment, 0), end));
    this.chosen = to - from > (this.view[1] - this.view[0]) / 500 ? [from, to] : null;
    this.draw();
  }

  release(event) {
    if (this.from === undefined) return;
    const { moment } = this.point(event);
    this.brush(this.from, moment);
    this.from = undefined;
  }

  // The page scrolls by the wheel alone; with Ctrl, as for maps, the picture zooms.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { moment } = this.point(event);
    this.view = zoomed(this.view, event.deltaY > 0 ? 1.25 : 0.8, moment, this.data.end, this.least);
    this.draw();
  }

  key(event) {
    const does = { "+": "in", "=": "in", "-": "out", 0: "all", ArrowLeft: "left", ArrowRight: "right" }[event.key];
    if (event.shiftKey && event.key.startsWith("Arrow") && does) {
      this.stretch(event.key === "ArrowRight" ? 1 : -1);
    } else if (does) {
      this.act(does);
    } else if (event.key === "Escape" && this.chosen) {
      this.chosen = null;
      this.draw();
    } else if (event.key === "Enter" && this.chosen) {
      this.act("window");
    } else if (event.key === "Enter" || event.key === " ") {
      this.toggle(this.focus);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      this.focus = Math.min(Math.max(this.focus + by, 0), this.shown.length - 1);
      this.draw();
      this.describe(this.focus, (this.view[0] + this.view[1]) / 2);
    } else {
      return;
    }
    event.preventDefault();
  }

  // By the keys, the chosen window begins in the middle and grows or shrinks at its end.
  stretch(by) {
    const step = (this.view[1] - this.view[0]) / 20;
    const [from, to] = this.chosen || [(this.view[0] + this.view[1]) / 2, (this.view[0] + this.view[1]) / 2];
    this.brush(from, Math.max(to + by * step, from));
  }
}
