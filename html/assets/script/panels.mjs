// Going into a library and back. The place is in the address, so that the browser's own buttons work.

export function startPanels() {
  for (const box of document.querySelectorAll("[data-panels]")) startPanel(box);
}

function startPanel(box) {
  const panels = [...box.querySelectorAll(".panel")];
  const show = (id, focus) => {
    const wanted = panels.find((panel) => panel.id === id);
    if (!wanted) return;
    for (const panel of panels) panel.hidden = panel !== wanted;
    if (focus) {
      wanted.querySelector("h3").focus({ preventScroll: true });
      box.parentElement.scrollIntoView();
    }
  };
  const follow = (focus) => show(location.hash.slice(1), focus);
  show(panels[0].id, false);
  follow(false);
  addEventListener("hashchange", () => follow(true));
  box.addEventListener("click", (event) => {
    const slice = event.target.closest("[data-key]");
    if (slice) location.hash = slice.dataset.key;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panels[0].contains(event.target)) location.hash = panels[0].id;
  });
}
