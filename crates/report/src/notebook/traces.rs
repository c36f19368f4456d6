//! The traces of a chart (plotly's series), and the parts of its layout that belong to them. Notebooks and the page
//! draw both.
//!
//! The page leaves out the mechanisms that its reader hides, without a gap. So the `meta` of a trace is the number of
//! its mechanism, and the `meta` of a layout lists the numbers of the mechanisms, row by row. The `y` of a trace in a
//! row is the number of the row, or a little more. Traces without `meta` belong to all mechanisms.

use coapace_lab::number::{significant, significant_or_dash};
use serde_json::{Value, json};

use super::super::axis::Axis;
use super::super::chart::{Bar, Body, Chart, Curve, Interval, PublishedPoint, Quartiles};
use super::super::headline::MET;
use super::super::pairs::{Pairs, Square};
use super::super::panels::StyledMechanism;
use super::super::rounded::rounded;
use super::super::style::{BLUE, INK, LINE, ORANGE, PAPER, SHADE, SOFT, Style};
use super::{MARKS, axis, dash, extend, faded, names, plain};

/// The maximum number of ticks on the x axis of a chart with rows, whose labels would otherwise overlap.
const MOST_TICKS: usize = 6;

/// Returns the traces of a chart, and the parts of its layout that belong to them.
pub(super) fn of(chart: &Chart, mechanisms: &[StyledMechanism]) -> (Vec<Value>, Value) {
    let draw = Drawing { chart, mechanisms };
    match &chart.body {
        Body::Lines { lines } => draw.lines(lines),
        Body::Strips { lines } => draw.strips(lines),
        Body::Boxes { rows, bound } => draw.boxes(rows, *bound),
        Body::Intervals { rows, bound } => draw.intervals(rows, *bound),
        Body::Bars { parts, rows } => draw.bars(*parts, rows),
        Body::Points { points } => draw.points(points),
        Body::Squares(pairs) => draw.squares(pairs),
    }
}

struct Drawing<'a> {
    chart: &'a Chart,
    mechanisms: &'a [StyledMechanism<'a>],
}

