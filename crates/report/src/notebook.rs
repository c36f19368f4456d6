//! Charts as figures of plotly, on white paper. Notebooks show them; the script of the page gives them its width and theme, and leaves out
//! what the reader hides.

mod ranked;
mod traces;

use std::collections::BTreeMap;

use coapace_lab::lists::joined;
use serde_json::{Value, json};

use super::axis::Axis;
use super::chart::{Body, Chart, unknown};
use super::panels::{Charts, StyledMechanism};
use super::report::Report;
use super::style::{DARK, GRID, INK, PAPER, SOFT, Style};
use super::view::View;

/// The marks of points, by the number of a mechanism's dash.
const MARKS: [&str; 6] = ["circle", "square", "triangle-up", "diamond", "circle-open", "x-thin-open"];

impl Report {
    /// Returns the names of all charts, as sorted on the page. For a ranking they are the names of its metrics, with `worst`
    /// first.
    pub fn charts(&self) -> Vec<String> {
        match &self.ranking {
            Some(ranking) => ranked::names(ranking),
            None => Charts::of(&View::of(self)).all().iter().map(|chart| chart.name.clone()).collect(),
        }
    }

    /// Returns a chart as a plotly figure, in JSON. `name` is the name of a chart, or of a column of results, such as
    /// `median_fct_s`. For a column, the chart shows the column over a knob, or else under the first conditions.
    /// Without a name, the figure is the first chart that compares mechanisms.
    ///
    /// # Errors
    /// Returns one line with the names of the charts if none has this name.
    pub fn figure(&self, name: Option<&str>) -> Result<String, String> {
        // A ranking has no charts on its page, only maps, which are made here.
        let figure = if let Some(ranking) = &self.ranking {
            ranked::figure(ranking, name)
        } else {
            let view = View::of(self);
            let charts = Charts::of(&view);
            chosen(charts.all(), name).map(|chart| {
                let (data, more) = traces::of(chart, charts.mechanisms());
                described(&joined(&chart.title, &chart.conditions), chart.height(), &data, more)
            })
        };
        // Only notebooks need the longer form; plotly.js, which draws the page, reads `#rrggbbaa`.
        figure.map(|figure| mapped(figure, as_rgba).to_string()).ok_or_else(|| {
            let names = self.charts();
            match name {
                Some(name) if !names.is_empty() => unknown(name, names.iter().map(String::as_str)),
                _ => "the report has no charts".to_owned(),
            }
        })
    }
}

/// Returns the chart with this name, or else the chart that shows the column with this name; `None` for an unknown
/// name. Without a name, returns the first chart that compares mechanisms.
fn chosen<'a>(charts: &'a [Chart], name: Option<&str>) -> Option<&'a Chart> {
    let Some(name) = name else {
        // Points compare with a paper, and not mechanisms with each other.
        let compares = |chart: &&Chart| !matches!(chart.body, Body::Points { .. });
        return charts.iter().find(compares).or_else(|| charts.first());
    };
    charts
        .iter()
        // The exact name wins, because `is_named` also finds the charts of the same measure.
        .find(|chart| chart.name == name)
        .or_else(|| charts.iter().find(|chart| chart.is_named(name)))
}

/// Returns all charts for the script of the page.
pub(super) fn data(charts: &Charts) -> Value {
    let mechanism =
        |it: &StyledMechanism| json!({ "name": it.name, "colour": it.style.css(), "dash": dash(it.style) });
    let panel = |chart: &Chart| {
        let (data, layout) = traces::of(chart, charts.mechanisms());
        json!({
            "name": chart.name, "title": chart.title, "conditions": chart.conditions, "kind": chart.body.kind(),
            "data": data, "layout": layout,
        })
    };
    let data = json!({
        "mechanisms": charts.mechanisms().iter().map(mechanism).collect::<Vec<_>>(),
        "panels": charts.all().iter().map(panel).collect::<Vec<_>>(),
        "template": template(),
        "dark": BTreeMap::from(DARK),
    });
    mapped(data, short)
}

