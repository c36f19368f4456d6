//! The page from top to bottom.

use std::collections::BTreeSet;
use std::io;

use coapace_lab::papers::rules;

use super::film::{self, Films};
use super::html::{self, SAVE, coded, escape, json_for_script, plot, section, unbroken};
use super::pairs::rate;
use super::panels::{Charts, Numbered};
use super::report::Report;
use super::view::View;
use super::{coexistence, headline, judged, notebook, ranking, sensitivity, tables};

/// The number of charts of a kind that are always shown. The reader can unfold the others.
const SHOWN: usize = 4;

/// Writes the page.
pub(super) fn write(out: &mut impl io::Write, report: &Report) -> io::Result<()> {
    let view = View::of(report);
    let charts = Charts::of(&view);
    let films = Films::of(&view);
    // Pages without a film do without its style.
    head(out, report, if films.is_some() { film::STYLE } else { "" })?;
    masthead(out, report, &view)?;
    legend(out, &view)?;
    writeln!(out, "<main>")?;
    // Both sum up runs under many conditions, which the sections below could not show together.
    if report.sensitivity.is_some() || report.ranking.is_some() {
        if let Some(sensitivity) = &report.sensitivity {
            let html = sensitivity::heat_maps(sensitivity);
            section(out, "sensitivity", "What the publication determines", SENSITIVITY, &html)?;
        } else if let Some(ranking) = &report.ranking {
            ranking::write(out, ranking)?;
        }
        section(out, "provenance", "How this was made", "", &origin(report))?;
        return writeln!(out, "</main>\n</body>\n</html>");
    }
    if let Some(stakes) = tables::stakes(&view).filter(|_| view.coexistence.is_none()) {
        section(out, "stakes", "Where the choice matters", STAKES, &stakes)?;
    }
    if let Some(films) = &films {
        section(out, "film", "The network at work", film::TEXT, &films.html(&view.mechanisms))?;
    }
    pairs(out, &view, &charts)?;
    published(out, &view, &charts)?;
    if let Some(tables) = judged::tables(&view) {
        section(out, "values", "Published tables", TABLES, &tables)?;
    }
    if let Some(sweeps) = charts.get("sweep") {
        section(out, "sweep", "Over one knob", SWEEP, &panels(&sweeps))?;
    }
    orders(out, &view)?;
    let results = tables::results(&view);
    // With a matrix of coexistence the cells are the populations without a rival.
    let title = if view.coexistence.is_some() { "Each among its own kind" } else { "Results" };
    section(out, "results", title, RESULTS, &results)?;
    if let Some(populations) = tables::populations(&view) {
        section(out, "populations", "Who gets how much", POPULATIONS, &populations)?;
    }
    for (kind, title, text) in CHARTS {
        if let Some(charts) = charts.get(kind) {
            section(out, kind, title, text, &panels(&charts))?;
        }
    }
    section(out, "glossary", "Glossary", "", GLOSSARY)?;
    section(out, "provenance", "How this was made", "", &provenance(report, &view))?;
    writeln!(out, "</main>")?;
    // Without results there is nothing for the scripts to draw, and plotly is most of the page's size.
    if view.groups.is_empty() {
        return writeln!(out, "</body>\n</html>");
    }
    writeln!(out, "<script>{}</script>", html::PLOTLY)?;
    writeln!(
        out,
        // The data come before the script that reads them.
        "<script type=\"application/json\" id=\"data\">{}</script>",
        json_for_script(&notebook::data(&charts))?
    )?;
    writeln!(out, "<script>\n{}</script>", include_str!("report.js"))?;
    if let Some(films) = &films {
        writeln!(out, "{}<script>\n{}</script>", films.data()?, film::SCRIPT)?;
    }
    writeln!(out, "</body>\n</html>")
}

fn head(out: &mut impl io::Write, report: &Report, more_style: &str) -> io::Result<()> {
    // Scripts and styles are part of the page, so `unsafe-inline`; plotly saves a chart by way of an image in a URL.
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; img-src data: blob:\">\n<title>{}</title>\n<style>\n{}{more_style}</style>\n</head>\n<body>",
        escape(&report.title),
        include_str!("report.css")
    )
}

