//! Writes a report with invented films of meshes. `tests/check-report` opens it in a browser. Nothing in it was measured.

use std::fs;
use std::path::Path;

use coapace_lab::results::{Cell, CellResult};
use coapace_report::{CellGroup, Report};
use coapace_run::measured::{
    Film, FilmMaker, FilmMoment, FilmNode, FilmRole, Journey, JourneyStep, RunResult,
};
use coapace_sim::{Luck, Position};

const RANGE_M: f64 = 10.0;
const STEPS: u32 = 300;

/// An invented mesh: the places of its nodes, and the numbers of the root and of the sink.
struct Mesh {
    name: &'static str,
    places: Vec<(f64, f64)>,
    root: usize,
    sink: usize,
    /// The metres that a node may walk in a step.
    walk: f64,
}

fn meshes() -> Vec<Mesh> {
    let grid = |columns: u32, count: u32, spacing: f64| -> Vec<(f64, f64)> {
        (0..count).map(|i| (f64::from(i % columns) * spacing, f64::from(i / columns) * spacing)).collect()
    };
    // The first circle has six nodes, and each further one six more.
    let circles = |count: usize| -> Vec<(f64, f64)> {
        let ring = |ring: u32| {
            (0..6 * ring).map(move |i| {
                let (sin, cos) = (std::f64::consts::TAU * f64::from(i) / f64::from(6 * ring)).sin_cos();
                (f64::from(ring) * 10.0 * cos, f64::from(ring) * 10.0 * sin)
            })
        };
        std::iter::once((0.0, 0.0)).chain((1..).flat_map(ring)).take(count).collect()
    };
    vec![
        Mesh { name: "grid", places: grid(6, 36, 10.0), root: 0, sink: 35, walk: 0.0 },
        Mesh { name: "chain", places: grid(17, 17, 10.0), root: 8, sink: 16, walk: 0.0 },
        Mesh { name: "circles", places: circles(112), root: 0, sink: 1, walk: 0.0 },
        Mesh { name: "mobile", places: grid(6, 36, 9.0), root: 14, sink: 33, walk: 0.8 },
    ]
}

/// Returns the parents: the nearest nodes with the fewest hops to the root. A hop may be a fifth longer than the range.
fn parents(places: &[Position], root: usize) -> Vec<Option<u32>> {
    let mut hops = vec![u32::MAX; places.len()];
    let mut parents = vec![None; places.len()];
    hops[root] = 0;
    for depth in 0..places.len() as u32 {
        for node in 0..places.len() {
            if hops[node] < u32::MAX {
                continue;
            }
            let near = |other: &usize| hops[*other] == depth && reach(places, node, *other) <= RANGE_M * 1.2;
            let nearest = (0..places.len())
                .filter(near)
                .min_by(|&a, &b| reach(places, node, a).total_cmp(&reach(places, node, b)));
            if let Some(parent) = nearest {
                parents[node] = Some(parent as u32);
                hops[node] = depth + 1;
            }
        }
    }
    parents
}

fn reach(places: &[Position], a: usize, b: usize) -> f64 {
    places[a].distance(places[b])
}