/// Returns a JSON value in which `leaf` has replaced each number, text, truth value and null.
fn mapped(value: Value, leaf: fn(Value) -> Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| mapped(item, leaf)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, mapped(value, leaf))).collect()
        }
        other => leaf(other),
    }
}

/// Returns a whole number as an integer, and any other value unchanged. A page has many numbers, and is smaller without
/// their `.0`.
fn short(value: Value) -> Value {
    match value.as_f64() {
        // Whole numbers below 10¹⁵ are exact as floats and as integers.
        Some(x) if x.fract() == 0.0 && x.abs() < 1e15 => (x as i64).into(),
        _ => value,
    }
}

/// Returns a colour `#rrggbbaa` as `rgba(…)`, because plotly.py 5 and 6 do not know `#rrggbbaa`. Any other value is
/// unchanged.
fn as_rgba(value: Value) -> Value {
    let Some(digits) = value.as_str().and_then(|text| text.strip_prefix('#')).filter(|it| it.len() == 8)
    else {
        return value;
    };
    let Ok(colour) = u32::from_str_radix(digits, 16) else { return value };
    let [red, green, blue, alpha] = colour.to_be_bytes();
    format!("rgba({red},{green},{blue},{:.3})", f64::from(alpha) / 255.0).into()
}

/// Returns a plotly figure of the traces `data`, with a layout of common parts and of `more`.
fn described(title: &str, height: usize, data: &[Value], more: Value) -> Value {
    let mut layout = json!({
        "template": template(),
        "title": { "text": plain(title), "x": 0, "xanchor": "left", "xref": "paper", "font": { "size": 15 }, "y": 1, "yref": "container", "yanchor": "top",
            "pad": { "t": 16 } },
        "font": { "family": "sans-serif", "size": 12, "color": INK },
        "paper_bgcolor": PAPER, "plot_bgcolor": PAPER, "hovermode": "closest", "showlegend": false,
        "hoverlabel": { "align": "left", "bgcolor": PAPER, "bordercolor": SOFT, "font": { "color": INK } },
        "height": height.max(280) + 70,
        "margin": { "l": 60, "r": 24, "t": 60, "b": 50 },
    });
    // Last, so that a kind of chart can replace the common parts.
    extend(&mut layout, more);
    json!({ "data": data, "layout": layout })
}

/// Adds the members of `more` to `object`, in place of members with the same names.
fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// Returns the look of all axes.
fn template() -> Value {
    let lines = json!({
        "title": { "standoff": 8 }, "gridcolor": GRID, "showline": true, "linecolor": SOFT, "tickcolor": SOFT, "ticks": "outside", "ticklen": 4,
        "zeroline": false, "automargin": true,
    });
    json!({ "layout": { "xaxis": lines, "yaxis": lines } })
}

/// Returns an axis of plotly.
fn axis(axis: &Axis) -> Value {
    // Plotly takes the ends of a logarithmic axis as powers of ten.
    let range = axis.range.map(|end| if axis.log { end.log10() } else { end });
    let mut made = json!({ "title": { "text": plain(&axis.title) }, "range": range });
    if axis.log {
        made["type"] = "log".into();
    }
    if axis.log || axis.percent {
        let labels: Vec<String> = axis.ticks.iter().map(|tick| axis.label(*tick)).collect();
        extend(&mut made, json!({ "tickvals": axis.ticks, "ticktext": labels }));
    }
    made
}

/// Returns an axis with a name at each of its rows, the first at the top.
fn names(names: &[String]) -> Value {
    let rows: Vec<usize> = (0..names.len()).collect();
    json!({
        "tickvals": rows, "ticktext": names, "range": [names.len() as f64 - 0.4, -0.6], "showgrid": false,
        "ticks": "", "showline": false,
    })
}

