//! Measures how well a scenario that is fitted to a capture predicts the rank of mechanisms.
//!
//! Draws scenarios with the generator of `coapace search`. Runs each once with `default`, fits a scenario to a capture beside
//! the clients, and ranks all mechanisms over UDP on both, by the median flow completion time and by transmissions. Prints
//! Kendall's τ-b of the two rankings, where results within 2 % are ties. Beside it is τ-b of two rankings of the drawn scenario
//! with different seeds, which is the best that can be expected. Meshes, one scenario in six, are skipped, because only paths
//! are fitted.
//!
//! ```sh
//! cargo run --release -p coapace-inspect --example advise_rank              # 20 scenarios of set 1
//! cargo run --release -p coapace-inspect --example advise_rank 17 20 facts  # of set 17, with what the owner of the clients
//! knows
//! ```
//!
//! With `--paths`, each line is followed by the fitted path, the measures of the capture and the measures of the path. With
//! `--only 3,4`, only scenarios with these numbers are drawn. With `facts`, the fit knows facts that a capture may not show but
//! the operator of the clients knows: whether they keep their state (`workload.kind`), and how often and how long they try
//! (`clients.max_retransmit`, `clients.patience`).

use std::sync::Arc;
use std::time::Instant;

use coapace_inspect::advice::fates::Fates;
use coapace_inspect::advice::fit::Fit;
use coapace_inspect::advice::measures::TrafficMeasures;
use coapace_inspect::advice::scenario_file::ScenarioFile;
use coapace_inspect::advice::simulated;
use coapace_inspect::advice::statistics::kendall_tau_b;
use coapace_inspect::advice::workload::ObservedWorkload;
use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::search::generator::draw;
use coapace_run::contender::Contender;
use coapace_run::measured::quantile;
use coapace_scenario::Scenario;

/// Results of two mechanisms within this share of each other are ties.
const TIE: f64 = 0.02;

/// The first seeds of the ranking of the drawn scenario, of the fitted one, and of the drawn one again. The capture uses seed
/// 1.
const FIRST_SEEDS: [u64; 3] = [101, 401, 701];

/// Returns the median flow completion times and the transmissions of each mechanism.
fn values(scenario: &Arc<Scenario>, contenders: &[Contender], seeds: u32, first_seed: u64) -> [Vec<f64>; 2] {
    let trial =
        |contender: &Contender| Trial { first_seed, ..Trial::of_totals(scenario, contender.clone(), seeds) };
    let trials: Vec<Trial> = contenders.iter().map(trial).collect();
    let cells = conduct(&trials, 0, &|| {});
    let median = |cell: &coapace_lab::results::CellResult| {
        let of_run = |run: &coapace_run::measured::RunResult| {
            run.fct_s.iter().map(|fct| fct.unwrap_or(run.duration_s)).collect::<Vec<_>>()
        };
        let mut times: Vec<f64> = cell.runs.iter().flat_map(of_run).collect();
        times.sort_by(f64::total_cmp);
        quantile(&times, 0.5).unwrap_or(0.0)
    };
    let sent = |cell: &coapace_lab::results::CellResult| {
        cell.runs.iter().map(|run| run.requests_sent as f64).sum::<f64>()
    };
    [cells.iter().map(median).collect(), cells.iter().map(sent).collect()]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| {
        arguments
            .get(place)
            .map_or(Some(default), |text| text.parse().ok())
            .expect("a number: SET COUNT [facts] [--paths] [--only NUMBERS]")
    };
    let (set, scenarios) = (number(0, 1), number(1, 20));
    let list = arguments.iter().position(|word| word == "--only").and_then(|place| arguments.get(place + 1));
    let only: Option<Vec<u32>> =
        list.map(|list| list.split(',').map(|number| number.parse().expect("a number")).collect());
    let scenarios = only.as_ref().map_or(scenarios, |only| only.len() as u64);
    let has_facts = arguments.get(2).is_some_and(|word| word == "facts");
    let captured = Contender::parse("default").expect("a mechanism");
    let contenders: Vec<Contender> = Contender::all_over_udp().collect();
    let (start, mut sums, mut done) = (Instant::now(), [0.0; 4], 0u64);
    println!("place  tau FCT  tau sent  own FCT  own sent  distance  fit s  scenario");
    for place in 0.. {
        let drawn = draw(set, place).expect("a scenario");
        if drawn.scenario.network.mesh.is_some() {
            continue;
        }
        if only.as_ref().is_some_and(|only| !only.contains(&place)) {
            continue;
        }
        let begun = Instant::now();
        let traffic = simulated::traffic(&drawn.scenario, &captured, 1);
        let fates = Fates::of(&traffic);
        let measured = TrafficMeasures::of(&traffic, &fates);
        let workload = ObservedWorkload::of(&traffic).expect("clients");
        let known = [
            ("workload.kind", drawn.scenario.workload.kind.word()),
            ("clients.max_retransmit", "20"),
            ("clients.patience", "published"),
        ];
        let mut settings = known.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        settings.truncate(if has_facts { settings.len() } else { 0 });
        let file = ScenarioFile { workload: &workload, capture: "a simulation", settings: &settings };
        let fit = Fit { measured: &measured, contender: &captured, file: file.clone() };
        let fitted = fit.search(&mut |_| false).expect("settings that fit").expect("a path");
        let took = begun.elapsed().as_secs_f64();
        let advised = Arc::new(file.scenario(&fitted.link).expect("a scenario"));
        let seeds = (1_500 / workload.clients.max(1)).clamp(3, 60);
        let [own, advised, again] = [(&drawn.scenario, 0), (&advised, 1), (&drawn.scenario, 2)]
            .map(|(scenario, place)| values(scenario, &contenders, seeds, FIRST_SEEDS[place]));
        // If all mechanisms are tied, no order is wrong.
        let tau = |other: &[Vec<f64>; 2], value: usize| {
            kendall_tau_b(&own[value], &other[value], TIE).unwrap_or(1.0)
        };
        let taus = [tau(&advised, 0), tau(&advised, 1), tau(&again, 0), tau(&again, 1)];
        println!(
            "{place:5}  {:7.2}  {:8.2}  {:7.2}  {:8.2}  {:8.2}  {took:5.1}  {}",
            taus[0], taus[1], taus[2], taus[3], fitted.distance, drawn.description
        );
        if arguments.iter().any(|word| word == "--paths") {
            println!("       {:.3?}\n       {measured:.3?}\n       {:.3?}", fitted.link, fitted.measures);
        }
        sums.iter_mut().zip(taus).for_each(|(sum, tau)| *sum += tau);
        done += 1;
        if done == scenarios {
            break;
        }
    }
    let [fct, sending, own_fct, own_sending] = sums.map(|sum| sum / done.max(1) as f64);
    println!(
        " mean  {fct:7.3}  {sending:8.3}  {own_fct:7.3}  {own_sending:8.3}  {done} scenarios, {} mechanisms, {:.0} s",
        contenders.len(),
        start.elapsed().as_secs_f64()
    );
}
