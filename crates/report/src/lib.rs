//! One self-contained HTML page about a set of results: tables, charts, and a sentence about each.
//!
//! * A *cell* is a mechanism under certain conditions, with all its runs: a [`CellResult`](coapace_lab::results::CellResult).
//! * A *group* is the cells that share their conditions. Mechanisms are compared within a group.
//! * A *value* is a number that was measured or published.
//! * A *chart* is a picture of values. A *panel* is a chart at its position on the page.
//! * A *film* shows the nodes of a mesh from moment to moment. The page plays it.
//!
//! The page loads nothing: script, style and data are inside it, and its content security policy forbids the network. It holds
//! no date, so equal results make equal pages, byte for byte.

mod animation;
mod axis;
mod chart;
mod coexistence;
#[allow(clippy::cast_sign_loss, reason = "lengths and colours are not negative")]
mod drawing;
#[allow(clippy::cast_sign_loss, reason = "lengths are not negative")]
mod export;
mod film;
mod font;
mod group;
mod headline;
mod html;
mod judged;
mod measure;
mod notebook;
mod page;
mod pairs;
mod panels;
mod parallel;
mod plates;
mod ranking;
mod report;
mod rounded;
mod sensitivity;
mod style;
mod sweep;
mod tables;
mod view;

use std::io;
use std::path::Path;

pub use animation::write_film_gif;
pub use group::CellGroup;
pub use plates::{PlateSize, Plates};
pub use report::Report;

use panels::Charts;
use view::View;