fn masthead(out: &mut impl io::Write, report: &Report, view: &View) -> io::Result<()> {
    writeln!(out, "<header>\n<button type=\"button\" id=\"theme\" hidden>Theme</button>")?;
    writeln!(out, "<h1>{}</h1>", escape(&report.title))?;
    if !report.subtitle.is_empty() {
        writeln!(out, "<p class=\"subtitle\">{}</p>", escape(&report.subtitle))?;
    }
    if !view.common.is_empty() {
        writeln!(out, "<p class=\"conditions\">{}</p>", escape(&view.common))?;
    }
    let sentences = match (&report.sensitivity, &report.ranking) {
        (Some(sensitivity), _) => vec![sensitivity::headline(sensitivity)],
        (None, Some(ranking)) => ranking.advice().into_iter().collect(),
        (None, None) => headline::headline(view),
    };
    let sentences: Vec<_> = sentences.iter().map(|sentence| coded(sentence)).collect();
    writeln!(out, "<p class=\"headline\">{}</p>\n</header>", unbroken(&sentences.join("<br>")))
}

fn legend(out: &mut impl io::Write, view: &View) -> io::Result<()> {
    if view.mechanisms.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<nav aria-label=\"Mechanisms\" title=\"Click hides or shows, double click shows alone\">"
    )?;
    for (number, name) in view.mechanisms.iter().enumerate() {
        let name = escape(name);
        writeln!(
            out,
            "<button type=\"button\" aria-pressed=\"true\" data-m=\"{number}\" title=\"{name}\">\
             <i class=\"key\" data-m=\"{number}\"></i>{name}</button>"
        )?;
    }
    writeln!(out, "</nav>")
}

/// Writes the two heat maps, and the standings beside the first.
fn pairs(out: &mut impl io::Write, view: &View, charts: &Charts) -> io::Result<()> {
    let Some(matrix) = view.coexistence else { return Ok(()) };
    let heat_map = |kind| coexistence::heat_map(&charts.get(kind).unwrap_or_default(), matrix);
    let standings = coexistence::standings(view, matrix);
    let html = format!("<div class=\"beside\">{}{standings}</div>", heat_map("share"));
    // The texts name the rate that clients share.
    let about = |text: &str| text.replace("throughput", rate(matrix.is_of_transfers()));
    section(out, "pairs", "Who takes how much from whom", &about(SHARE), &html)?;
    section(out, "kept", "What the company costs", &about(KEPT), &heat_map("kept"))
}

fn published(out: &mut impl io::Write, view: &View, charts: &Charts) -> io::Result<()> {
    let mut html = charts.get("published").map(|charts| panels(&charts)).unwrap_or_default();
    let plain = view.plain();
    if !plain.is_empty() {
        html.push_str(&tables::comparison(&plain));
    }
    if html.is_empty() {
        return Ok(());
    }
    section(out, "published", "Published and measured", PUBLISHED, &html)
}

fn orders(out: &mut impl io::Write, view: &View) -> io::Result<()> {
    let titled = view.verdicts();
    if titled.is_empty() {
        return Ok(());
    }
    let verdicts: Vec<_> = titled.iter().map(|(_, verdict)| verdict.clone()).collect();
    // The rules have signs such as `>`, and `section` takes HTML.
    let text = ORDERS.to_owned() + &escape(&rules(&verdicts).join(" "));
    section(out, "orders", "Published orders", &text, &tables::orders(&titled))
}

fn panels(charts: &[Numbered]) -> String {
    let figure = |(number, chart): &Numbered| {
        let (caption, plot) = (escape(&chart.caption), plot(*number, chart.height()));
        format!("<figure><figcaption>{caption}{SAVE}</figcaption>{plot}</figure>")
    };
    let grid = |panels: &[_]| {
        let class = if panels.len() == 1 { "panels single" } else { "panels" };
        format!("<div class=\"{class}\">{}</div>", panels.iter().map(figure).collect::<String>())
    };
    let (shown, folded) = charts.split_at(charts.len().min(SHOWN));
    if folded.is_empty() {
        return grid(shown);
    }
    grid(shown) + &html::folded(&format!("{} more", folded.len()), &grid(folded))
}

