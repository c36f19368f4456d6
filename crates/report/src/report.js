"use strict";
(() => {
  const { mechanisms, panels, template, dark } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  // ---- Colours and text -----------------------------------------------------------------------------------------------
  let theme = "light";
  // Replaces a colour of a light ground, which may have an opacity behind it, by the one of the theme. All else stays.
  const themed = (value) =>
    (theme === "dark" && typeof value === "string" ? value.replace(/^#\w{6}(?=(\w\w)?$)/, (light) => dark[light] ?? light) : value);
  const colour = (m) => themed(mechanisms[m].colour);
  // Mechanisms of one colour have different dashes, in the key and in the lines.
  const swatch = (m) => {
    const lengths = mechanisms[m].dash.match(/\d+/g);
    if (!lengths) return colour(m);
    let at = 0;
    const stops = lengths.map((length, i) => {
      const from = at;
      at += Number(length) / 2;
      return `${i % 2 ? "transparent" : colour(m)} ${from}px ${at}px`;
    });
    return `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
  };
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // Escapes a name, because the chart library interprets markup in text. The texts of charts are escaped already.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  // Breaks a long name behind the characters that separate its parts. No name is cut.
  const broken = (text, most) => {
    const lines = [""];
    for (const part of text.match(/[^:,+]*[:,+]?/g)) {
      if (lines.at(-1) && (lines.at(-1) + part).length > most) lines.push("");
      lines[lines.length - 1] += part;
    }
    return lines;
  };
  const letters = (width) => (width < 450 ? 16 : 26);
  // A long title has its unit in a second line, so that it is whole on a phone, too.
  const lined = (title) => (title.length > 36 ? title.replace(/ in (?!.* in )/, "<br>in ") : title);

  // ---- Figures: what notebook/traces.rs makes, without the hidden mechanisms, for the theme and a width ----------------
  const hidden = new Set();

  // Moves the rows of a figure to the places of those that are hidden.
  function closeGaps(data, { xaxis, yaxis, meta: rows }) {
    const kept = (values) => values.filter((_, row) => !hidden.has(rows[row]));
    // What has no mechanism reaches from the first row to the last, so its end moves by all of them.
    const moved = (values, m) => {
      const by = rows.filter((other, row) => hidden.has(other) && (m === undefined || row < rows.indexOf(m))).length;
      return values.map((value) => (value > 0 ? value - by : value));
    };
    for (const axis of [xaxis, yaxis].filter((axis) => axis.ticks === "")) {
      axis.ticktext = kept(axis.ticktext);
      axis.tickvals = [...axis.ticktext.keys()];
      axis.range = moved(axis.range);
      axis.fixedrange = true;
    }
    for (const trace of data) {
      if (trace.type !== "heatmap") trace.y = moved(trace.y, trace.meta);
      else for (const key of ["z", "text", "hovertext"]) trace[key] = kept(trace[key]).map(kept);
    }
  }

  // The most mechanisms whose lines share a plane.
  const MOST_LINES = 8;
  // Gives each mechanism a plane, with the lines of all others in grey behind its own.
  function multiples(data, { xaxis, yaxis, ...others }, own, width) {
    const columns = Math.min(own.length, width > 760 ? 4 : width > 520 ? 3 : 2), id = (letter, i) => letter + (i ? i + 1 : "");
    const names = own.map((m) => broken(plain(mechanisms[m].name), letters(width / columns * 2)));
    // Names are above the planes, some of two lines. A plane has the share of its row that they leave.
    const above = Math.max(...names.map((lines) => lines.length));
    const layout = { ...others, showlegend: false, margin: { l: 62, r: 14, t: 10 + 14 * above, b: 50 } };
    layout.grid = { rows: Math.ceil(own.length / columns), columns, pattern: "independent", xgap: 0.06, ygap: 0.12 + 0.1 * above };
    layout.annotations = [[xaxis, { x: 0.5, y: 0, yanchor: "top", yshift: -24 }], [yaxis, { x: 0, y: 0.5, textangle: -90, xanchor: "right", xshift: -36 }]]
      .map(([{ title: { text } }, place]) => ({ text, showarrow: false, xref: "paper", yref: "paper", ...place }));
    const traces = own.flatMap((m, i) => {
      const x = id("x", i), y = id("y", i);
      layout[id("xaxis", i)] = { ...xaxis, title: undefined, nticks: 4, matches: i ? "x" : undefined, showticklabels: i + columns >= own.length };
      layout[id("yaxis", i)] = { ...yaxis, title: undefined, matches: i ? "y" : undefined, showticklabels: i % columns === 0 };
      layout.annotations.push({
        text: names[i].join("<br>"), font: { size: 11, color: colour(m) }, align: "left", showarrow: false,
        xref: `${x} domain`, yref: `${y} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom",
      });
      const lines = data.filter((trace) => trace.name && trace.meta !== m), ends = (key) => lines.flatMap((line) => [...line[key], null]);
      const grey = { type: "scatter", mode: "lines", x: ends("x"), y: ends("y"), line: { color: style("--line"), width: 1 }, hoverinfo: "skip" };
      return [grey, ...data.filter((trace) => trace.meta === m)].map((trace) => ({ ...trace, xaxis: x, yaxis: y }));
    });
    return [traces, layout];
  }

  // Returns the traces and the layout of a chart.
  function figure(panel, width) {
    const { data: all, layout, template: look } = JSON.parse(JSON.stringify({ ...panel, template }), (_, value) => themed(value));
    const data = all.filter((trace) => !hidden.has(trace.meta)), own = [...new Set(data.map((trace) => trace.meta))];
    if (layout.meta) closeGaps(data, layout);
    if (layout.grid) layout.grid.yaxes = data.map((trace) => trace.yaxis);
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis/.test(key)).map((key) => layout[key])) {
      if (axis.title) axis.title.text = lined(axis.title.text);
      axis.ticktext = axis.ticktext?.map((text) => broken(text, letters(width)).join("<br>"));
    }
    Object.assign(layout, {
      template: look, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      font: { family: style("--sans"), size: 12, color: style("--ink") },
      margin: { l: 58, r: 14, t: layout.annotations ? 22 : 8, b: layout.xaxis.side === "top" ? 10 : 46 },
      hoverlabel: { bgcolor: style("--paper"), bordercolor: style("--soft"), align: "left", font: { family: style("--sans"), size: 12, color: style("--ink") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--soft"), activecolor: style("--ink") },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    });
    return panel.kind === "lines" && own.length > MOST_LINES ? multiples(data, layout, own, width) : [data, layout];
  }

  // ---- Drawing: when a chart comes near the window, and again when something has changed ------------------------------
  const CONFIG = {
    displaylogo: false, displayModeBar: "hover", plotlyServerURL: "",
    modeBarButtons: [["resetScale2d"]],
  };
  function draw(plot) {
    const [data, layout] = figure(panels[Number(plot.dataset.panel)], plot.clientWidth);
    Plotly.react(plot, data, { ...layout, showlegend: false, width: plot.clientWidth, height: plot.clientHeight }, CONFIG);
  }
  const plots = [...document.querySelectorAll("[data-panel]")];

  // ---- Saving: on white paper, with title and legend, whatever the page looks like ------------------------------------
  async function picture(plot, format) {
    const chart = panels[Number(plot.dataset.panel)], before = theme, width = 900;
    theme = root.dataset.theme = "light";
    const [data, layout] = figure(chart, width);
    const names = layout.showlegend ? data.filter((trace) => trace.showlegend !== false && trace.name).length : 0;
    theme = root.dataset.theme = before;
    const { margin, ...others } = layout;
    const title = plain(chart.title) + (chart.conditions ? `<br><sub>${plain(chart.conditions)}</sub>` : "");
    const below = names ? 30 + 20 * Math.ceil(names / 3) : 0;
    const height = Math.max(240, parseInt(plot.style.height, 10)) + 60 + below;
    return Plotly.toImage({
      data, layout: {
        ...others, paper_bgcolor: "#fff", plot_bgcolor: "#fff", showlegend: names > 0, width, height,
        title: { text: title, x: 0, xref: "paper", y: 1, yref: "container", yanchor: "top", pad: { t: 14 }, font: { size: 17 } },
        legend: { orientation: "h", y: 0, yref: "container", yanchor: "bottom", x: 0 }, margin: { ...margin, t: chart.layout.margin?.t ?? margin.t + 60, b: margin.b + below },
      },
    }, { format, width, height, scale: format === "png" ? 3 : 1 });
  }
  async function save(plot, format) {
    const link = document.createElement("a");
    link.href = await picture(plot, format);
    link.download = `${panels[Number(plot.dataset.panel)].name}.${format}`;
    link.click();
    return link;
  }
  for (const buttons of document.querySelectorAll(".save")) {
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => {
      const format = event.target.dataset.save;
      if (format) save(buttons.closest("figure").querySelector(".plot"), format);
    });
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      near.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "800px" });
  function redraw() {
    near.disconnect();
    plots.forEach((plot) => near.observe(plot));
  }
  let width = root.clientWidth;
  addEventListener("resize", () => {
    if (root.clientWidth === width || root.classList.contains("printing")) return;
    width = root.clientWidth;
    redraw();
  });

  // ---- Light and dark -------------------------------------------------------------------------------------------------
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  function setTheme(next) {
    theme = next;
    root.dataset.theme = theme;
    for (const key of document.querySelectorAll(".key[data-m]")) key.style.background = swatch(Number(key.dataset.m));
    button.textContent = theme === "dark" ? "Light" : "Dark";
    redraw();
  }
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = theme === "dark" ? "light" : "dark";
    setTheme(chosen);
  });
  const preferred = () => chosen ?? (system.matches ? "dark" : "light");
  system.addEventListener("change", () => setTheme(preferred()));
  // Charts are drawn for the width of the paper before they are printed, because printing does not resize them.
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    setTheme("light");
    plots.filter((plot) => plot.offsetParent).forEach(draw);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    setTheme(preferred());
  });

  // ---- The legend hides and shows a mechanism everywhere --------------------------------------------------------------
  const chips = [...document.querySelectorAll("nav button")];
  function refresh() {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(!hidden.has(Number(chip.dataset.m))));
    for (const row of document.querySelectorAll("tr[data-m]")) row.classList.toggle("off", hidden.has(Number(row.dataset.m)));
    redraw();
  }
  for (const chip of chips) {
    const m = Number(chip.dataset.m);
    chip.addEventListener("click", () => {
      if (!hidden.delete(m)) hidden.add(m);
      if (hidden.size === mechanisms.length) hidden.clear();
      refresh();
    });
    chip.addEventListener("dblclick", () => {
      const alone = hidden.size === mechanisms.length - 1 && !hidden.has(m);
      hidden.clear();
      if (!alone) mechanisms.forEach((_, other) => other !== m && hidden.add(other));
      refresh();
    });
  }

  // ---- Tables sort within their groups --------------------------------------------------------------------------------
  for (const table of document.querySelectorAll("table.results")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => heading.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const text = (row) => row.cells[column].textContent;
      const compare = (a, b) => value(a) === undefined ? text(a).localeCompare(text(b)) : value(a) - value(b);
      for (const body of table.tBodies) {
        const rows = [...body.rows].filter((row) => row.dataset.m !== undefined);
        rows.sort((a, b) => (down ? -1 : 1) * compare(a, b));
        body.append(...rows);
      }
    }));
  }

  setTheme(preferred());
})();