impl Report {
    /// Writes the page, about 5 MB of UTF-8. Most of it is the chart library.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_html(&self, mut out: impl io::Write) -> io::Result<()> {
        page::write(&mut out, self)?;
        out.flush()
    }

    /// Writes charts of the page into `dir` as SVG, PDF and PNG, named after the chart: `fct-median-over-clients.svg`.
    /// Makes the directory if it is missing. Returns the number of charts.
    ///
    /// # Errors
    /// Returns the first error in making the directory or in writing a file, or one line if a chart name is unknown.
    pub fn write_figures(&self, dir: &Path, plates: &Plates) -> io::Result<usize> {
        export::write(dir, &Charts::of(&View::of(self)), plates)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coapace_lab::coexistence::{Matrix, trials};
    use coapace_lab::experiment::conduct;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::*;
    use coapace_lab::papers::{Order, PaperTable, Published, RatioAllowance, References, Relation};
    use coapace_lab::results::{Cell, CellResult, Metric};
    use coapace_run::measured::{RunResult, Series};

    fn result(mechanism: &str, buffer_bytes: u64, fct_s: f64) -> CellResult {
        let run = RunResult {
            seed: 1,
            fct_s: vec![Some(fct_s), Some(fct_s * 1.5)],
            exchanges: vec![50, 50],
            retransmissions: 10,
            spurious: 4,
            rto: vec![Series { name: "mean".into(), points: vec![(0.0, 2.0), (1.0, 3.0)], step_s: 0.0 }],
            queues: vec![Series { name: "down".into(), points: vec![(0.0, 93.0)], step_s: 0.0 }],
            ..RunResult::default()
        };
        let cell = Cell {
            mechanism: mechanism.into(),
            knobs: [("buffer".to_owned(), buffer_bytes.to_string())].into(),
            clients: 2,
            ..Cell::default()
        };
        CellResult { cell, runs: vec![run] }
    }

    /// Publishes a median of 30 s for each result with runs.
    fn medians(results: &[CellResult]) -> References {
        let mut references = References::default();
        for result in results.iter().filter(|result| !result.runs.is_empty()) {
            references.publish(&result.cell, Published::value(Metric::MedianFct, 30.0, "Table 1"));
        }
        references
    }

    fn page(results: Vec<CellResult>) -> String {
        let references = medians(&results);
        page_beside(results, references)
    }

    fn page_beside(results: Vec<CellResult>, references: References) -> String {
        let report = Report {
            title: "Title".into(),
            command: "coapace compare --seeds 1".into(),
            commit: "c0ffee".into(),
            groups: CellGroup::by_conditions(results),
            references,
            ..Report::default()
        };
        let mut out = Vec::new();
        report.write_html(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Runs every pair of these mechanisms in a short scenario.
    fn matrix(names: &[&str]) -> Matrix {
        let set = [
            ("clients", "60"),
            ("buffer", "2500"),
            ("workload.duration", "60 s"),
            ("workload.warm_up", "10 s"),
        ];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Arc::new(Scenario::load("coexistence", &set).unwrap());
        let contenders: Vec<_> = names.iter().map(|name| Contender::parse(name).unwrap()).collect();
        Matrix::of(&conduct(&trials(&scenario, &contenders, 2).unwrap(), 2, &|| {}))
    }

    /// Returns the page without the chart library: the library mentions addresses that it does not load for these charts.
    fn own_part(page: &str) -> String {
        assert_eq!(page.matches(html::PLOTLY).count(), 1);
        page.replace(html::PLOTLY, "")
    }

    #[test]
    fn the_report_page_loads_nothing_from_a_network() {
        let page = own_part(&page(vec![result("default", 2500, 30.0), result("cocoa", 2500, 20.0)]));
        for address in ["http:", "https:", "src=", "@import", "url(", "<link rel=\"stylesheet"] {
            assert!(!page.contains(address), "the page has {address}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(!page.contains("MathJax"));
    }

    #[test]
    fn a_hostile_mechanism_name_is_escaped_everywhere() {
        let name = "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">&amp;";
        let page = own_part(&page(vec![result(name, 2500, 30.0), result("cocoa", 2500, 20.0)]));
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "the name became markup");
        assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
        assert!(page.contains("onerror=&quot;alert(&#39;2&#39;)&quot;&gt;&amp;amp;"));
        // The chart library, the data, and the page's own script.
        assert_eq!(page.matches("</script>").count(), 3);
    }

    #[test]
    fn the_data_in_a_report_parse_back() {
        let page = own_part(&page(vec![result("a</script>", 2500, 30.0), result("cocoa", 2500, 20.0)]));
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        let names = [&data["mechanisms"][0]["name"], &data["mechanisms"][1]["name"]];
        assert_eq!(names, ["a</script>", "cocoa"]);
        let panels = data["panels"].as_array().unwrap();
        let panel = |name: &str| panels.iter().find(|panel| panel["name"] == name).unwrap();
        for (name, kind) in [
            ("published-median-fct", "points"),
            ("fct-median", "intervals"),
            ("fct-quantiles", "boxes"),
            ("fct-cdf", "lines"),
            ("retransmissions-spurious-and-needed", "bars"),
            ("rto-over-time", "lines"),
            ("queue-down", "strips"),
        ] {
            assert_eq!(panel(name)["kind"], kind, "{name}");
        }
        let rows = panel("fct-quantiles")["data"].as_array().unwrap();
        let second = rows.iter().find(|trace| trace["type"] == "box" && trace["meta"] == 1).unwrap();
        assert_eq!(second["median"], serde_json::json!([25]));
        assert_eq!(page.matches("data-panel=").count(), panels.len());
    }

    #[test]
    fn equal_results_make_equal_pages() {
        let results = vec![result("default", 2500, 30.0), result("cocoa", 14_100, 20.0)];
        assert_eq!(page(results.clone()), page(results));
    }

    #[test]
    fn published_rankings_that_did_not_hold_come_first() {
        let mut results =
            vec![result("default", 2500, 30.0), result("cocoa", 2500, 20.0), result("fasor", 2500, 10.0)];
        // One seed has no interval, and so no verdict.
        for result in &mut results {
            let again = RunResult { seed: result.runs[0].seed + 1, ..result.runs[0].clone() };
            result.runs.push(again);
        }
        let mut references = medians(&results);
        for (result, than, relation) in [(0, "cocoa", Relation::Above), (1, "default", Relation::NotBelow)] {
            let order = Order {
                metric: Metric::MedianFct,
                relation,
                times: (relation == Relation::NotBelow).then_some(2.0),
                than: than.into(),
                why: "<slow>".into(),
                allowance: RatioAllowance { margin: 0.05, tolerance: 0.25 },
            };
            let published = Published { orders: vec![order], ..Published::default() };
            references.publish(&results[result].cell, published);
        }
        let page = own_part(&page_beside(results, references));
        let table = &page[page.find("id=\"orders\"").unwrap()..];
        let table = &table[..table.find("</table>").unwrap()];
        let row = |claim| table.find(claim).unwrap();
        assert!(row("cocoa ≥ 2 default") < row("default &gt; cocoa"));
        assert_eq!(table.matches("<strong>not held</strong>").count(), 1);
        assert_eq!(table.matches("&lt;slow&gt;").count(), 1, "an order that did not hold has its reason");
        assert!(table.contains("<td>≥ 2.00</td>"), "the published ratio: {table}");
        assert!(page.contains("Published orders: 1 of 2 held, 1 not held.<"), "the table has the others");
        assert!(
            !self::page(vec![result("default", 2500, 30.0)]).contains("id=\"orders\""),
            "no order was published"
        );
    }

    #[test]
    fn published_values_of_tables_are_judged_by_factors_and_others_by_errors() {
        let results = vec![result("default", 2500, 30.0), result("cocoa", 2500, 20.0)];
        let table = PaperTable {
            title: "Table <3>".into(),
            factor: 1.1,
            runs: None,
            why: "other radios".into(),
            witness: String::new(),
        };
        let mut references = medians(&results);
        let tables = [(Metric::MedianFct, table)].into();
        let published = Published { tables, ..references.published(&results[1].cell).unwrap().clone() };
        references.publish(&results[1].cell, published);
        let page = own_part(&page_beside(results, references));
        let section = |id: &str| {
            let section = &page[page.find(&format!("<section id=\"{id}\"")).unwrap()..];
            &section[..section.find("</section>").unwrap()]
        };
        let tables = section("values");
        for part in
            ["Table &lt;3&gt;</td><td>0 of 1</td><td>1.1</td><td>1.20</td><td>other radios", "<strong>beyond"]
        {
            assert!(tables.contains(part), "{tables}");
        }
        assert!(!tables.contains(">default<") && !section("published").contains(">cocoa<"));
        assert!(
            page.contains(
                "0 of 1 values of published tables are within the factors that their tables allow."
            )
        );
        assert!(
            page.contains("0 of 1 published medians are met within 5\u{a0}%"),
            "the value without a table"
        );
    }

    #[test]
    fn pairs_have_a_heat_map_for_their_shares_and_one_for_their_kept_throughput() {
        let matrix = matrix(&["default", "cocoa", "fasor"]);
        let report = Report {
            groups: CellGroup::by_conditions(matrix.alone.clone()),
            coexistence: Some(matrix.clone()),
            ..Report::default()
        };
        let mut out = Vec::new();
        report.write_html(&mut out).unwrap();
        let page = own_part(&String::from_utf8(out).unwrap());
        assert!(page.contains("Takes the most: ") && !page.contains("Fastest is"), "the pairs come first");
        assert!(page.contains("12, with seeds 1 to 2"), "all runs are counted");

        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        let panels: Vec<_> =
            (data["panels"].as_array().unwrap().iter()).filter(|panel| panel["kind"] == "squares").collect();
        let names: Vec<_> = panels.iter().map(|panel| panel["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["coexistence-share", "coexistence-kept"]);
        let encounter = matrix.encounter(0, 1);
        for (panel, expected) in panels.iter().zip([encounter.own.relative_share, encounter.kept]) {
            assert_eq!(panel["layout"]["meta"], serde_json::json!([0, 1, 2]));
            let percent = panel["data"][0]["z"][0][1].as_f64().unwrap();
            assert!((percent / 100.0 - expected.unwrap()).abs() < 1e-4);
        }
        // The table has a row for each mechanism.
        let table = &page[page.find("class=\"results standings\"").unwrap()..];
        let table = &table[..table.find("</table>").unwrap()];
        assert_eq!(table.matches("<tr data-m=").count(), 3);
    }

    #[test]
    fn the_report_of_paired_bulk_mechanisms_uses_units_of_transfers() {
        let set = [("clients", "2"), ("transfers", "2"), ("bytes", "50_000")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Arc::new(Scenario::load("fota-lte-m", &set).unwrap());
        let contenders = ["tide", "newreno"].map(|name| Contender::parse(name).unwrap());
        let matrix = Matrix::of(&conduct(&trials(&scenario, &contenders, 1).unwrap(), 2, &|| {}));
        let groups = CellGroup::by_conditions(matrix.alone.clone());
        let report = Report { groups, coexistence: Some(matrix), ..Report::default() };
        let mut out = Vec::new();
        report.write_html(&mut out).unwrap();
        let page = own_part(&String::from_utf8(out).unwrap());
        for part in [
            "Goodput beside another mechanism, in % of a fair share",
            "The value is the goodput of the row’s half",
            "of its goodput among its own kind",
            " kbit/s for a client, a transfer takes ",
            " of the link, ",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("exchanges/s") && !page.contains("hroughput beside"));
    }

    #[test]
    fn results_without_runs_still_make_a_page() {
        let page = own_part(&page(vec![CellResult::default()]));
        assert!(page.contains("<table") && !page.contains("data-panel="));
        let empty = self::page(Vec::new());
        assert!(empty.contains("There are no results") && !empty.contains("<script"));
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
