//! Charts as figures of plotly, for notebooks: the numbers of the page's charts, in its colours on white.

mod ranked;
mod traces;

use serde_json::{Value, json};

use super::axis::Axis;
use super::chart::{Body, Chart};
use super::panels::{Charts, Named};
use super::report::Report;
use super::style::{INK, SOFT};
use super::view::View;
use super::words::joined;

/// Colours of lines: those of `report.css` for a light ground.
const LINE: &str = "#dedad2";
const GRID: &str = "#ebe8e1";
const SHADE: &str = "#f4f1ea";

/// The marks of points, by the number of a mechanism's dash. `report.js` has a copy.
const MARKS: [&str; 6] = ["circle", "square", "triangle-up", "diamond", "circle-open", "x-thin-open"];

impl Report {
    /// Returns the names of all charts, in the order of the page. For a ranking they are the names of its metrics, with `worst` first.
    pub fn charts(&self) -> Vec<String> {
        match &self.ranking {
            Some(ranking) => ranked::names(ranking),
            None => Charts::of(&View::of(self)).all().iter().map(|chart| chart.name.clone()).collect(),
        }
    }

    /// Returns a chart as a figure of plotly, in JSON. The name is that of a chart, or of a column of results, such as
    /// `median_fct_s`: its figures over a knob, or else those of the first conditions. Without a name it is the first chart that
    /// compares mechanisms.
    ///
    /// # Errors
    /// Returns one line with the names of the charts if there is none of this name.
    pub fn figure(&self, name: Option<&str>) -> Result<String, String> {
        let figure = if let Some(ranking) = &self.ranking {
            ranked::figure(ranking, name)
        } else {
            let view = View::of(self);
            let charts = Charts::of(&view);
            chosen(charts.all(), name).map(|chart| figure(chart, charts.mechanisms()))
        };
        figure.map(|figure| figure.to_string()).ok_or_else(|| {
            let names = self.charts();
            let there_is = if names.is_empty() { "no chart".to_owned() } else { names.join(", ") };
            format!("there is no chart `{}`; there is {there_is}", name.unwrap_or_default())
        })
    }
}

/// Returns the chart of a name or of a column, or the one that is shown first.
fn chosen<'a>(charts: &'a [Chart], name: Option<&str>) -> Option<&'a Chart> {
    let Some(name) = name else {
        let compares = |chart: &&Chart| !matches!(chart.body, Body::Points { .. });
        return charts.iter().find(compares).or_else(|| charts.first());
    };
    charts
        .iter()
        .find(|chart| chart.name == name)
        .or_else(|| charts.iter().find(|chart| chart.is_named(name)))
}

fn figure(chart: &Chart, mechanisms: &[Named]) -> Value {
    let (data, more) = traces::of(chart, mechanisms);
    described(&joined(&chart.title, &chart.conditions), chart.height(), &data, more)
}

/// Returns a figure with the common parts of its layout.
fn described(title: &str, height: usize, data: &[Value], more: Value) -> Value {
    let mut layout = json!({
        "template": { "layout": {} },
        "title": { "text": plain(title), "x": 0, "xanchor": "left", "xref": "paper", "font": { "size": 15 }, "y": 1, "yref": "container", "yanchor": "top",
            "pad": { "t": 16 } },
        "font": { "family": "sans-serif", "size": 12, "color": INK },
        "paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "hovermode": "closest", "showlegend": false,
        "hoverlabel": { "align": "left", "bgcolor": "#ffffff", "bordercolor": SOFT, "font": { "color": INK } },
        "height": height.max(280) + 70,
        "margin": { "l": 60, "r": 24, "t": 60, "b": 50 },
    });
    extend(&mut layout, more);
    json!({ "data": data, "layout": layout })
}

/// Adds the members of an object to another.
fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// Returns an axis of plotly.
fn axis(axis: &Axis) -> Value {
    let range: Vec<f64> = axis.range.iter().map(|end| if axis.log { end.log10() } else { *end }).collect();
    let mut made = lines(&axis.title);
    made["range"] = json!(range);
    if axis.log {
        made["type"] = "log".into();
    }
    if axis.log || axis.percent {
        let labels: Vec<String> = axis.ticks.iter().map(|tick| axis.label(*tick)).collect();
        extend(&mut made, json!({ "tickvals": axis.ticks, "ticktext": labels }));
    }
    made
}