impl Drawing<'_> {
    fn style(&self, m: usize) -> Style {
        self.mechanisms[m].style
    }

    fn name(&self, m: usize) -> String {
        plain(self.mechanisms[m].name)
    }

    fn mark(&self, m: usize) -> &'static str {
        MARKS[self.style(m).dash % MARKS.len()]
    }

    /// Returns the layout of a chart with a row for each mechanism.
    fn row_layout(&self, rows: impl Iterator<Item = usize>) -> Value {
        let rows: Vec<usize> = rows.collect();
        let own: Vec<String> = rows.iter().map(|m| self.name(*m)).collect();
        json!({ "xaxis": axis(&self.chart.x), "yaxis": names(&own), "meta": rows })
    }

    fn lines(&self, lines: &[Curve]) -> (Vec<Value>, Value) {
        let (x, y) = (&self.chart.x, &self.chart.y);
        let share = if y.percent { "%{y:.3~p}".to_owned() } else { format!("%{{y:.4~g}}{}", unit(y)) };
        let mut traces = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            let (name, colour, group) = (self.name(line.m), self.style(line.m).css(), line.m.to_string());
            if !line.low.is_empty() {
                // The outline of the band: along the upper ends, and back along the lower ones.
                let along: Vec<f64> = line.x.iter().chain(line.x.iter().rev()).copied().collect();
                // A band may reach below 0, and a logarithmic axis does not.
                let least = if y.log { y.range[0] / 100.0 } else { f64::NEG_INFINITY };
                let around: Vec<f64> =
                    line.high.iter().chain(line.low.iter().rev()).map(|end| end.max(least)).collect();
                traces.push(json!({
                    "type": "scatter", "mode": "lines", "x": along, "y": around, "fill": "toself", "line": { "width": 0 },
                    "fillcolor": faded(colour, 0.16), "hoverinfo": "skip", "showlegend": false, "legendgroup": group, "meta": line.m,
                }));
            }
            // The interval is text beside the point, because a band itself shows no values.
            let ends = line.low.iter().zip(&line.high);
            let ends: Vec<_> = ends.map(|(low, high)| [low, high].map(|end| significant(*end, 3))).collect();
            let interval = if ends.is_empty() { "" } else { "<br>95 %: %{customdata[0]}–%{customdata[1]}" };
            let of = if line.of.is_empty() { String::new() } else { format!("<br>{}", plain(&line.of)) };
            let hover =
                format!("<b>{name}</b><br>{share} at %{{x:.4~g}}{}{interval}{of}<extra></extra>", unit(x));
            let drawn = match (line.dots, line.marks) {
                (true, _) => "markers",
                (_, true) => "lines+markers",
                _ => "lines",
            };
            let mut own = json!({
                "type": "scatter", "mode": drawn, "x": line.x, "y": line.y, "meta": line.m,
                // Several curves of one mechanism have one entry in the legend.
                "name": name, "legendgroup": group, "showlegend": lines[..place].iter().all(|other| other.m != line.m),
                "line": { "color": colour, "width": 2, "dash": dash(self.style(line.m)), "shape": if line.steps { "hv" } else { "linear" } },
                "customdata": ends, "hovertemplate": hover,
            });
            if drawn != "lines" {
                own["marker"] = json!({
                    "size": 6, "color": colour, "symbol": self.mark(line.m), "line": { "width": 1.5, "color": colour },
                });
            }
            traces.push(own);
        }
        (traces, json!({ "xaxis": axis(x), "yaxis": axis(y), "showlegend": true, "height": 470 }))
    }

    fn strips(&self, lines: &[Curve]) -> (Vec<Value>, Value) {
        let (x, y) = (&self.chart.x, &self.chart.y);
        // Plotly calls the first axis `y` and the second `y2`.
        let numbered = |axis: &str, place: usize| {
            if place == 0 { axis.to_owned() } else { format!("{axis}{}", place + 1) }
        };
        let note = json!({
            "text": format!("each strip is {}{} high", significant(y.range[1], 2), unit(y)), "showarrow": false,
            "font": { "size": 11, "color": SOFT }, "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1,
            "yanchor": "bottom",
        });
        let all: Vec<String> = (0..lines.len()).map(|place| numbered("y", place)).collect();
        let grid = json!({ "xaxes": ["x"], "yaxes": all, "ygap": 0.18 });
        let mut layout = json!({ "xaxis": axis(x), "grid": grid, "annotations": [note] });
        let mut traces = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            let (name, colour) = (self.name(line.m), self.style(line.m).css());
            let mut strip = names(std::slice::from_ref(&name));
            // All strips have the same range, so that their heights compare.
            let own = json!({ "range": y.range, "tickvals": [y.range[1] / 2.0], "fixedrange": true, "showline": true });
            extend(&mut strip, own);
            layout[numbered("yaxis", place)] = strip;
            traces.push(json!({
                "type": "scatter", "mode": "lines", "x": line.x, "y": line.y, "yaxis": all[place], "meta": line.m,
                "fill": "tozeroy", "fillcolor": faded(colour, 0.25), "line": { "color": colour, "width": 1.1, "shape": "hv" },
                "name": name, "hovertemplate": format!(
                    "<b>{name}</b><br>%{{y:.3~g}}{} at %{{x:.4~g}}{}<extra></extra>", unit(y), unit(x)
                ),
            }));
        }
        (traces, layout)
    }

    fn boxes(&self, rows: &[Quartiles], bound: Option<f64>) -> (Vec<Value>, Value) {
        let mut traces: Vec<Value> = self.bound(bound, rows.len()).into_iter().collect();
        for (place, row) in rows.iter().enumerate() {
            let (name, colour) = (self.name(row.m), self.style(row.m).css());
            let [p10, p25, p50, p75, p90] = row.q;
            let known = |q: Option<f64>| significant_or_dash(q, 4);
            let ([word10, word25, word50, word75, word90], mean) = (row.q.map(known), known(row.mean));
            // Quantiles among clients that gave up are unknown. The box ends at the last known one.
            let last = row.q.iter().rev().copied().flatten().next();
            let gave_up = if row.gave_up > 0 { format!("; {} gave up", row.gave_up) } else { String::new() };
            let text = format!(
                "<b>{name}</b><br>median {word50} s, mean {mean} s<br>25–75 %: {word25}–{word75} s<br>10–90 %: {word10}–{word90} s\
                 <br>of {}{gave_up}",
                row.count
            );
            // A box needs a median, which is unknown if half of the clients gave up.
            if let (Some(p25), Some(p50)) = (p25, p50) {
                traces.push(json!({
                    "type": "box", "orientation": "h", "y": [place], "lowerfence": [p10], "q1": [p25], "median": [p50],
                    "q3": [p75.unwrap_or(p50)], "upperfence": [p90.or(last)], "width": 0.52, "whiskerwidth": 0.5, "hoverinfo": "skip",
                    "name": name, "line": { "color": colour, "width": 1.6 }, "fillcolor": faded(colour, 0.22), "meta": row.m,
                }));
            }
            // Plotly's own text for a box names its quantiles otherwise. Invisible marks show ours.
            let spots: Vec<f64> = row.q.iter().copied().flatten().collect();
            traces.push(json!({
                "type": "scatter", "mode": "markers", "x": spots, "y": vec![place; spots.len()], "name": name, "meta": row.m,
                "marker": { "size": 18, "opacity": 0, "color": colour }, "hovertemplate": format!("{text}<extra></extra>"),
            }));
            if row.gave_up > 0 {
                traces.push(json!({
                    "type": "scatter", "mode": "text", "x": [last.unwrap_or(self.chart.x.range[0])], "y": [place], "textposition": "middle right",
                    "text": [format!("  → {} gave up", row.gave_up)], "textfont": { "size": 11, "color": SOFT },
                    "hoverinfo": "skip", "cliponaxis": false, "meta": row.m,
                }));
            }
            traces.extend(row.published.map(|value| self.diamond(place, row.m, "published median", value)));
        }
        (traces, self.row_layout(rows.iter().map(|row| row.m)))
    }

    fn intervals(&self, rows: &[Interval], bound: Option<f64>) -> (Vec<Value>, Value) {
        let mut traces: Vec<Value> = self.bound(bound, rows.len()).into_iter().collect();
        for (place, row) in rows.iter().enumerate() {
            let (name, colour) = (self.name(row.m), self.style(row.m).css());
            if let Some([low, mean, high]) = row.measured {
                let interval = if high > low {
                    format!("95 %: {}–{}", significant(low, 3), significant(high, 3))
                } else {
                    "one seed".to_owned()
                };
                traces.push(json!({
                    "type": "scatter", "mode": "markers", "x": [mean], "y": [place], "name": name, "meta": row.m,
                    // Low, mean and high are rounded each, so the two distances may differ.
                    "error_x": { "array": [rounded(high - mean)], "arrayminus": [rounded(mean - low)], "color": colour, "width": 5 },
                    "marker": { "size": 9, "color": colour, "symbol": self.mark(row.m), "line": { "width": 2, "color": colour } },
                    "hovertemplate": format!("<b>{name}</b><br>{}{}<br>{interval}<extra></extra>", significant(mean, 4), unit(&self.chart.x)),
                }));
            }
            traces.extend(row.published.map(|value| self.diamond(place, row.m, "published", value)));
        }
        let mut layout = self.row_layout(rows.iter().map(|row| row.m));
        layout["xaxis"]["nticks"] = MOST_TICKS.into();
        (traces, layout)
    }

    /// Returns the line of a bound across `rows` rows; `None` without a bound.
    fn bound(&self, bound: Option<f64>, rows: usize) -> Option<Value> {
        let bound = bound?;
        let text = format!("bound: {}{}<extra></extra>", significant(bound, 4), unit(&self.chart.x));
        Some(json!({
            "type": "scatter", "mode": "lines", "x": [bound, bound], "y": [-0.5, rows as f64 - 0.5], "name": "bound",
            "line": { "color": INK, "width": 1.5, "dash": "dot" }, "hovertemplate": text,
        }))
    }

    /// Returns the diamond of a published value below its row.
    fn diamond(&self, row: usize, m: usize, what: &str, value: f64) -> Value {
        json!({
            "type": "scatter", "mode": "markers", "x": [value], "y": [row as f64 + 0.4], "cliponaxis": false, "name": what, "meta": m,
            "marker": { "symbol": "diamond", "size": 8, "color": INK, "line": { "color": PAPER, "width": 1 } },
            "hovertemplate": format!(
                "<b>{}</b><br>{what} {}{}<extra></extra>", self.name(m), significant(value, 4), unit(&self.chart.x)
            ),
        })
    }

    fn bars(&self, parts: [&'static str; 2], rows: &[Bar]) -> (Vec<Value>, Value) {
        let mut traces = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let (name, colour) = (self.name(row.m), self.style(row.m).css());
            let total = row.amounts[0] + row.amounts[1];
            let [one, other] = row.amounts.map(|amount| significant(amount, 3));
            let ([first, second], all) = (parts, significant(total, 3));
            let hover = format!(
                "<b>{name}</b><br>{one} {first} + {other} {second} = {all} per client<extra></extra>"
            );
            // A bar for each part, because plotly gives a bar one colour.
            for (part, opacity) in [(0, 0.9), (1, 0.18)] {
                traces.push(json!({
                    "type": "bar", "orientation": "h", "x": [row.amounts[part]], "y": [place], "width": 0.56, "name": parts[part],
                    "meta": row.m, "marker": { "color": faded(colour, opacity), "line": { "color": colour, "width": 1 } },
                    "hovertemplate": hover,
                }));
            }
            // A share of nothing is not defined.
            let share = match total {
                0.0 => " none".to_owned(),
                all => format!(" {:.0} %", 100.0 * row.amounts[0] / all),
            };
            traces.push(json!({
                "type": "scatter", "mode": "text", "x": [total], "y": [place], "text": [share], "textposition": "middle right",
                "textfont": { "size": 11, "color": SOFT }, "hoverinfo": "skip", "cliponaxis": false, "meta": row.m,
            }));
        }
        let mut layout = self.row_layout(rows.iter().map(|row| row.m));
        layout["barmode"] = "stack".into();
        layout["xaxis"]["nticks"] = MOST_TICKS.into();
        (traces, layout)
    }

    fn points(&self, points: &[PublishedPoint]) -> (Vec<Value>, Value) {
        // Values within `MET` of the published ones lie in the band around the diagonal, on which both are equal.
        let [low, high] = self.chart.x.range;
        let band =
            [low * (1.0 - MET), high * (1.0 - MET), high * (1.0 + MET), low * (1.0 + MET)].map(rounded);
        let mut traces = vec![
            json!({
                "type": "scatter", "mode": "lines", "x": [low, high, high, low], "fill": "toself", "fillcolor": LINE,
                "y": band, "line": { "width": 0 }, "hoverinfo": "skip", "showlegend": false,
            }),
            json!({
                "type": "scatter", "mode": "lines", "x": [low, high], "y": [low, high], "line": { "color": SOFT, "width": 1 },
                "hoverinfo": "skip", "showlegend": false,
            }),
        ];
        for m in self.chart.mechanisms() {
            let own: Vec<&PublishedPoint> = points.iter().filter(|point| point.m == m).collect();
            let (name, colour) = (self.name(m), self.style(m).css());
            // Full marks overlap, so they have an edge in the colour of the paper.
            let edge = if self.mark(m).ends_with("-open") { colour } else { PAPER };
            let beside: Vec<_> = own
                .iter()
                .map(|point| {
                    let error = rounded((point.measured / point.published - 1.0) * 100.0);
                    json!([plain(&point.conditions), error])
                })
                .collect();
            let unit = unit(&self.chart.x);
            let hover = format!(
                "<b>{name}</b><br>%{{customdata[0]}}<br>published %{{x:.4~g}}{unit}, measured %{{y:.4~g}}{unit}\
                 <br>%{{customdata[1]:+.1f}} %<extra></extra>"
            );
            traces.push(json!({
                "type": "scatter", "mode": "markers", "name": name, "meta": m, "customdata": beside, "hovertemplate": hover,
                "x": own.iter().map(|point| point.published).collect::<Vec<_>>(),
                "y": own.iter().map(|point| point.measured).collect::<Vec<_>>(),
                "marker": {
                    "color": faded(colour, 0.75), "size": 9, "symbol": self.mark(m), "line": { "color": edge, "width": 1.5 },
                },
            }));
        }
        let layout =
            json!({ "xaxis": axis(&self.chart.x), "yaxis": axis(&self.chart.y), "showlegend": true });
        (traces, layout)
    }

    fn squares(&self, pairs: &Pairs) -> (Vec<Value>, Value) {
        let own: Vec<String> = pairs.mechanisms.iter().map(|m| self.name(*m)).collect();
        let value = |cell: &Square| cell.value(pairs.measure).map(|value| rounded(value * 100.0));
        let text = |row: usize, column: usize, cell: &Square| cell.text(pairs.measure, row == column);
        let hover = |row: usize, column: usize, cell: &Square| {
            let beside = format!("beside <b>{}</b>", own[column]);
            let company = if row == column { "among its own kind" } else { &beside };
            format!("<b>{}</b> {company}<br>{}", own[row], cell.words(row == column))
        };
        let z = each(pairs, |_, _, cell| value(cell));
        // The scale reaches as far above 100 % as below, so that a fair share has the colour of the background.
        let distance = |value: &Option<f64>| value.map_or(0.0, |value| (value - 100.0).abs());
        // At least 25 points, so that small differences stay pale.
        let reach = z.iter().flatten().map(distance).fold(25.0, f64::max);
        let heat = json!({
            "type": "heatmap", "z": z, "text": each(pairs, text), "hovertext": each(pairs, hover), "hovertemplate": "%{hovertext}<extra></extra>",
            "texttemplate": "%{text}", "xgap": 2, "ygap": 2, "zmin": 100.0 - reach, "zmax": 100.0 + reach,
            "colorscale": [[0, BLUE], [0.5, SHADE], [1, ORANGE]], "textfont": { "color": INK },
            "colorbar": {
                "title": { "text": "%" }, "thickness": 10, "len": 0.6, "outlinewidth": 0, "ticks": "", "tickfont": { "size": 11 },
            },
        });
        let mut layout = square_axes(&own, &own);
        // By these numbers the script of the page removes the rows and columns of mechanisms that are hidden.
        layout["meta"] = json!(pairs.mechanisms);
        (vec![heat], layout)
    }
}

