// One filter for the page: what does not have its words is hidden in tables and faint in pictures.
import { hasAll, wordsOf } from "./arranging.mjs";

const listeners = [];
let current = [];

// Calls `listener` with the words whenever they change.
export function onFilter(listener) {
  listeners.push(listener);
}

export const pageWords = () => current;

export function setFilter(text) {
  current = wordsOf(text);
  for (const listener of listeners) listener(current);
}

// Marks of pictures have their names as titles.
function dimPictures(words) {
  for (const title of document.querySelectorAll("figure svg title")) {
    const isOff = words.length > 0 && !hasAll(title.textContent.toLowerCase(), words);
    title.parentElement.classList.toggle("off", isOff);
  }
}

// Flame graphs are documents of their own, with a search of their own.
function searchFlames(words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  for (const frame of document.querySelectorAll(".flame iframe")) {
    const inside = frame.contentWindow;
    if (!inside || typeof inside.search !== "function" || !inside.innerWidth) continue;
    if (escaped) inside.search(escaped);
    // What its own button does while something is searched for.
    else if (inside.searching) inside.search_prompt();
  }
}

export function startFilter() {
  const input = document.getElementById("filter");
  if (!input) return;
  input.closest("form").hidden = false;
  let waiting = 0;
  const apply = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => setFilter(input.value), 60);
  };
  input.addEventListener("input", apply);
  input.closest("form").addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !input.value) return;
    input.value = "";
    apply();
    event.preventDefault();
  });
  // As in many programs: "/" goes to the filter.
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest && event.target.closest("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  // What a mark or a cell offers as a filter.
  document.addEventListener("click", (event) => {
    const offer = event.target.closest && event.target.closest("[data-filter]");
    if (!offer) return;
    input.value = offer.dataset.filter;
    apply();
  });
  onFilter(dimPictures);
  onFilter(searchFlames);
  onFilter((words) => {
    document.documentElement.classList.toggle("filtered", words.length > 0);
  });
}
