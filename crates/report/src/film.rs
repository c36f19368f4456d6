//! Films of meshes: the player, and the films that it shows.

use std::collections::BTreeSet;
use std::fmt::Write;

use coapace_lab::lists::distinct;
use coapace_run::measured::Film;
use serde::Serialize;

use super::html::{escape, json_for_script};
use super::view::{PooledCell, View};

/// The maximum number of films on a page. Each has up to half a megabyte.
const MAX_FILMS: usize = 24;

/// The text above the films.
pub(super) const TEXT: &str = "The run with the lowest seed, from the moment at which most frames wait. A node is the bluer, the fuller its queue is. A ring that spreads from it is \
    a frame that it sends, and a red ring is a frame that was destroyed while the node received it. A line is the way to the root, the \
    thicker, the more frames were sent on it. Pick a node to see its range, its route, and its numbers over time.";

/// The style sheet of the player.
pub(super) const STYLE: &str = include_str!("film.css");
/// The script of the player, which the page has after the films.
pub(super) const SCRIPT: &str = include_str!("film.js");

/// The films of a page.
pub(super) struct Films<'a> {
    films: Vec<(Label<'a>, &'a Film)>,
    /// The number of films in the results. The page leaves out all after the first [`MAX_FILMS`].
    all: usize,
}

/// The mechanism and the conditions by which the reader chooses a film.
#[derive(Serialize)]
struct Label<'a> {
    m: usize,
    title: &'a str,
}

impl<'a> Films<'a> {
    /// Collects the films of a page; `None` if no cell has one.
    pub(super) fn of(view: &View<'a>) -> Option<Self> {
        let shown = |(title, cell): (&'a str, &PooledCell<'a>)| {
            let film = cell.result.first_run()?.film.as_deref()?;
            let label = Label { m: cell.mechanism, title };
            (!film.nodes.is_empty() && !film.frames.is_empty()).then_some((label, film))
        };
        let mut films: Vec<_> = view.cells().filter_map(shown).collect();
        let all = films.len();
        films.truncate(MAX_FILMS);
        (all > 0).then_some(Self { films, all })
    }

    /// Returns the HTML of the player, which its script fills.
    pub(super) fn html(&self, mechanisms: &[&str]) -> String {
        let mut html = String::from("<div class=\"film\" id=\"film-player\">\n<div class=\"film-choice\">");
        let labels = || self.films.iter().map(|(label, _)| label);
        let known: BTreeSet<usize> = labels().map(|label| label.m).collect();
        choice(&mut html, "film-mechanism", "Mechanism", known.into_iter().map(|m| (m, mechanisms[m])));
        // The script looks a film up by its mechanism and its title, so each is listed once.
        let titles = distinct(labels().map(|label| label.title));
        choice(&mut html, "film-title", "Condition", titles.into_iter().enumerate());
        html.push_str("</div>\n");
        html.push_str(PLAYER);
        if self.all > self.films.len() {
            let _ =
                write!(html, "<p class=\"film-left-out\">The first {MAX_FILMS} of {} films.</p>", self.all);
        }
        html.push_str("</div>");
        html
    }

    /// Returns the films as elements of HTML, for the script of the page: an element that lists them all, and an element
    /// for each film. The script reads a film when the reader of the page chooses it.
    pub(super) fn data(&self) -> serde_json::Result<String> {
        let labels: Vec<_> = self.films.iter().map(|(label, _)| label).collect();
        let mut html = data("films", &labels)?;
        for (number, (_, film)) in self.films.iter().enumerate() {
            // An element for each film, because the script parses only the film that is chosen.
            html.push_str(&data(&format!("film-{number}"), film)?);
        }
        Ok(html)
    }
}

fn data(id: &str, value: &impl Serialize) -> serde_json::Result<String> {
    Ok(format!("<script type=\"application/json\" id=\"{id}\">{}</script>\n", json_for_script(value)?))
}

/// Adds a control for the choice among several values. It is hidden if there is only one.
fn choice<'a>(html: &mut String, id: &str, label: &str, options: impl Iterator<Item = (usize, &'a str)>) {
    let options: Vec<_> = (options.map(|(value, text)| {
        format!("<option value=\"{value}\">{}</option>", escape(if text.is_empty() { "–" } else { text }))
    }))
    .collect();
    let hidden = if options.len() > 1 { "" } else { " hidden" };
    let _ = write!(html, "<label{hidden}>{label} <select id=\"{id}\">{}</select></label>", options.concat());
}

/// The controls and the legend of the player, without what the script draws.
const PLAYER: &str = include_str!("film.html");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellGroup, Report};
    use coapace_lab::results::{Cell, CellResult};
    use coapace_run::measured::{FilmMaker, FilmMoment, FilmNode, FilmRole, RunResult};

    fn film() -> Film {
        let node = |role, name: &str| FilmNode { role, name: name.into() };
        let nodes = vec![node(FilmRole::Root, "</script><b>"), node(FilmRole::Client, "client")];
        let mut maker = FilmMaker::new(Film { step_s: 1.0, nodes, ..Film::default() });
        for sent in 0..10 {
            maker.push(&[FilmMoment { sent, ..FilmMoment::default() }; 2]);
        }
        maker.finish()
    }

    fn result(mechanism: &str, clients: u32, film: Option<Film>) -> CellResult {
        let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
        CellResult { cell, runs: vec![RunResult { film: film.map(Box::new), ..RunResult::default() }] }
    }

    fn page(results: Vec<CellResult>) -> String {
        let report = Report { groups: CellGroup::by_conditions(results), ..Report::default() };
        let mut out = Vec::new();
        report.write_html(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn element<'a>(page: &'a str, id: &str) -> Option<&'a str> {
        let start = format!("<script type=\"application/json\" id=\"{id}\">");
        let start = page.find(&start)? + start.len();
        Some(&page[start..start + page[start..].find("</script>")?])
    }

    #[test]
    fn a_page_has_the_films_of_its_cells_and_their_names() {
        let results = vec![
            result("default", 2, Some(film())),
            result("cocoa", 2, None),
            result("fasor<", 2, Some(film())),
            result("fasor<", 3, Some(film())),
        ];
        let page = page(results);
        let labels: serde_json::Value = serde_json::from_str(element(&page, "films").unwrap()).unwrap();
        assert_eq!(
            labels,
            serde_json::json!([
                { "m": 0, "title": "2 clients" }, { "m": 2, "title": "2 clients" }, { "m": 2, "title": "3 clients" }
            ])
        );
        for number in 0..3 {
            let json = element(&page, &format!("film-{number}")).unwrap();
            let data: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(data, serde_json::to_value(film()).unwrap());
        }
        assert!(element(&page, "film-3").is_none());
        assert!(page.contains("<option value=\"2\">fasor&lt;</option>") && !page.contains(">cocoa</option>"));
    }

    #[test]
    fn a_page_without_films_has_no_player() {
        let page = page(vec![result("default", 2, None), result("cocoa", 2, Some(Film::default()))]);
        assert!(!page.contains("film-player") && element(&page, "films").is_none());
    }

    #[test]
    fn a_page_says_how_many_films_it_leaves_out() {
        let results = (0..30).map(|clients| result("default", clients, Some(film()))).collect();
        let page = page(results);
        assert!(page.contains("The first 24 of 30 films."));
        assert!(element(&page, "film-23").is_some() && element(&page, "film-24").is_none());
    }
}