/// Calls `of` with the row, the column and the square of each pair; returns its results, row by row.
fn each<T>(pairs: &Pairs, of: impl Fn(usize, usize, &Square) -> T) -> Vec<Vec<T>> {
    let row = |(row, cells): (usize, &Vec<Square>)| {
        cells.iter().enumerate().map(|(column, cell)| of(row, column, cell)).collect()
    };
    pairs.cells.iter().enumerate().map(row).collect()
}

/// Returns the unit of an axis with a space before it.
fn unit(axis: &Axis) -> String {
    if axis.unit.is_empty() { String::new() } else { format!(" {}", plain(&axis.unit)) }
}

/// Returns the axes of a heat map, with names above its columns and beside its rows.
pub(super) fn square_axes(columns: &[String], rows: &[String]) -> Value {
    let mut above = names(columns);
    let range = [-0.5, columns.len() as f64 - 0.5];
    extend(&mut above, json!({ "range": range, "side": "top", "tickangle": -50 }));
    let mut beside = names(rows);
    beside["range"] = json!([rows.len() as f64 - 0.5, -0.5]);
    // The title is above the names of the columns.
    let longest = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let top = 80 + 6 * longest;
    json!({
        "xaxis": above, "yaxis": beside, "height": top + 60 + 34 * rows.len().max(4), "margin": { "l": 60, "r": 24, "t": top, "b": 24 },
    })
}