/// Returns the lines of an axis with a title.
fn lines(title: &str) -> Value {
    json!({
        "title": { "text": plain(title), "standoff": 8 }, "gridcolor": GRID, "linecolor": SOFT, "tickcolor": SOFT, "ticks": "outside",
        "ticklen": 4, "zeroline": false, "automargin": true,
    })
}

/// Returns an axis with a name at each of its rows, the first at the top.
fn names(names: &[String]) -> Value {
    let mut made = lines("");
    let rows: Vec<usize> = (0..names.len()).collect();
    let ends = [names.len() as f64 - 0.4, -0.6];
    let more = json!({ "tickvals": rows, "ticktext": names, "range": ends, "showgrid": false, "ticks": "" });
    extend(&mut made, more);
    made
}

/// Returns text that plotly does not read as markup.
fn plain(text: &str) -> String {
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
    use coapace_lab::papers::Paper;
    use coapace_lab::results::CellResult;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::*;
    use crate::Group;

    fn results(clients: &[&str], mechanisms: &[&str]) -> Vec<CellResult> {
        let mut all = Vec::new();
        for clients in clients {
            let set = [("clients", *clients), ("buffer", "2500"), ("workload.exchanges", "5")];
            let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let scenario = Arc::new(Scenario::load("nb-iot", &set).unwrap());
            all.extend(
                mechanisms.iter().map(|name| Trial::new(&scenario, Contender::parse(name).unwrap(), 2)),
            );
        }
        conduct(&all, 2, &|| ())
    }

    fn report(results: Vec<CellResult>) -> Report {
        Report { groups: Group::by_conditions(results), ..Report::default() }
    }

    fn read(report: &Report, name: Option<&str>) -> Value {
        serde_json::from_str(&report.figure(name).unwrap()).unwrap()
    }

    #[test]
    fn every_chart_of_the_page_is_a_figure_with_its_numbers() {
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
    fn a_column_names_its_chart_and_without_a_name_mechanisms_are_compared() {
        let sweep = report(results(&["20", "40"], &["default", "cocoa"]));
        assert_eq!(read(&sweep, Some("median_fct_s")), read(&sweep, Some("fct-median-over-clients")));
        assert_eq!(read(&sweep, None), read(&sweep, Some("fct-median-over-clients")));
        let single = report(results(&["20"], &["default", "cocoa"]));
        assert_eq!(read(&single, Some("median_fct_s")), read(&single, Some("fct-median")));
        let error = single.figure(Some("zzz")).unwrap_err();
        assert!(error.starts_with("there is no chart `zzz`; there is fct-median, "), "{error}");
        assert!(Report::default().figure(None).unwrap_err().ends_with("there is no chart"));
    }

    #[test]
    fn names_are_text_and_no_markup() {
        let mut results = results(&["20"], &["default", "cocoa"]);
        results[0].cell.mechanism = "<b>a</b>&".into();
        let figure = read(&report(results), Some("fct-median"));
        assert_eq!(figure["layout"]["yaxis"]["ticktext"][0], "&lt;b&gt;a&lt;/b&gt;&amp;");
    }

    #[test]
    fn pairs_are_a_heat_map_and_published_figures_points() {
        let scenario = Scenario::load("coexistence", &[("workload.duration".into(), "60 s".into())]).unwrap();
        let contenders = ["default", "cocoa"].map(|name| Contender::parse(name).unwrap());
        let matrix = Matrix::of(&conduct(&trials(&Arc::new(scenario), &contenders, 1).unwrap(), 2, &|| {}));
        let groups = Group::by_conditions(matrix.alone.clone());
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
        let few: Vec<Trial> = paper.trials(true, &[]).unwrap().into_iter().take(3).collect();
        let figure = read(&report(conduct(&few, 2, &|| ())), Some("published-median-fct"));
        let points = figure["data"].as_array().unwrap().iter().filter(|trace| trace["mode"] == "markers");
        assert!(points.count() >= 1);
    }
}