/// Returns the dash of a line.
fn dash(style: Style) -> String {
    match style.dasharray() {
        "" => "solid".to_owned(),
        lengths => lengths.split(' ').map(|length| format!("{length}px")).collect::<Vec<_>>().join(","),
    }
}

/// Returns `text` in a form that plotly does not read as markup.
fn plain(text: &str) -> String {
    // The ampersand first, because the other replacements contain one.
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a colour of CSS with an opacity from 0 to 1.
fn faded(colour: &str, opacity: f64) -> String {
    #[allow(clippy::cast_sign_loss, reason = "an opacity is not negative")]
    let alpha = (opacity * 255.0).round() as u8;
    format!("{colour}{alpha:02x}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coapace_lab::coexistence::{Matrix, trials};
    use coapace_lab::experiment::{Trial, conduct};
    use coapace_lab::papers::{Paper, References};
    use coapace_lab::results::CellResult;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::*;
    use crate::CellGroup;
    use crate::style::{LINE, SHADE};

    fn results(clients: &[&str], mechanisms: &[&str]) -> (Vec<CellResult>, References) {
        let mut all = Vec::new();
        for clients in clients {
            let set = [("clients", *clients), ("buffer", "2500"), ("workload.exchanges", "5")];
            let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let scenario = Arc::new(Scenario::load("nb-iot", &set).unwrap());
            all.extend(
                mechanisms.iter().map(|name| Trial::new(&scenario, Contender::parse(name).unwrap(), 2)),
            );
        }
        (conduct(&all, 2, &|| ()), References::of(&all))
    }

    fn report((results, references): (Vec<CellResult>, References)) -> Report {
        Report { groups: CellGroup::by_conditions(results), references, ..Report::default() }
    }

    fn read(report: &Report, name: Option<&str>) -> Value {
        serde_json::from_str(&report.figure(name).unwrap()).unwrap()
    }

    #[test]
    fn a_translucent_colour_has_the_syntax_of_plotly_5() {
        let colours = mapped(json!({ "a": ["#57534e29", "#57534e", "#not-colour", 2.5] }), as_rgba);
        assert_eq!(colours, json!({ "a": ["rgba(87,83,78,0.161)", "#57534e", "#not-colour", 2.5] }));
    }

    #[test]
    fn every_chart_of_a_report_is_a_notebook_figure_with_its_data() {
        let report = report(results(&["20", "40"], &["default", "cocoa", "fasor-token"]));
        let view = View::of(&report);
        let charts = Charts::of(&view);
        assert_eq!(report.charts().len(), charts.all().len());
        for chart in charts.all() {
            let figure = read(&report, Some(&chart.name));
            assert!(!figure["data"].as_array().unwrap().is_empty(), "{}", chart.name);
            let title = figure["layout"]["title"]["text"].as_str().unwrap();
            assert!(title.starts_with(&chart.title), "{title}");
        }
        let Some(Body::Lines { lines }) =
            charts.all().iter().find(|chart| chart.name == "fct-median-over-clients").map(|it| &it.body)
        else {
            panic!("a chart over clients")
        };
        let drawn = read(&report, Some("fct-median-over-clients"));
        let drawn = drawn["data"].as_array().unwrap();
        for line in lines {
            assert!(drawn.iter().any(|trace| trace["y"] == json!(line.y)), "a line of {drawn:?}");
        }
    }

    #[test]
    fn a_notebook_chart_is_chosen_by_column_name_and_compares_mechanisms_by_default() {
        let sweep = report(results(&["20", "40"], &["default", "cocoa"]));
        assert_eq!(read(&sweep, Some("median_fct_s")), read(&sweep, Some("fct-median-over-clients")));
        assert_eq!(read(&sweep, None), read(&sweep, Some("fct-median-over-clients")));
        let single = report(results(&["20"], &["default", "cocoa"]));
        assert_eq!(read(&single, Some("median_fct_s")), read(&single, Some("fct-median")));
        let error = single.figure(Some("zzz")).unwrap_err();
        assert!(
            error.starts_with("`zzz` is not the name of a chart; the charts are fct-median, "),
            "{error}"
        );
        assert!(Report::default().figure(None).unwrap_err().ends_with("the report has no charts"));
    }

    #[test]
    fn every_colour_has_a_counterpart_for_dark_backgrounds() {
        let report = report(results(&["20", "40"], &["default", "cocoa"]));
        let data = data(&Charts::of(&View::of(&report)));
        let json = json!([data["panels"], data["template"]]).to_string();
        let colours: Vec<&str> = json.split("\"#").skip(1).map(|rest| &rest[..6]).collect();
        assert!(colours.len() > 100);
        for colour in colours {
            assert!(data["dark"][format!("#{colour}")].is_string(), "{colour}");
        }
        // The style sheet has the same colours of ink and lines.
        let css = include_str!("report.css");
        for (light, dark) in [INK, SOFT, LINE, GRID, SHADE].map(|light| (light, data["dark"][light].as_str()))
        {
            assert!(css.contains(light) && css.matches(dark.unwrap()).count() == 2, "{light}");
        }
    }

    #[test]
    fn every_trace_of_a_chart_has_its_mechanism_and_its_row() {
        let report = report(results(&["20"], &["default", "cocoa", "fasor-token"]));
        let data = data(&Charts::of(&View::of(&report)));
        for panel in data["panels"].as_array().unwrap() {
            let (traces, rows) = (panel["data"].as_array().unwrap(), &panel["layout"]["meta"]);
            for trace in traces.iter().filter(|trace| trace["name"] != "bound" && !rows.is_null()) {
                let row = rows.as_array().unwrap().iter().position(|m| *m == trace["meta"]).unwrap() as f64;
                assert!((row..row + 0.5).contains(&trace["y"][0].as_f64().unwrap()), "{trace}");
            }
            let of = |m: usize| traces.iter().any(|trace| trace["meta"] == m);
            assert!((0..3).all(of), "{}", panel["name"]);
        }
    }

    #[test]
    fn names_in_notebook_charts_are_escaped() {
        let (mut results, references) = results(&["20"], &["default", "cocoa"]);
        results[0].cell.mechanism = "<b>a</b>&".into();
        let figure = read(&report((results, references)), Some("fct-median"));
        assert_eq!(figure["layout"]["yaxis"]["ticktext"][0], "&lt;b&gt;a&lt;/b&gt;&amp;");
    }

    #[test]
    fn notebook_charts_show_pairs_as_a_heat_map_and_published_values_as_points() {
        let scenario = Scenario::load("coexistence", &[("workload.duration".into(), "60 s".into())]).unwrap();
        let contenders = ["default", "cocoa"].map(|name| Contender::parse(name).unwrap());
        let matrix = Matrix::of(&conduct(&trials(&Arc::new(scenario), &contenders, 1).unwrap(), 2, &|| {}));
        let groups = CellGroup::by_conditions(matrix.alone.clone());
        let pairs = Report { groups, coexistence: Some(matrix.clone()), ..Report::default() };
        let figure = read(&pairs, None);
        assert_eq!(
            (&figure["data"][0]["type"], figure["data"][0]["z"].as_array().unwrap().len()),
            (&"heatmap".into(), 2)
        );
        assert!(figure["layout"]["title"]["text"].as_str().unwrap().starts_with("Throughput beside"));
        let share = matrix.encounter(0, 1).own.relative_share.unwrap() * 100.0;
        assert!((figure["data"][0]["z"][0][1].as_f64().unwrap() - share).abs() < 0.1);
        let paper = Paper::find("raitahila2019").unwrap();
        let (few, references) = paper.trials(true, &[]).unwrap();
        let results = conduct(&few[..3], 2, &|| ());
        let figure = read(&report((results, references)), Some("published-median-fct"));
        let points = figure["data"].as_array().unwrap().iter().filter(|trace| trace["mode"] == "markers");
        assert!(points.count() >= 1);
    }
}