/// Makes a film. Nodes offer frames, more of them in the middle of the film, and pass on those in their queues. Nodes that
/// repeat frames cause collisions at their parents. `eager` is how often they repeat.
fn film(mesh: &Mesh, seed: u64, eager: f64) -> Film {
    let luck = Luck::new(seed).stream("film");
    let draw = |node: usize, step: u32, what| luck.unit(node as u64, u64::from(step), what);
    let count = mesh.places.len();
    let name = |node: usize| match node {
        node if node == mesh.root => ("root".to_owned(), FilmRole::Root),
        node if node == mesh.sink => ("sink".to_owned(), FilmRole::Sink),
        node => (format!("client {node}"), FilmRole::Client),
    };
    let nodes = (0..count).map(name).map(|(name, role)| FilmNode { role, name }).collect();
    let mut maker = FilmMaker::new(Film {
        step_s: 2.0,
        range_m: RANGE_M,
        interference_m: 2.0 * RANGE_M,
        queue_frames: 8,
        nodes,
        ..Film::default()
    });
    let mut now = vec![FilmMoment::default(); count];
    let mut places: Vec<_> = mesh.places.iter().map(|&(x, y)| Position { x, y }).collect();
    for step in 0..STEPS {
        let load = if (100..160).contains(&step) { 1.6 } else { 0.35 };
        for (node, place) in places.iter_mut().enumerate() {
            if mesh.walk > 0.0 && node != mesh.root && node != mesh.sink {
                let way = draw(node, step / 12, 1) * std::f64::consts::TAU;
                place.x = (place.x + mesh.walk * way.cos()).clamp(0.0, 45.0);
                place.y = (place.y + mesh.walk * way.sin()).clamp(0.0, 45.0);
            }
        }
        let parents = parents(&places, mesh.root);
        // Nodes take turns in the order of their numbers, so a frame may go several hops in a step.
        for node in 0..count {
            now[node].position = places[node];
            now[node].parent = if step == 0 { None } else { parents[node] };
            now[node].energy_mj += 112.0 + 6.0 * draw(node, step, 2);
            if step == 0 {
                continue;
            }
            now[node].queued += u32::from(draw(node, step, 3) < load && node != mesh.root);
            let Some(parent) = parents[node] else { continue };
            let able = luck.below(6, node as u64, u64::from(step), 4) as u32;
            let passed = now[node].queued.min(able);
            let again =
                (0..u64::from(passed)).filter(|&frame| draw(node, step, 10 + frame) < eager / 2.0).count();
            now[node].sent += u64::from(passed) + again as u64;
            now[node].queued -= passed;
            let parent = &mut now[parent as usize];
            if draw(node, step, 6) < 0.12 * again as f64 {
                parent.collided += 1;
            }
            parent.queued += passed;
        }
        now[mesh.root].queued = now[mesh.root].queued.saturating_sub(6);
        for (node, moment) in now.iter_mut().enumerate() {
            if moment.queued > 8 {
                moment.dropped += u64::from(moment.queued - 8);
                moment.queued = 8;
            }
            if node != mesh.root && node != mesh.sink && step > 3 {
                let before = moment.rto_s.unwrap_or(2.0);
                let rtt = 0.3 + 0.9 * f64::from(moment.queued) * draw(node, step, 7);
                moment.rto_s = Some((0.8 * before + 0.2 * 2.5 * rtt).clamp(0.5, 32.0));
            }
        }
        maker.push(&now);
    }
    Film { journeys: vec![journey(count as u32 - 1, mesh.sink as u32)], ..maker.finish() }
}

/// Makes a message of the last node, by whose number a film with fewer nodes has none.
fn journey(from: u32, to: u32) -> Journey {
    let step = |ms, event, from, to| JourneyStep(ms, event, from, to, 0);
    let there = [
        step(2_000, 0, from, to),
        step(2_010, 3, from, to),
        step(2_015, 4, from, to),
        step(2_015, 1, from, to),
    ];
    let back = [
        step(2_020, 0, to, from),
        step(2_030, 3, to, from),
        step(2_035, 4, to, from),
        step(2_035, 1, to, from),
    ];
    Journey { from, to, exchange: 0, steps: [there, back].concat() }
}

#[test]
fn a_report_with_films_is_written_for_the_browser() {
    let results = meshes().into_iter().flat_map(|mesh| {
        let of = move |(mechanism, eager): (&str, f64)| {
            let cell = Cell {
                scenario: "synthetic".into(),
                mechanism: mechanism.into(),
                clients: mesh.places.len() as u32 - 2,
                knobs: [("topology".to_owned(), mesh.name.to_owned())].into(),
                ..Cell::default()
            };
            let run = RunResult {
                seed: 1,
                fct_s: vec![Some(100.0 * eager), Some(120.0 * eager)],
                film: Some(Box::new(film(&mesh, 1, eager))),
                ..RunResult::default()
            };
            CellResult { cell, runs: vec![run] }
        };
        [("default", 1.2), ("cocoa", 0.7)].map(of)
    });
    let report = Report {
        title: "Meshes that never were".into(),
        subtitle: "Synthetic films that show how one is played. Nothing here was measured.".into(),
        groups: CellGroup::by_conditions(results.collect()),
        ..Report::default()
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("film.html");
    let mut page = Vec::new();
    report.write_html(&mut page).unwrap();
    fs::write(&path, &page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("<script type=\"application/json\" id=\"film-").count(), 8);
}
