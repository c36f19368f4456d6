use std::time::Instant;
use std::sync::Arc;
use coapace_lab::contender::Contender;
use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::search::generator::draw;
use coapace_scenario::Scenario;
use coapace_wire::advice::{fates::*, fit::*, measures::*, scenario_file::*, simulated, workload::*, statistics::*};
fn figures(s: &Arc<Scenario>, names: &[Contender], seeds: u32, first: u64) -> (Vec<f64>, Vec<f64>) {
    let trials: Vec<Trial> = names.iter().map(|c| Trial { first_seed: first, ..Trial::of_totals(s, c.clone(), seeds) }).collect();
    let cells = conduct(&trials, 2, &|| {});
    cells.iter().map(|cell| {
        let mut times: Vec<f64> = cell.runs.iter().flat_map(|run| run.fct_s.iter().map(|f| f.unwrap_or(run.duration_s))).collect();
        times.sort_by(f64::total_cmp);
        let sent: u64 = cell.runs.iter().map(|r| r.requests_sent).sum();
        (quantile(&times, 0.5).unwrap(), sent as f64)
    }).unzip()
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let set: u64 = args[1].parse().unwrap();
    let told = args.get(2).is_some_and(|a| a == "told");
    let c = Contender::parse("default").unwrap();
    let names: Vec<Contender> = Contender::all_over_udp().collect();
    println!("{:?}", names.iter().map(|n| n.label.clone()).collect::<Vec<_>>());
    let (mut sum, mut sum2, mut sumc, mut sumc2, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let t_all = Instant::now();
    for place in 0..24 {
        if place % 6 == 5 { continue; }
        let d = draw(set, place).unwrap();
        let t0 = Instant::now();
        let t = simulated::traffic(&d.scenario, &c, 1);
        let f = Fates::of(&t);
        let m = Measures::of(&t, &f);
        let w = Workload::of(&t).unwrap();
        let mut settings: Vec<(String, String)> = vec![];
        if told {
            settings.push(("workload.kind".into(), d.scenario.workload.kind.word().into()));
            settings.push(("clients.max_retransmit".into(), "20".into()));
            settings.push(("clients.patience".into(), "published".into()));
        }
        let file = ScenarioFile { workload: &w, capture: "x", settings: &settings };
        let fit = Fit { measured: &m, contender: &c, file };
        let best = fit.search(&mut |_| false).unwrap().unwrap();
        let tf = t0.elapsed();
        let fitted = Arc::new(fit.file.scenario(&best.link).unwrap());
        let seeds = (1500 / w.clients).clamp(3, 60);
        let (a, a2) = figures(&d.scenario, &names, seeds, 101);
        let (b, b2) = figures(&fitted, &names, seeds, 401);
        let (e, e2) = figures(&d.scenario, &names, seeds, 701);
        let tau = kendall_tau_b(&a, &b, 0.02).unwrap_or(1.0);
        let tau2 = kendall_tau_b(&a2, &b2, 0.02).unwrap_or(1.0);
        let (ce, ce2) = (kendall_tau_b(&a, &e, 0.02).unwrap_or(1.0), kendall_tau_b(&a2, &e2, 0.02).unwrap_or(1.0));
        sum += tau; sum2 += tau2; sumc += ce; sumc2 += ce2; n += 1.0;
        println!("{place}: {}\n   τ {tau:.2} {tau2:.2}  ceiling {ce:.2} {ce2:.2}  d {:.2} fit {tf:.1?} {:.3?}", d.description, best.distance, best.link);
        if args.len() > 3 { println!("   {m:.3?}\n   {:.3?}\n   {a:.1?}\n   {b:.1?}\n   {w:?}", best.measures); }
    }
    println!("mean {:.3} {:.3} ceiling {:.3} {:.3} {:?}", sum / n, sum2 / n, sumc / n, sumc2 / n, t_all.elapsed());
}