fn provenance(report: &Report, view: &View) -> String {
    let summaries = || view.cells().map(|(_, cell)| &cell.summary).filter(|summary| summary.runs > 0);
    // On a page of pairs the cells are only the populations without a rival; the matrix has counted all runs.
    let alone: u64 = summaries().map(|summary| summary.runs).sum();
    let runs = view.coexistence.map_or(alone, |matrix| matrix.runs);
    let first = summaries().map(|summary| summary.seed_first).min().unwrap_or(0);
    let last = summaries().map(|summary| summary.seed_last).max().unwrap_or(0);
    let hashes = view.cells().map(|(_, cell)| format!("<code>{}</code>", cell.result.cell.scenario_hash));
    let hashes = each_once(hashes, " ");
    let published = view.cells().filter_map(|(_, cell)| cell.published);
    let sources = published.map(|published| escape(&published.source)).filter(|source| !source.is_empty());
    let sources = match each_once(sources, "; ") {
        text if text.is_empty() => text,
        text => format!("<dt>Published in</dt><dd>{text}</dd>"),
    };
    format!(
        "<p>The same scenario, seed and commit make the same run, byte for byte. The command with <code>--figures DIR</code> writes \
         every chart of this page as SVG, PDF and PNG.</p>\n{}\
         <dl class=\"provenance\">\
         <dt>Runs</dt><dd>{runs}, with seeds {first} to {last}</dd><dt>Scenario hashes</dt><dd>{hashes}</dd>{sources}</dl>",
        origin(report)
    )
}

/// Joins the texts in ascending order, each once.
fn each_once(texts: impl Iterator<Item = String>, between: &str) -> String {
    texts.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(between)
}

/// Returns the command and the commit that made the page.
fn origin(report: &Report) -> String {
    format!(
        "<dl class=\"provenance\"><dt>Command</dt><dd><code>{}</code></dd><dt>Commit</dt><dd><code>{}</code></dd></dl>",
        escape(&report.command),
        escape(&report.commit)
    )
}

const SENSITIVITY: &str = "The paper does not print these conditions, and a reproduction has to choose. Each square counts the values or orders that are met under the values of \
    its row and its column, all other conditions as chosen; on the diagonal the value is alone. Blue is more than as chosen, orange \
    less. The publication determines the counts that are the same everywhere; the others depend on the choice.";

const SHARE: &str = "Each square is one experiment: half of the clients have the mechanism of the row, half the \
    column’s. The value is the throughput of the row’s half, in per cent of a fair share: 100 is fair, 200 is everything, and \
    row and column of a pair mirror each other. Orange takes, blue yields. Hover for the rest.";

const KEPT: &str = "The throughput of a client of the row in the company of the column, in per cent of what it is where \
    all clients have the row’s mechanism. Below 50 the row is starved, and marked with a star. Even with a fair share a \
    mechanism can lose: a column that is blue throughout makes everyone slower.";

const SWEEP: &str = "One line a mechanism, over a knob that varies while everything else stays: the mean over the seeds, and as a \
    band around it the 95 % confidence interval of that mean. A seed without a value leaves its point out.";

const ORDERS: &str = "The paper says which mechanism lies above which, or how many times the one value is the other. \
    Times is the first over the second as measured: the geometric mean over the seeds (the ratio of the means where one of them is zero), both mechanisms under the same random numbers, \
    with its 95 % confidence interval. Orders that do not hold come first, the farthest off before the others, then inconclusive ones. ";

const TABLES: &str = "A value is within if published and measured differ by at most the factor asked for, in either direction. \
    The largest met is the factor of the worst value of a table, or a dash if a value was not measured.";

const PUBLISHED: &str = "Each value that was published, and the one measured here: a point on the diagonal is a \
    perfect match, and the grey band is ±5 %. The worst come first wherever values are listed.";

const RESULTS: &str = "One row a mechanism: means over the seeds, with the 95 % confidence interval of the mean. Bold is the best \
    value of a group, and every value that ties with it: mechanisms are compared seed by seed, for a \
    seed gives all of them the same losses and delays. Nothing is bold where the seeds show no order. A dash is a value that some \
    seed does not have: a client that gave up counts as never finishing. Click a heading to sort.";

const STAKES: &str = "The best mechanism under each condition, the mechanisms that tie with it (paired t tests at 5 % for all mechanisms \
    together, Holm 1979), how many are at most 5 % worse, and the one that is farthest behind. If at least two published mechanisms dither, only \
    these are compared; the table of results has the others.";

const POPULATIONS: &str = "In a mix, clients of different mechanisms share the network. A population’s relative share is its \
    share of the throughput beside its share of the clients: above 1 it takes more than a fair share from \
    the others, below 1 less.";

