// All rows: a table that is laid out some rows at a time.
import { hasAll, nextWay, ordered, wordsOf } from "./arranging.mjs";
import { element } from "./elements.mjs";
import { onFilter, pageWords } from "./filter.mjs";
import { isNarrow } from "./fitting.mjs";
import { csvOf, marked, piecesOf } from "./values.mjs";

const STEP = 25;

export function startRows() {
  const raw = document.getElementById("raw");
  if (raw) new Rows(raw);
}

// A name, broken between its words where it has no room.
function named(text, cell) {
  const name = element("span", undefined, cell);
  name.className = "name";
  piecesOf(text).forEach((piece, at) => {
    if (at) element("wbr", undefined, name);
    name.append(piece);
  });
}

const get = (name) => document.getElementById("raw-" + name);

class Rows {
  constructor(raw) {
    this.tables = new Map();
    raw.hidden = false;
    get("table").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    get("search").addEventListener("input", () => this.arrange());
    get("copy").addEventListener("click", () => this.copy());
    get("more").addEventListener("click", () => {
      this.shown += 10 * STEP;
      this.draw();
    });
    onFilter(() => this.arrange());
    addEventListener("resize", () => get("scroll").classList.toggle("cards", isNarrow()));
    this.choose(0);
  }

  // The columns that are shown, each with its position.
  columns() {
    return this.table.columns.map((column, at) => [column, at]).filter(([column]) => column.shown);
  }

  choose(number) {
    if (!this.tables.has(number)) {
      this.tables.set(number, JSON.parse(document.getElementById("raw-" + number).textContent));
    }
    this.table = this.tables.get(number);
    this.sorted = null;
    const boxes = get("columns").querySelector("fieldset");
    boxes.replaceChildren(boxes.querySelector("legend"));
    for (const column of this.table.columns) {
      const label = element("label", undefined, boxes);
      const box = element("input", undefined, label);
      box.type = "checkbox";
      box.checked = column.shown;
      label.append(" " + column.name);
      box.addEventListener("change", () => {
        column.shown = box.checked;
        this.draw();
      });
    }
    this.arrange();
  }

  arrange() {
    const { table } = this;
    const words = [...pageWords(), ...wordsOf(get("search").value)];
    this.order = [...table.rows.keys()];
    if (words.length) {
      const texts = table.columns.map((column, at) => (column.kind === "text" ? at : -1)).filter((at) => at >= 0);
      table.texts ||= table.rows.map((row) => texts.map((at) => row[at] || "").join("\n").toLowerCase());
      this.order = this.order.filter((at) => hasAll(table.texts[at], words));
    }
    if (this.sorted) {
      const [column, isUp] = this.sorted;
      this.order = ordered(this.order, (at) => table.rows[at][column], isUp);
    }
    this.shown = STEP;
    this.draw();
  }

  draw() {
    const rows = get("rows");
    // The sort buttons are made anew: whoever used one stays there.
    const focused = document.activeElement.dataset ? document.activeElement.dataset.column : undefined;
    rows.replaceChildren();
    this.drawHead(element("tr", undefined, element("thead", undefined, rows)));
    const body = element("tbody", undefined, rows);
    for (const number of this.order.slice(0, this.shown)) {
      const line = element("tr", undefined, body);
      this.columns().forEach(([column, at], place) => {
        const text = marked(this.table.rows[number], column, at);
        const cell = element(place ? "td" : "th", undefined, line);
        if (place) cell.dataset.label = column.name;
        else cell.scope = "row";
        if (column.kind === "text") named(text, cell);
        else [cell.className, cell.textContent] = ["number", text];
        if (place && !text) cell.classList.add("empty");
      });
    }
    // With as many columns as are chosen, it scrolls.
    get("scroll").classList.toggle("cards", isNarrow());
    get("more").hidden = this.order.length <= this.shown;
    const visible = Math.min(this.shown, this.order.length);
    get("status").textContent = `${visible} of ${this.order.length} rows` +
      (this.order.length < this.table.rows.length ? `, found among ${this.table.rows.length}` : "");
    const button = focused === undefined ? null : rows.querySelector(`[data-column="${focused}"]`);
    if (button) button.focus();
  }

  drawHead(head) {
    for (const [column, at] of this.columns()) {
      const cell = element("th", undefined, head);
      cell.scope = "col";
      if (column.kind !== "text") cell.className = "number";
      const isSorted = this.sorted !== null && this.sorted[0] === at;
      cell.ariaSort = isSorted ? (this.sorted[1] ? "ascending" : "descending") : "none";
      const button = element("button", column.name, cell);
      button.type = "button";
      button.dataset.column = at;
      button.addEventListener("click", () => {
        this.sorted = [at, nextWay(isSorted, isSorted && this.sorted[1], column.kind === "text")];
        this.arrange();
      });
    }
  }

  async copy() {
    const text = csvOf(this.columns(), this.order.map((at) => this.table.rows[at]));
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Where the browser gives pages from a disk no clipboard.
      const area = element("textarea", text, document.body);
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    get("status").textContent = `${this.order.length} rows copied`;
  }
}
