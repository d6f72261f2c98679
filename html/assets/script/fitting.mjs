// Tables fit their place: where columns have no room names are broken into lines, and where that is not enough each row is
// a card, whose cells say what they are.

const narrow = matchMedia("(max-width: 760px)");

// Whether each row is a card in any case.
export const isNarrow = () => narrow.matches;

function fit(scroll) {
  scroll.classList.remove("tight", "cards");
  const isCut = () => scroll.scrollWidth > scroll.clientWidth + 1;
  if (isNarrow()) scroll.classList.add("cards");
  else if (isCut()) scroll.classList.add("tight");
  if (isCut()) scroll.classList.add("cards");
}

// Fits a table now and whenever its place changes; gives what fits it anew when its rows have changed.
export function keepFitting(scroll) {
  let width = -1;
  const again = () => {
    if (scroll.clientWidth) fit(scroll);
  };
  new ResizeObserver(() => {
    if (scroll.clientWidth === width) return;
    width = scroll.clientWidth;
    again();
  }).observe(scroll);
  return again;
}
