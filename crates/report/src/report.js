"use strict";
(() => {
  const { mechanisms, panels } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  // ---- Colours and dashes: those of style.rs, and colours for a dark ground -------------------------------------------
  const PALETTE = {
    light: ["#57534e", "#0072b2", "#d55e00", "#009e73", "#c2609a", "#e0930a", "#3fa4dd", "#a69b00"],
    dark: ["#b8b3a9", "#4b9fdb", "#f0803c", "#2bbd92", "#e29cc6", "#f2b33d", "#93d0f5", "#e9df4a"],
  };
  const DASHES = ["solid", "7px,4px", "2px,3px", "8px,3px,2px,3px", "14px,5px", "14px,4px,3px,4px"];
  const MARKS = ["circle", "square", "triangle-up", "diamond", "circle-open", "x-thin-open"];
  let theme = "light";
  const colour = (m) => PALETTE[theme][mechanisms[m].colour];
  const dash = (m) => DASHES[mechanisms[m].dash];
  const mark = (m) => MARKS[mechanisms[m].dash];
  // Mechanisms of one colour have different dashes, in the key and in the lines.
  const swatch = (m) => {
    const lengths = dash(m).match(/\d+/g);
    if (!lengths) return colour(m);
    let at = 0;
    const stops = lengths.map((length, i) => {
      const from = at;
      at += Number(length) / 2;
      return `${i % 2 ? "transparent" : colour(m)} ${from}px ${at}px`;
    });
    return `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
  };
  const faded = (m, alpha) => colour(m) + Math.round(alpha * 255).toString(16).padStart(2, "0");
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- Text ------------------------------------------------------------------------------------------------------------
  // Escapes a name, because the chart library interprets markup in text.
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
  const digits = (x, n) => {
    if (x === null || x === undefined) return "–";
    if (x === 0) return "0";
    return x.toFixed(Math.max(0, Math.min(9, n - 1 - Math.floor(Math.log10(Math.abs(x))))));
  };
  const name = (m) => `<b>${plain(mechanisms[m].name)}</b>`;
  const unit = (axis) => (axis.unit ? " " + plain(axis.unit) : "");

  // ---- Common parts of all charts -------------------------------------------------------------------------------------
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

  // A long title has its unit in a second line, so that it is whole on a phone, too.
  const lined = (title) => (title.length > 36 ? title.replace(/ in (?!.* in )/, "\n") : title).split("\n").map(plain).join("<br>in ");
  // Converts an axis of the data to one of the chart library.
  const axis = ({ title, log, percent, range, ticks }, more) => ({
    title: { text: lined(title) }, automargin: title.length > 36, range: log ? range.map(Math.log10) : range,
    ...(log ? { type: "log", tickvals: ticks, ticktext: ticks.map(String) } : {}), ...(percent ? { tickvals: ticks, tickformat: ".0%" } : {}), ...more,
  });
  // Names at the left, and a margin of their width.
  const letters = (width) => (width < 450 ? 16 : 26);
  const pen = document.createElement("canvas").getContext("2d");
  function wide(rows, width) {
    pen.font = `12px ${style("--sans")}`;
    const lines = rows.flatMap((row) => broken(mechanisms[row.m].name, letters(width)));
    return Math.max(40, ...lines.map((line) => pen.measureText(line).width)) + 12;
  }
  const besideNames = (rows, width, more) => layout({ ...more, margin: { l: wide(rows, width), r: 14, t: more.annotations ? 22 : 8, b: 46 } });
  const named = (m, width) => broken(mechanisms[m].name, letters(width)).map(plain).join("<br>");
  const names = (rows, width) => ({
    tickvals: rows.map((_, i) => i), ticktext: rows.map((row) => named(row.m, width)),
    range: [rows.length - 0.4, -0.6], ticks: "", showgrid: false, fixedrange: true, linecolor: "rgba(0,0,0,0)",
  });
  const diamond = (x, y, text) => ({
    type: "scatter", mode: "markers", x: [x], y: [y], cliponaxis: false, showlegend: false,
    marker: { symbol: "diamond", size: 8, color: style("--ink"), line: { color: style("--paper"), width: 1 } },
    hovertemplate: text + "<extra></extra>",
  });

  // Returns the line of a bound over so many rows; none without a bound.
  const bound = (chart, rows) => (chart.bound === null ? [] : [{
    type: "scatter", mode: "lines", x: [chart.bound, chart.bound], y: [-0.5, rows.length - 0.5], showlegend: false,
    line: { color: style("--ink"), width: 1.5, dash: "dot" }, hovertemplate: `bound: ${digits(chart.bound, 4)}${unit(chart.x)}<extra></extra>`,
  }]);

  // ---- The charts: each makes traces and a layout from its model ------------------------------------------------------
  const MOST_LINES = 8;
  // Returns the traces of a line: its interval, if it has one, and the line itself.
  function curve(chart, line, more) {
    const band = line.low && {
      type: "scatter", mode: "lines", x: [...line.x, ...line.x.toReversed()],
      // A band may reach below 0, and a logarithmic axis does not.
      y: [...line.high, ...line.low.toReversed()].map((y) => (chart.y.log ? Math.max(y, chart.y.range[0] / 100) : y)),
      fill: "toself", fillcolor: faded(line.m, 0.16), line: { width: 0 }, hoverinfo: "skip", showlegend: false, ...more,
    };
    const share = chart.y.percent ? "%{y:.3~p}" : `%{y:.4~g}${unit(chart.y)}`;
    const own = {
      type: "scatter", mode: line.dots ? "markers" : line.marks ? "lines+markers" : "lines", x: line.x, y: line.y, name: plain(mechanisms[line.m].name),
      customdata: line.low && line.y.map((_, i) => [digits(line.low[i], 3), digits(line.high[i], 3)]),
      line: { color: colour(line.m), width: 2, dash: dash(line.m), shape: line.steps ? "hv" : "linear" },
      marker: { size: 6, color: colour(line.m), symbol: mark(line.m), line: { width: 1.5, color: colour(line.m) } },
      hovertemplate: `${name(line.m)}<br>${share} at %{x:.4~g}${unit(chart.x)}` +
        (line.low ? "<br>95 %: %{customdata[0]}–%{customdata[1]}" : "") + (line.of ? `<br>${plain(line.of)}` : "") + "<extra></extra>",
      ...more,
    };
    return band ? [band, own] : [own];
  }
  // Draws a plane for each mechanism, with all others in grey behind it.
  function multiples(chart, lines, width) {
    const own = [...new Set(lines.map((line) => line.m))];
    const columns = Math.min(own.length, width > 760 ? 4 : width > 520 ? 3 : 2), rows = Math.ceil(own.length / columns);
    const more = {}, traces = [], annotations = [];
    // Names are above the planes, some of two lines. A plane has the share of its row that they leave.
    const above = Math.max(...own.map((m) => broken(mechanisms[m].name, letters(width / columns * 2)).length));
    const plane = 0.9 - 0.1 * above;
    own.forEach((m, i) => {
      const n = i ? String(i + 1) : "", column = i % columns, row = Math.floor(i / columns);
      const x = [column / columns, (column + 0.94) / columns], y = [1 - (row + plane) / rows, 1 - row / rows - 0.02 / rows];
      more["xaxis" + n] = axis(chart.x, { domain: x, anchor: "y" + n, title: { text: "" }, nticks: 4, matches: i ? "x" : undefined, showticklabels: i + columns >= own.length });
      more["yaxis" + n] = axis(chart.y, { domain: y, anchor: "x" + n, title: { text: "" }, matches: i ? "y" : undefined, showticklabels: column === 0 });
      annotations.push({
        text: named(m, width / columns * 2), font: { size: 11, color: colour(m) }, align: "left", showarrow: false, xref: "paper", yref: "paper",
        x: x[0], y: y[1], xanchor: "left", yanchor: "bottom",
      });
      const others = { x: [], y: [] };
      for (const line of lines.filter((line) => line.m !== m)) {
        others.x.push(...line.x, null);
        others.y.push(...line.y, null);
      }
      traces.push({ type: "scatter", mode: "lines", ...others, line: { color: style("--line"), width: 1 }, hoverinfo: "skip", xaxis: "x" + n, yaxis: "y" + n, showlegend: false });
      for (const line of lines.filter((line) => line.m === m)) traces.push(...curve(chart, line, { xaxis: "x" + n, yaxis: "y" + n, showlegend: false }));
    });
    for (const [text, place] of [[chart.x.title, { x: 0.5, y: 0, yanchor: "top", yshift: -24 }], [chart.y.title, { x: 0, y: 0.5, textangle: -90, xanchor: "right", xshift: -36 }]]) {
      annotations.push({ text: plain(text), showarrow: false, xref: "paper", yref: "paper", ...place });
    }
    return [traces, layout({ ...more, annotations, margin: { l: 62, r: 14, t: 10 + 14 * above, b: 50 } })];
  }
  const CHARTS = {
    lines(chart, width) {
      const lines = shown(chart.lines);
      if (new Set(lines.map((line) => line.m)).size > MOST_LINES) return multiples(chart, lines, width);
      return [lines.flatMap((line) => curve(chart, line)), layout({ xaxis: axis(chart.x), yaxis: axis(chart.y) })];
    },

    strips(chart, width) {
      const lines = shown(chart.lines);
      const more = { xaxis: axis(chart.x, { anchor: "y" + (lines.length > 1 ? lines.length : "") }) };
      const share = 1 / Math.max(1, lines.length);
      const traces = lines.map((line, i) => {
        const n = i === 0 ? "" : String(i + 1);
        const top = 1 - i * share;
        more["yaxis" + n] = {
          domain: [top - share * 0.82, top], range: chart.y.range, tickvals: [chart.y.range[1] / 2],
          ticktext: [named(line.m, width)], fixedrange: true, showgrid: false, ticks: "",
        };
        return {
          type: "scatter", mode: "lines", x: line.x, y: line.y, xaxis: "x", yaxis: "y" + n, fill: "tozeroy", fillcolor: faded(line.m, 0.25),
          line: { color: colour(line.m), width: 1.1, shape: "hv" }, showlegend: false,
          hovertemplate: `${name(line.m)}<br>%{y:.3~g}${unit(chart.y)} at %{x:.4~g}${unit(chart.x)}<extra></extra>`,
        };
      });
      const annotations = [{
        text: `each strip is ${digits(chart.y.range[1], 2)}${unit(chart.y)} high`, font: { size: 11, color: style("--soft") }, showarrow: false,
        xref: "paper", x: 0, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom",
      }];
      return [traces, besideNames(lines, width, { ...more, annotations })];
    },

    boxes(chart, width) {
      const rows = shown(chart.rows);
      const traces = [];
      rows.forEach((row, i) => {
        const [p10, p25, p50, p75, p90] = row.q;
        // Quantiles among clients that gave up are unknown. The box ends at the last known one.
        const last = [p90, p75, p50, p25, p10].find((q) => q !== null);
        if (p25 !== null && p50 !== null) {
          traces.push({
            type: "box", orientation: "h", y: [i], lowerfence: [p10], q1: [p25], median: [p50],
            q3: [p75 ?? p50], upperfence: [p90 ?? last], width: 0.52, whiskerwidth: 0.5, hoverinfo: "skip",
            line: { color: colour(row.m), width: 1.6 }, fillcolor: faded(row.m, 0.22), showlegend: false,
          });
        }
        if (row.gave_up) {
          traces.push({
            type: "scatter", mode: "text", x: [last ?? chart.x.range[0]], y: [i], text: [`  → ${row.gave_up} gave up`], showlegend: false,
            textposition: "middle right", textfont: { size: 11, color: style("--soft") }, hoverinfo: "skip", cliponaxis: false,
          });
        }
        const text = `${name(row.m)}<br>median ${digits(p50, 4)} s, mean ${digits(row.mean, 4)} s<br>` +
          `25–75 %: ${digits(p25, 4)}–${digits(p75, 4)} s<br>10–90 %: ${digits(p10, 4)}–${digits(p90, 4)} s` +
          `<br>of ${row.count}` + (row.gave_up ? `; ${row.gave_up} gave up` : "");
        const spots = row.q.filter((q) => q !== null);
        traces.push({
          type: "scatter", mode: "markers", x: spots, y: spots.map(() => i), marker: { size: 18, opacity: 0 },
          hovertemplate: text + "<extra></extra>", showlegend: false,
        });
        if (row.published !== null) traces.push(diamond(row.published, i + 0.4, `${name(row.m)}<br>published median ${digits(row.published, 4)} s`));
      });
      return [[...bound(chart, rows), ...traces], besideNames(rows, width, { xaxis: axis(chart.x), yaxis: names(rows, width) })];
    },

    intervals(chart, width) {
      const rows = shown(chart.rows);
      const traces = rows.flatMap((row, i) => {
        if (row.measured === null) return [];
        const [low, mean, high] = row.measured;
        return {
          type: "scatter", mode: "markers", x: [mean], y: [i], showlegend: false,
          error_x: { type: "data", symmetric: false, array: [high - mean], arrayminus: [mean - low], color: colour(row.m), thickness: 2, width: 5 },
          marker: { size: 9, color: colour(row.m), symbol: mark(row.m), line: { width: 2, color: colour(row.m) } },
          hovertemplate: `${name(row.m)}<br>${digits(mean, 4)}${unit(chart.x)}` +
            (high > low ? `<br>95 %: ${digits(low, 3)}–${digits(high, 3)}` : "<br>one seed") + "<extra></extra>",
        };
      });
      rows.forEach((row, i) => {
        if (row.published !== null) traces.push(diamond(row.published, i + 0.4, `${name(row.m)}<br>published ${digits(row.published, 4)}${unit(chart.x)}`));
      });
      return [[...bound(chart, rows), ...traces], besideNames(rows, width, { xaxis: axis(chart.x, { nticks: 6 }), yaxis: names(rows, width) })];
    },

    bars(chart, width) {
      const rows = shown(chart.rows);
      const total = (row) => row.amounts[0] + row.amounts[1];
      const bar = (part, alpha) => ({
        type: "bar", orientation: "h", x: rows.map((row) => row.amounts[part]), y: rows.map((_, i) => i), width: 0.56, showlegend: false,
        marker: { color: rows.map((row) => faded(row.m, alpha)), line: { color: rows.map((row) => colour(row.m)), width: 1 } },
        hovertemplate: rows.map((row) => `${name(row.m)}<br>${digits(row.amounts[0], 3)} ${chart.parts[0]} + ` +
          `${digits(row.amounts[1], 3)} ${chart.parts[1]} = ${digits(total(row), 3)} per client<extra></extra>`),
      });
      const labels = {
        type: "scatter", mode: "text", x: rows.map(total), y: rows.map((_, i) => i), textposition: "middle right", showlegend: false,
        text: rows.map((row) => total(row) === 0 ? " none" : ` ${Math.round(100 * row.amounts[0] / total(row))} %`),
        textfont: { size: 11, color: style("--soft") }, hoverinfo: "skip", cliponaxis: false,
      };
      return [[bar(0, 0.9), bar(1, 0.18), labels], besideNames(rows, width, {
        barmode: "stack", yaxis: names(rows, width), xaxis: axis(chart.x, { nticks: 6 }),
      })];
    },

    squares(chart, width) {
      const places = chart.mechanisms.map((_, place) => place).filter((place) => !hidden.has(chart.mechanisms[place]));
      const label = (place) => mechanisms[chart.mechanisms[place]].name;
      const own_names = places.map(label);
      const percent = (x) => (x === null ? "–" : Math.round(x * 100) + " %");
      const cells = places.map((row) => places.map((column) => chart.cells[row][column]));
      const z = cells.map((row) => row.map((cell) => (cell[chart.measure] === null ? null : cell[chart.measure] * 100)));
      const own = (i, j) => i === j && chart.measure === "share";
      const text = cells.map((row, i) => row.map((cell, j) =>
        own(i, j) || z[i][j] === null ? "·" : Math.round(z[i][j]) + (cell.starved ? "*" : "")));
      const told = cells.map((row, i) => row.map((cell, j) => {
        const [a, b] = [plain(own_names[i]), plain(own_names[j])];
        return `<b>${a}</b> ${i === j ? "among its own kind" : "beside <b>" + b + "</b>"}<br>` +
          (i === j ? "" : `${percent(cell.share)} of a fair share<br>` +
            `${percent(cell.kept)} of its throughput among its own kind<br>`) +
          `${percent(cell.again)} of its requests are retransmissions<br>an exchange takes ${digits(cell.time, 3)} s<br>` +
          `together: ${digits(cell.throughput, 3)} exchanges/s, Jain ${digits(cell.jain, 3)}, ` +
          `${percent(cell.again_together)} retransmissions`;
      }));
      // The scale reaches as far above 100 % as below, so that a fair share has the colour of the background.
      const reach = z.flat().reduce((most, x) => (x === null ? most : Math.max(most, Math.abs(x - 100))), 25);
      const heat = {
        type: "heatmap", z, x: places.map((_, i) => i), y: places.map((_, i) => i), text, hovertext: told,
        hovertemplate: "%{hovertext}<extra></extra>", texttemplate: "%{text}", xgap: 2, ygap: 2,
        zmin: 100 - reach, zmax: 100 + reach,
        // The text colour of the theme is readable on these shades of blue and orange.
        colorscale: theme === "dark" ? [[0, "#00669f"], [0.5, style("--shade")], [1, "#b65000"]]
          : [[0, "#5aa9dd"], [0.5, style("--shade")], [1, "#f08a45"]],
        textfont: { color: style("--ink") },
        colorbar: {
          title: { text: "%" }, thickness: 10, len: 0.6, outlinewidth: 0, ticks: "", tickfont: { size: 11 },
        },
      };
      pen.font = `12px ${style("--sans")}`;
      const lines = own_names.map((name) => broken(name, letters(width)));
      const longest = Math.max(30, ...lines.flat().map((line) => pen.measureText(line).width));
      const names = {
        tickvals: places.map((_, i) => i), ticktext: lines.map((name) => name.map(plain).join("<br>")), ticks: "", showgrid: false, fixedrange: true,
        linecolor: "rgba(0,0,0,0)", range: [-0.5, places.length - 0.5],
      };
      const description = layout({
        xaxis: { ...names, side: "top", tickangle: -50 }, yaxis: { ...names, range: [places.length - 0.5, -0.5] },
      });
      description.margin = { l: longest + 12, r: 14, t: longest * 0.8 + 22, b: 10 };
      return [[heat], description];
    },

    points(chart) {
      const points = shown(chart.points);
      const [low, high] = chart.x.range;
      const band = {
        type: "scatter", mode: "lines", x: [low, high, high, low], y: [low * 0.95, high * 0.95, high * 1.05, low * 1.05],
        fill: "toself", fillcolor: style("--line"), line: { width: 0 }, hoverinfo: "skip", showlegend: false,
      };
      const diagonal = {
        type: "scatter", mode: "lines", x: [low, high], y: [low, high], line: { color: style("--soft"), width: 1 }, hoverinfo: "skip", showlegend: false,
      };
      const marks = [...new Set(points.map((point) => point.m))].map((m) => {
        const own = points.filter((point) => point.m === m);
        return {
          type: "scatter", mode: "markers", x: own.map((point) => point.published), y: own.map((point) => point.measured), name: plain(mechanisms[m].name),
          marker: { color: faded(m, 0.75), size: 9, line: { color: mark(m).endsWith("-open") ? colour(m) : style("--paper"), width: 1.5 }, symbol: mark(m) },
          customdata: own.map((point) => [plain(point.conditions), (point.measured / point.published - 1) * 100]),
          hovertemplate: `${name(m)}<br>%{customdata[0]}<br>published %{x:.4~g}${unit(chart.x)}, measured %{y:.4~g}${unit(chart.x)}` +
            `<br>%{customdata[1]:+.1f} %<extra></extra>`,
        };
      });
      return [[band, diagonal, ...marks], layout({ xaxis: axis(chart.x), yaxis: axis(chart.y) })];
    },
  };

  // ---- Drawing: when a chart comes near the window, and again when something has changed ------------------------------
  const CONFIG = {
    displaylogo: false, displayModeBar: "hover", plotlyServerURL: "",
    modeBarButtons: [["resetScale2d"]],
  };
  function draw(plot) {
    const panel = panels[Number(plot.dataset.panel)];
    const [traces, description] = CHARTS[panel.kind](panel, plot.clientWidth);
    Plotly.react(plot, traces, { ...description, width: plot.clientWidth, height: plot.clientHeight }, CONFIG);
  }
  const plots = [...document.querySelectorAll("[data-panel]")];

  // ---- Saving: on white paper, with title and legend, whatever the page looks like ------------------------------------
  async function picture(plot, format) {
    const chart = panels[Number(plot.dataset.panel)], before = theme, width = 900;
    theme = root.dataset.theme = "light";
    const [data, description] = CHARTS[chart.kind](chart, width);
    const names = data.filter((trace) => trace.showlegend !== false && trace.name).length;
    theme = root.dataset.theme = before;
    const { margin, ...others } = description;
    const title = plain(chart.title) + (chart.conditions ? `<br><sub>${plain(chart.conditions)}</sub>` : "");
    const below = names ? 30 + 20 * Math.ceil(names / 3) : 0;
    const height = Math.max(240, parseInt(plot.style.height, 10)) + 60 + below;
    return Plotly.toImage({
      data, layout: {
        ...others, paper_bgcolor: "#fff", plot_bgcolor: "#fff", showlegend: names > 0, width, height,
        title: { text: title, x: 0, xref: "paper", y: 1, yref: "container", yanchor: "top", pad: { t: 14 }, font: { size: 17 } },
        legend: { orientation: "h", y: 0, yref: "container", yanchor: "bottom", x: 0 }, margin: { ...margin, t: margin.t + 60, b: margin.b + below },
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
