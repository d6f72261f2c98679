// What a page can't do with HTML and CSS alone.
import { startChoices } from "./choices.mjs";
import { startFilter } from "./filter.mjs";
import { startPanels } from "./panels.mjs";
import { startRows } from "./rows.mjs";
import { startTables } from "./tables.mjs";
import { startTimeline } from "./timeline.mjs";

document.documentElement.classList.add("scripted");
startChoices();
startPanels();
startTables();
startRows();
startTimeline();
startFilter();
// On paper nothing can be opened.
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details:not([open])")) {
    if (!closed.matches(".flame, .folded, #raw-columns")) closed.open = true;
  }
});