const CHARTS: [(&str, &str, &str); 11] = [
    (
        "intervals",
        "Each metric by itself",
        "The mean over the seeds, and the 95 % confidence interval of that mean. Intervals that overlap may belong to \
         mechanisms that differ all the same: the tables compare them seed by seed, which finds more differences.",
    ),
    (
        "fct",
        "How long clients take",
        "Each box is one mechanism: half of all clients finish within the box, the line in it is the median, and the \
         whiskers reach from the fastest 10 % to the slowest 10 %. Further left is faster. \
         A diamond <span class=\"diamond\">◆</span> is the median that was published; it is alone where too many clients gave up for a \
         box. The dotted line is the bound that the network sets for \
         clients that share fairly and send no spurious copies: the slowest hop has to carry every exchange, and losses cost time. A \
         median beyond it makes other clients wait, which the right end of its box shows, or is paid for with copies.",
    ),
    (
        "delay",
        "How long messages take",
        "From the offer of a message to its first arrival. Half of all messages arrive within the box, the line in it is the \
         median, and the whiskers reach from the fastest 10 % to the slowest 10 %. Further left is faster.",
    ),
    (
        "cdf",
        "How many are done by when",
        "The share of clients that have finished by a given time: a line further left is faster, a steeper one \
         treats clients more alike, and one that ends below 100 % left clients that gave up.",
    ),
    (
        "delay-cdf",
        "How many have arrived by when",
        "The share of messages that have arrived within a given time of their offer: a line further left is faster. Messages \
         that never arrived are not in it; the packet delivery ratio counts them.",
    ),
    (
        "retransmissions",
        "Messages that are sent again",
        "Retransmissions of a client, on average. The solid part, and the number beside the bar, were spurious: an earlier copy had \
         arrived. The pale part was needed.",
    ),
    (
        "rto",
        "How long they wait before sending again",
        "The retransmission timeout over time, in the run with the lowest seed: too low makes spurious retransmissions, \
         too high makes a loss be noticed late.",
    ),
    (
        "arrived",
        "How bodies arrive",
        "The bytes of bodies that clients have moved, in the run with the lowest seed: a steeper line is faster, and a level one \
         waits.",
    ),
    (
        "blocks",
        "Which blocks depart again",
        "The blocks that a client sends or asks for, in the run with the lowest seed: a line for the first departures, and a dot \
         for each later one. Dots close to the line are losses that were noticed soon.",
    ),
    (
        "window",
        "How many blocks are under way",
        "The blocks that a client may have under way, in the run with the lowest seed: too few leave the link idle, and too many \
         wait in its queue.",
    ),
    (
        "queue",
        "What waits in the queue",
        "The length of the queue over time, in the run with the lowest seed, one strip a mechanism on a common scale: a \
         queue that stays long makes everyone wait.",
    ),
];

const GLOSSARY: &str = "<dl class=\"glossary\">\
    <dt>FCT</dt><dd>Flow completion time: from a client’s first request to its last response.</dd>\
    <dt>RTO</dt><dd>Retransmission timeout: a mechanism’s estimate of how long to wait for a response before the \
    request is sent again.</dd>\
    <dt>Spurious</dt><dd>A retransmission of a message of which an earlier copy had arrived.</dd>\
    <dt>Drop</dt><dd>A packet that found a queue full.</dd>\
    <dt>Bound</dt><dd>The limit that the network sets. In tables no mechanism can do better; see docs/rank.md.</dd>\
    <dt>Goodput</dt><dd>Payload of completed exchanges per second; retransmissions do not count.</dd>\
    <dt>Throughput</dt><dd>Completed exchanges per second, of all clients together.</dd>\
    <dt>Fairness</dt><dd>Jain’s index over the clients’ rates: 1 if all are served alike, 1/n if one of n has \
    everything.</dd>\
    <dt>PDR</dt><dd>Packet delivery ratio: messages that reached their sink, of those that the application handed over.</dd>\
    <dt>Delay</dt><dd>From the offer of a message to its first arrival at its sink.</dd>\
    <dt>Carried load</dt><dd>Bits of CoAP messages that reached their sinks in a second.</dd>\
    <dt>Settling time</dt><dd>The time from an event until the delay was as before.</dd>\
    <dt>Tie</dt><dd>The values of two mechanisms do not differ significantly, seed by seed (paired t test of the logarithms). Each is compared \
    with the best; the level of 5 % is for all of these comparisons together (Holm 1979).</dd>\
    <dt>±</dt><dd>Half of the 95 % confidence interval of a mean over the seeds (Student’s t).</dd>\
    <dt>Quantiles</dt><dd>In tables and intervals: of the clients or messages of each seed, then the mean over the seeds. In boxes and \
    distributions: over all seeds together.</dd></dl>";
