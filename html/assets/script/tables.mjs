// Tables of the page: sorted by their headings, searched, filtered by the page's filter, and folded where they are long.
import { hasAll, nextWay, ordered, wordsOf } from "./arranging.mjs";
import { element } from "./elements.mjs";
import { onFilter, pageWords } from "./filter.mjs";
import { isNarrow, keepFitting } from "./fitting.mjs";
import { numberOf } from "./quantities.mjs";

// Rows that are shown before more are asked for: fewer where each is a card.
const folded = () => (isNarrow() ? 6 : 12);

export function startTables() {
  for (const scroll of document.querySelectorAll("main .scroll, header .scroll")) {
    const table = scroll.querySelector("table");
    if (table && table.tBodies.length && !table.id) new Sorted(scroll, table);
  }
}

class Sorted {
  constructor(scroll, table) {
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    this.heads = [...table.tHead.rows[0].cells];
    this.sorted = null;
    this.isOpen = false;
    this.words = [];
    this.label();
    this.heads.forEach((head, column) => this.sortButton(head, column));
    this.tools(scroll);
    this.fit = keepFitting(scroll);
    onFilter(() => this.show());
    addEventListener("resize", () => {
      if (this.shownAt !== folded()) this.show();
    });
    this.show();
  }

  // Where a row is shown as a card, each cell says what it is.
  label() {
    const names = this.heads.map((head) => head.textContent.trim());
    for (const row of this.rows) {
      [...row.cells].forEach((cell, at) => {
        if (at > 0) cell.dataset.label = names[at];
        if (at > 0 && !cell.textContent.trim() && !cell.querySelector(".bar")) cell.classList.add("empty");
      });
    }
  }

  sortButton(head, column) {
    const name = head.textContent;
    if (this.rows.length < 2 || !name.trim()) return;
    head.textContent = "";
    head.ariaSort = "none";
    const button = element("button", name, head);
    button.type = "button";
    button.addEventListener("click", () => {
      const isSorted = this.sorted !== null && this.sorted[0] === column;
      const isText = !head.classList.contains("number");
      this.sort(column, nextWay(isSorted, isSorted && this.sorted[1], isText), isText);
    });
  }

  sort(column, isUp, isText) {
    this.sorted = [column, isUp];
    this.heads.forEach((head, at) => {
      if (head.ariaSort) head.ariaSort = at === column ? (isUp ? "ascending" : "descending") : "none";
    });
    const keys = this.rows.map((row) => {
      const text = row.cells[column] ? row.cells[column].textContent.trim() : "";
      return isText ? (text ? text.toLowerCase() : null) : numberOf(text);
    });
    const positions = ordered(this.rows.keys(), (at) => keys[at], isUp);
    this.rows = positions.map((at) => this.rows[at]);
    this.body.append(...this.rows);
    this.show();
  }

  tools(scroll) {
    const line = element("div", undefined, null);
    line.className = "tools below";
    this.more = element("button", "", line);
    this.more.type = "button";
    this.more.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.show();
    });
    if (this.rows.length > 6) {
      const label = element("label", "Search ", line);
      const input = element("input", undefined, label);
      input.type = "search";
      input.autocomplete = "off";
      input.setAttribute("aria-label", `Search ${scroll.getAttribute("aria-label")}`);
      input.addEventListener("input", () => {
        this.words = wordsOf(input.value);
        this.show();
      });
    }
    this.status = element("span", "", line);
    this.status.className = "note";
    this.status.setAttribute("role", "status");
    scroll.after(line);
    this.line = line;
  }

  show() {
    const words = [...pageWords(), ...this.words];
    let found = 0;
    for (const row of this.rows) {
      const isFound = words.length === 0 || hasAll(this.textOf(row), words);
      found += isFound;
      const isShown = isFound && (this.isOpen || found <= folded());
      row.hidden = !isShown;
    }
    const isLong = found > folded();
    this.more.hidden = !isLong;
    this.more.textContent = this.isOpen ? `Show ${folded()}` : `Show all ${found}`;
    this.more.ariaExpanded = String(this.isOpen);
    this.status.textContent = words.length ? `${found} of ${this.rows.length} rows match` : "";
    this.line.hidden = !isLong && words.length === 0;
    this.shownAt = folded();
    this.fit();
  }

  textOf(row) {
    row.searched ??= row.textContent.toLowerCase();
    return row.searched;
  }
}
