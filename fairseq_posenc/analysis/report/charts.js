"use strict";
// Draws the charts with Bokeh, one after the other, and gives them the colours of the page.
(() => {
  const plots = []; // { plot, entries } of each chart that is drawn
  let shown = null; // for each row of the table whether the filter shows it
  let printed = false; // paper is light, whatever the colours of the screen

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => (printed ? { "--text": "#000", "--line": "#999" }[name] : style.getPropertyValue(name).trim());
    return { text: colour("--text"), line: colour("--line") };
  }

  function paint({ plot }) {
    const { text, line } = colours();
    for (const axis of [...plot.below, ...plot.left]) {
      axis.setv({
        axis_label_text_color: text, major_label_text_color: text, axis_line_color: line,
        major_tick_line_color: line, minor_tick_line_color: null, axis_label_text_font_style: "normal",
      });
    }
    for (const item of plot.center) if ("grid_line_color" in item) item.grid_line_color = line;
    for (const renderer of plot.renderers) if ("text_color" in renderer.glyph) renderer.glyph.text_color = { value: text };
  }

  function hide({ plot, target, entries }) {
    if (!shown) return;
    const visible = entries.map((items) => items.map((rows) => rows.length === 0 || rows.some((row) => shown[row])));
    const figure = document.getElementById(target).closest("figure");
    figure.hidden = !visible[0].some(Boolean);
    if (figure.hidden) return; // Bokeh warns of ranges without data
    plot.renderers.forEach((renderer, number) => { renderer.view.filter.booleans = visible[number]; });
  }

  function useCost() {
    const choice = document.getElementById("cost");
    const text = choice.selectedOptions[0].textContent;
    for (const { plot, target } of plots.filter((item) => item.target.startsWith("cost-"))) {
      for (const { glyph } of plot.renderers) {
        for (const name of ["x", "x0", "x1"]) if (name in glyph) glyph[name] = { field: choice.value };
        if ("text_align" in glyph) glyph.text_align = { field: `${choice.value} side` };
      }
      plot.below[0].axis_label = text;
    }
  }

  async function draw() {
    const began = performance.now();
    for (const { target, item, entries } of JSON.parse(document.getElementById("charts").textContent)) {
      await Bokeh.embed.embed_item(item, target);
      const chart = { target, entries, plot: Bokeh.documents.at(-1).roots()[0] };
      plots.push(chart);
      paint(chart);
      hide(chart);
      await new Promise((resolve) => setTimeout(resolve)); // the page stays usable meanwhile
    }
    document.documentElement.dataset.drawn = String(Math.round(performance.now() - began));
  }

  document.addEventListener("rows", (event) => { shown = event.detail; plots.forEach(hide); });
  document.addEventListener("theme", () => plots.forEach(paint));
  document.getElementById("cost")?.addEventListener("change", useCost);
  addEventListener("beforeprint", () => { printed = true; plots.forEach(paint); });
  addEventListener("afterprint", () => { printed = false; plots.forEach(paint); });
  draw();
})();
