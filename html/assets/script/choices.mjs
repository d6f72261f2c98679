// Choices that hold for the whole page: processor or wall time, bars or pie. A choice is an attribute of the root, by
// which the style sheet shows one thing or the other.

export function startChoices() {
  const root = document.documentElement;
  for (const box of document.querySelectorAll("fieldset[data-choice]")) {
    const apply = () => {
      const chosen = box.querySelector("input:checked");
      if (chosen) root.dataset[box.dataset.choice] = chosen.value;
      // Pictures that had no room are laid out once they have.
      dispatchEvent(new Event("resize"));
    };
    box.hidden = false;
    box.addEventListener("change", apply);
    apply();
  }
}
