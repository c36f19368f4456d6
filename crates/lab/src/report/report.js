"use strict";
(() => {
  const { mechanisms, panels } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  // ---- Colours: those of Okabe and Ito, the first one neutral, each tuned to the ground it stands on. -----------------
  const PALETTE = {
    light: ["#57534e", "#0072b2", "#d55e00", "#009e73", "#c2609a", "#e0930a", "#3fa4dd", "#a69b00"],
    dark: ["#b8b3a9", "#4b9fdb", "#f0803c", "#2bbd92", "#e29cc6", "#f2b33d", "#93d0f5", "#e9df4a"],
  };
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  let theme = "light";
  const colour = (m) => PALETTE[theme][m % 8];
  const dash = (m) => DASHES[Math.floor(m / 8) % DASHES.length];
  const faded = (m, alpha) => colour(m) + Math.round(alpha * 255).toString(16).padStart(2, "0");
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- Text ------------------------------------------------------------------------------------------------------------
  // The chart library reads some markup in text: names are to be shown as they are.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, most) => plain(text.length > most ? text.slice(0, most - 1) + "…" : text);
  const digits = (x, n) => {
    if (x === null || x === undefined) return "–";
    if (x === 0) return "0";
    return x.toFixed(Math.max(0, Math.min(9, n - 1 - Math.floor(Math.log10(Math.abs(x))))));
  };
  const name = (m) => `<b>${plain(mechanisms[m])}</b>`;

  // ---- What all charts share ------------------------------------------------------------------------------------------
  const hidden = new Set();
  const shown = (rows) => rows.filter((row) => !hidden.has(row.m));

  function layout(more) {
    const axis = {
      gridcolor: style("--grid"), linecolor: style("--soft"), zeroline: false, tickcolor: style("--soft"),
      ticks: "outside", ticklen: 4, title: { standoff: 8 },
    };
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { family: style("--sans"), size: 12, color: style("--ink") },
      margin: { l: 58, r: 14, t: 8, b: 46 },
      hoverlabel: { bgcolor: style("--paper"), bordercolor: style("--soft"), align: "left", font: { family: style("--sans"), size: 12, color: style("--ink") } },
      hovermode: "closest",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--soft"), activecolor: style("--ink") },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      ...more,
    };
    for (const key of Object.keys(merged).filter((key) => /^[xy]axis\d*$/.test(key))) {
      merged[key] = { ...axis, ...merged[key], title: { ...axis.title, ...merged[key].title } };
    }
    return merged;
  }

  // A logarithmic axis where linear would squeeze most of the chart into a corner.
  function scale(values, title) {
    const real = values.filter((v) => v > 0);
    const low = Math.min(...real), high = Math.max(...real);
    if (!(high / low > 6)) return { title: { text: title }, low, high };
    return { title: { text: title + ", logarithmic" }, type: "log", ...logTicks(low, high), low, high };
  }
  // An axis from a little before its values to the share `room` of their span after them, where text may stand.
  function withRoom({ low, high, ...axis }, room) {
    const [from, to] = axis.type === "log" ? [Math.log10(low), Math.log10(high)] : [low, high];
    const span = to - from || Math.abs(to) * 0.1 || 1;
    return { ...axis, range: [from - span * 0.05, to + span * room] };
  }
  function logTicks(low, high) {
    const steps = high / low > 300 ? [1] : high / low > 30 ? [1, 3] : high / low > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    const tickvals = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const step of steps) tickvals.push(Number(`${step}e${e}`));
    }
    return { tickvals, ticktext: tickvals.map((v) => String(v)) };
  }
  // Names at the left, and a margin that holds them.
  const letters = (width) => (width < 450 ? 14 : 22);
  const pen = document.createElement("canvas").getContext("2d");
  function besideNames(rows, width, more) {
    pen.font = `12px ${style("--sans")}`;
    const widths = rows.map((row) => pen.measureText(mechanisms[row.m].slice(0, letters(width))).width);
    return layout({ ...more, margin: { l: Math.max(40, ...widths) + 12, r: 14, t: more.annotations ? 22 : 8, b: 46 } });
  }
  const names = (rows, width) => ({
    tickvals: rows.map((_, i) => i), ticktext: rows.map((row) => short(mechanisms[row.m], letters(width))),
    range: [rows.length - 0.4, -0.6], ticks: "", showgrid: false, fixedrange: true, linecolor: "rgba(0,0,0,0)",
  });

  // ---- The charts: each makes traces and a layout from its numbers ----------------------------------------------------
  const CHARTS = {
    fct(panel, width) {
      const rows = shown(panel.rows);
      const traces = [];
      rows.forEach((row, i) => {
        const [p10, p25, p50, p75, p90] = row.q;
        // Quantiles among clients that gave up are unknown: the box ends where knowledge does.
        const last = [p90, p75, p50, p25, p10].find((q) => q !== null);
        if (p25 !== null && p50 !== null) {
          traces.push({
            type: "box", orientation: "h", y: [i], lowerfence: [p10], q1: [p25], median: [p50],
            q3: [p75 ?? p50], upperfence: [p90 ?? last], width: 0.52, whiskerwidth: 0.5, hoverinfo: "skip",
            line: { color: colour(row.m), width: 1.6 }, fillcolor: faded(row.m, 0.22),
          });
        }
        if (row.gave_up) {
          traces.push({
            type: "scatter", mode: "text", x: [last ?? 0], y: [i], text: [`  → ${row.gave_up} gave up`],
            textposition: "middle right", textfont: { size: 11, color: style("--soft") }, hoverinfo: "skip", cliponaxis: false,
          });
        }
        const text = `${name(row.m)}<br>median ${digits(p50, 4)} s, mean ${digits(row.mean, 4)} s<br>` +
          `25–75 %: ${digits(p25, 4)}–${digits(p75, 4)} s<br>10–90 %: ${digits(p10, 4)}–${digits(p90, 4)} s` +
          `<br>${row.finished} clients finished` + (row.gave_up ? `, ${row.gave_up} gave up` : "");
        const spots = row.q.filter((q) => q !== null);
        traces.push({
          type: "scatter", mode: "markers", x: spots, y: spots.map(() => i), marker: { size: 18, opacity: 0 },
          hovertemplate: text + "<extra></extra>",
        });
        if (row.published !== null) {
          traces.push({
            type: "scatter", mode: "markers", x: [row.published], y: [i + 0.4],
            marker: { symbol: "diamond", size: 8, color: style("--ink"), line: { color: style("--paper"), width: 1 } },
            hovertemplate: `${name(row.m)}<br>published median ${digits(row.published, 4)} s<extra></extra>`, cliponaxis: false,
          });
        }
      });
      const xaxis = scale(rows.flatMap((row) => [...row.q, row.published]), "FCT in seconds");
      const room = rows.some((row) => row.gave_up) ? Math.min(0.8, 85 / Math.max(100, width - 250)) : 0.05;
      return [traces, besideNames(rows, width, { xaxis: withRoom(xaxis, room), yaxis: names(rows, width) })];
    },

    cdf(panel) {
      const lines = shown(panel.lines);
      const traces = lines.map((line) => ({
        type: "scatter", mode: "lines", x: line.x, y: line.y, customdata: line.y.map((y) => digits(y * 100, 3)),
        line: { color: colour(line.m), width: 2, dash: dash(line.m) },
        hovertemplate: `${name(line.m)}<br>%{customdata} % within %{x:.4~g} s<extra></extra>`,
      }));
      return [traces, layout({
        xaxis: withRoom(scale(lines.flatMap((line) => line.x), "FCT in seconds"), 0.03),
        yaxis: {
          title: { text: "clients that are done" }, range: [0, 1.02], tickvals: [0, 0.25, 0.5, 0.75, 1],
          ticktext: ["0", "25 %", "50 %", "75 %", "100 %"],
        },
      })];
    },

    retransmissions(panel, width) {
      const rows = shown(panel.rows);
      const total = (row) => row.needed + row.unnecessary;
      const bar = (part, alpha) => ({
        type: "bar", orientation: "h", x: rows.map((row) => row[part]), y: rows.map((_, i) => i), width: 0.56,
        marker: { color: rows.map((row) => faded(row.m, alpha)), line: { color: rows.map((row) => colour(row.m)), width: 1 } },
        hovertemplate: rows.map((row) => `${name(row.m)}<br>${digits(row.unnecessary, 3)} unnecessary + ` +
          `${digits(row.needed, 3)} needed = ${digits(total(row), 3)} per client<extra></extra>`),
      });
      const largest = Math.max(0, ...rows.map(total));
      const labels = {
        type: "scatter", mode: "text", x: rows.map(total), y: rows.map((_, i) => i), textposition: "middle right",
        text: rows.map((row) => total(row) === 0 ? " none" :
          ` ${Math.round(100 * row.unnecessary / total(row))} %`),
        textfont: { size: 11, color: style("--soft") }, hoverinfo: "skip", cliponaxis: false,
      };
      return [[bar("unnecessary", 0.9), bar("needed", 0.18), labels], besideNames(rows, width, {
        barmode: "stack", yaxis: names(rows, width),
        xaxis: { title: { text: "retransmissions per client" }, range: [0, (largest || 1) * 1.18], nticks: 6 },
      })];
    },

    rto(panel) {
      const lines = shown(panel.lines);
      const traces = lines.map((line) => ({
        type: "scatter", mode: "lines", x: line.x, y: line.y,
        line: { color: colour(line.m), width: 1.8, dash: dash(line.m), shape: "hv" },
        hovertemplate: `${name(line.m)}<br>RTO %{y:.3~g} s at %{x:.4~g} s<br>${plain(line.name)}<extra></extra>`,
      }));
      return [traces, layout({
        xaxis: { title: { text: "time in seconds" }, rangemode: "tozero" },
        yaxis: withRoom(scale(lines.flatMap((line) => line.y), "RTO in seconds"), 0.05),
      })];
    },

    queue(panel, width) {
      const lines = shown(panel.lines);
      const values = lines.flatMap((line) => line.y);
      const highest = values.reduce((a, b) => Math.max(a, b), 0) || 1;
      const end = lines.flatMap((line) => line.x).reduce((a, b) => Math.max(a, b), 0) || 1;
      const [unit, by] = highest >= 1e6 ? ["MB", 1e6] : highest >= 10000 ? ["kB", 1000] : ["B", 1];
      const more = { xaxis: { title: { text: "time in seconds" }, range: [0, end], anchor: "y" + (lines.length > 1 ? lines.length : "") } };
      const share = 1 / Math.max(1, lines.length);
      const traces = lines.map((line, i) => {
        const n = i === 0 ? "" : String(i + 1);
        const top = 1 - i * share;
        more["yaxis" + n] = {
          domain: [top - share * 0.82, top], range: [0, highest / by * 1.05], tickvals: [highest / by / 2],
          ticktext: [short(mechanisms[line.m], letters(width))], fixedrange: true, showgrid: false, ticks: "",
        };
        return {
          type: "scatter", mode: "lines", x: line.x, y: line.y.map((v) => v / by),
          xaxis: "x", yaxis: "y" + n, fill: "tozeroy", fillcolor: faded(line.m, 0.25),
          line: { color: colour(line.m), width: 1.1, shape: "hv" },
          hovertemplate: `${name(line.m)}<br>%{y:.3~g} ${unit} at %{x:.4~g} s<extra></extra>`,
        };
      });
      const annotations = [{
        text: `each strip is ${digits(highest / by, 2)} ${unit} high`, font: { size: 11, color: style("--soft") }, showarrow: false,
        xref: "paper", x: 0, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom",
      }];
      return [traces, besideNames(lines, width, { ...more, annotations })];
    },

    pairs(panel, width) {
      const places = panel.mechanisms.map((_, place) => place).filter((place) => !hidden.has(panel.mechanisms[place]));
      const label = (place) => mechanisms[panel.mechanisms[place]];
      const names = places.map(label);
      const percent = (x) => (x === null ? "–" : Math.round(x * 100) + " %");
      const cells = places.map((row) => places.map((column) => panel.cells[row][column]));
      const z = cells.map((row) => row.map((cell) => (cell[panel.measure] === null ? null : cell[panel.measure] * 100)));
      const own = (i, j) => i === j && panel.measure === "share";
      const text = cells.map((row, i) => row.map((cell, j) =>
        own(i, j) || z[i][j] === null ? "·" : Math.round(z[i][j]) + (cell.starved ? "*" : "")));
      const told = cells.map((row, i) => row.map((cell, j) => {
        const [a, b] = [plain(names[i]), plain(names[j])];
        return `<b>${a}</b> ${i === j ? "among its own kind" : "beside <b>" + b + "</b>"}<br>` +
          (i === j ? "" : `${percent(cell.share)} of a fair share<br>` +
            `${percent(cell.kept)} of its throughput among its own kind<br>`) +
          `${percent(cell.again)} of its requests are retransmissions<br>an exchange takes ${digits(cell.time, 3)} s<br>` +
          `together: ${digits(cell.throughput, 3)} exchanges/s, Jain ${digits(cell.jain, 3)}, ` +
          `${percent(cell.again_together)} retransmissions`;
      }));
      // As much above 100 % as below, so that the ground is the colour of what is fair.
      const reach = z.flat().reduce((most, x) => (x === null ? most : Math.max(most, Math.abs(x - 100))), 25);
      const heat = {
        type: "heatmap", z, x: places.map((_, i) => i), y: places.map((_, i) => i), text, hovertext: told,
        hovertemplate: "%{hovertext}<extra></extra>", texttemplate: "%{text}", xgap: 2, ygap: 2,
        zmin: 100 - reach, zmax: 100 + reach,
        // Blue and orange on which the ink of the theme can be read.
        colorscale: theme === "dark" ? [[0, "#00669f"], [0.5, style("--shade")], [1, "#b65000"]]
          : [[0, "#5aa9dd"], [0.5, style("--shade")], [1, "#f08a45"]],
        textfont: { color: style("--ink") },
        colorbar: {
          title: { text: "%" }, thickness: 10, len: 0.6, outlinewidth: 0, ticks: "", tickfont: { size: 11 },
        },
      };
      pen.font = `12px ${style("--sans")}`;
      const shownNames = names.map((name) => (name.length > letters(width) ? name.slice(0, letters(width) - 1) + "…" : name));
      const longest = Math.max(30, ...shownNames.map((name) => pen.measureText(name).width));
      const axis = {
        tickvals: places.map((_, i) => i), ticktext: shownNames.map(plain), ticks: "", showgrid: false, fixedrange: true,
        linecolor: "rgba(0,0,0,0)", range: [-0.5, places.length - 0.5],
      };
      const description = layout({
        xaxis: { ...axis, side: "top", tickangle: -50 }, yaxis: { ...axis, range: [places.length - 0.5, -0.5] },
      });
      description.margin = { l: longest + 12, r: 14, t: longest * 0.8 + 22, b: 10 };
      return [[heat], description];
    },

    sweep(panel) {
      const lines = shown(panel.lines);
      const xs = [...new Set(panel.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
      // Logarithmic where the values lie more evenly so.
      const widest = (of) => Math.max(...xs.slice(1).map((x, i) => of(x) - of(xs[i]))) / (of(xs.at(-1)) - of(xs[0]));
      const log = xs[0] > 0 && widest(Math.log) < widest((x) => x);
      const values = lines.flatMap((line) => line.y);
      // How far apart the lines are where they are farthest apart.
      const apart = Math.max(1, ...xs.map((x) => {
        const there = lines.flatMap((line) => line.y.filter((_, i) => line.x[i] === x));
        return Math.max(...there) / Math.min(...there);
      }).filter(Number.isFinite));
      const high = Math.max(0, ...lines.flatMap((line) => line.high));
      const yaxis = (log || apart > 10) && values.every((y) => y > 0) ? withRoom(scale(values, panel.y), 0.05)
        : { title: { text: panel.y }, range: [0, (high || 1) * 1.05] };
      // A band may reach below nothing, which a logarithmic axis has not.
      const least = yaxis.type === "log" ? Math.min(...values) / 100 : -Infinity;
      const lowest = (line) => line.low.map((y) => Math.max(y, least));
      const unit = (text) => (text ? " " + plain(text) : "");
      const traces = lines.flatMap((line) => [{
        type: "scatter", mode: "lines", x: [...line.x, ...line.x.toReversed()], y: [...line.high, ...lowest(line).toReversed()],
        fill: "toself", fillcolor: faded(line.m, 0.16), line: { width: 0 }, hoverinfo: "skip",
      }, {
        type: "scatter", mode: "lines+markers", x: line.x, y: line.y, customdata: line.y.map((_, i) => [digits(line.low[i], 3), digits(line.high[i], 3)]),
        line: { color: colour(line.m), width: 2, dash: dash(line.m) }, marker: { size: 5, color: colour(line.m) },
        hovertemplate: `${name(line.m)}<br>%{y:.4~g}${unit(panel.unit)} at %{x:.4~g}${unit(panel.knob_unit)}<br>` +
          "95 %: %{customdata[0]}–%{customdata[1]}<extra></extra>",
      }]);
      const [from, to] = [xs[0], xs.at(-1)];
      const x = log ? scale(xs, panel.x) : { title: { text: panel.x }, low: from, high: to };
      return [traces, layout({ xaxis: withRoom(x, 0.05), yaxis })];
    },

    published(panel) {
      const unit = panel.unit ? " " + panel.unit : "";
      const points = shown(panel.points);
      const all = panel.points.flatMap((point) => [point.published, point.measured]);
      const low = Math.min(...all) / 1.3, high = Math.max(...all) * 1.3;
      const band = {
        type: "scatter", mode: "lines", x: [low, high, high, low], y: [low * 0.95, high * 0.95, high * 1.05, low * 1.05],
        fill: "toself", fillcolor: style("--line"), line: { width: 0 }, hoverinfo: "skip",
      };
      const diagonal = {
        type: "scatter", mode: "lines", x: [low, high], y: [low, high], line: { color: style("--soft"), width: 1 }, hoverinfo: "skip",
      };
      const marks = [...new Set(points.map((point) => point.m))].map((m) => {
        const own = points.filter((point) => point.m === m);
        return {
          type: "scatter", mode: "markers", x: own.map((point) => point.published), y: own.map((point) => point.measured),
          marker: {
            color: faded(m, 0.75), size: 9, line: { color: style("--paper"), width: 1 },
            symbol: ["circle", "square", "triangle-up", "triangle-down", "pentagon", "star", "hexagon", "cross"][m % 8] + (m < 8 ? "" : "-open"),
          },
          customdata: own.map((point) => [plain(point.title), (point.measured / point.published - 1) * 100]),
          hovertemplate: `${name(m)}<br>%{customdata[0]}<br>published %{x:.4~g}${unit}, measured %{y:.4~g}${unit}` +
            `<br>%{customdata[1]:+.1f} %<extra></extra>`,
        };
      });
      const axis = (title) => ({ title: { text: title }, type: "log", range: [Math.log10(low), Math.log10(high)], ...logTicks(low, high) });
      return [[band, diagonal, ...marks], layout({
        xaxis: axis(`published ${panel.axis}, logarithmic`), yaxis: axis("measured, logarithmic"),
      })];
    },
  };

  // ---- Drawing: when a chart comes near the window, and again when something has changed ------------------------------
  const CONFIG = {
    displaylogo: false, displayModeBar: "hover", plotlyServerURL: "",
    modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: { format: "svg", filename: "coapace" },
  };
  function draw(plot) {
    const panel = panels[Number(plot.dataset.panel)];
    const [traces, description] = CHARTS[panel.kind](panel, plot.clientWidth);
    Plotly.react(plot, traces, { ...description, width: plot.clientWidth, height: plot.clientHeight }, CONFIG);
  }
  const plots = [...document.querySelectorAll("[data-panel]")];
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
    for (const key of document.querySelectorAll(".key[data-m]")) key.style.background = colour(Number(key.dataset.m));
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
  // No chart is resized on its way to the paper: they are drawn for its width before.
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
