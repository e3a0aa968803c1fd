"use strict";
// Sorts and filters the table, copies commands, and switches between light and dark.
(() => {
  const body = document.querySelector("#results-table tbody");
  const rows = [...body.rows];
  const texts = rows.map((row) => [...row.cells].map((cell) => cell.title || cell.textContent).join(" ").toLowerCase());
  const headings = [...document.querySelectorAll("#results-table thead th")];

  function value(row, place) {
    const cell = row.cells[place];
    if ("value" in cell.dataset) return Number(cell.dataset.value);
    return cell.textContent === "" ? null : cell.textContent;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(place) {
    const old = headings[place].getAttribute("aria-sort");
    const first = headings[place].classList.contains("number") ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const order = old === first ? second : first;
    headings.forEach((heading, number) => heading.setAttribute("aria-sort", number === place ? order : "none"));
    const sign = order === "ascending" ? 1 : -1;
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a, place), value(b, place)];
      if (x === null || y === null) return (x === null) - (y === null); // empty cells stay at the end
      return sign * compare(x, y);
    });
    body.append(...sorted);
  }

  function filter() {
    const words = document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.map((row, number) => words.every((word) => texts[number].includes(word)));
    rows.forEach((row, number) => { row.hidden = !shown[number]; });
    const count = shown.filter(Boolean).length;
    document.getElementById("count").textContent = `${count} of ${rows.length} rows`;
    document.dispatchEvent(new CustomEvent("rows", { detail: shown }));
  }

  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // the browser does not allow it: select the text, so that the keyboard copies it
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  function showTheme() {
    theme.textContent = isDark() ? "Light colours" : "Dark colours";
    document.dispatchEvent(new Event("theme"));
  }

  headings.forEach((heading, place) => heading.firstElementChild.addEventListener("click", () => sort(place)));
  document.getElementById("filter").addEventListener("input", filter);
  document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; showTheme(); });
  system.addEventListener("change", showTheme);
  addEventListener("beforeprint", () => document.querySelectorAll("section > details").forEach((item) => { item.open = true; }));
  showTheme();
  filter();
})();
