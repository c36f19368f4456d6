//! Prints the trace hash of a short run of every built-in scenario with several mechanisms, as CSV:
//! `scenario,settings,mechanism,seed,trace_hash`. `tests/check-portable` compares the output of several machines, and
//! `tests/check-playground` repeats the runs in a browser. With the name of a scenario, prints only the lines of that scenario.

use coapace_run::contender::Contender;
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

/// A mechanism with integer arithmetic only, one with a marking, and TCP. One that does not fit a scenario is left out.
const MECHANISMS: [&str; 4] = ["default", "cocoa-plus-plus", "ebb", "tcp"];

const SEED: u64 = 7;

fn main() {
    let only = std::env::args().nth(1);
    println!("scenario,settings,mechanism,seed,trace_hash");
    for builtin in Scenario::builtins() {
        if only.as_ref().is_some_and(|only| only != builtin.name) {
            continue;
        }
        let (scenario, settings) = match shortened(builtin.name) {
            Ok(shortened) => shortened,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        };
        for label in MECHANISMS {
            let Ok(contender) = Contender::fitting(label, &scenario) else { continue };
            let hash = run(&scenario, &contender, SEED, Observe::Totals).trace_hash;
            println!("{},{settings},{label},{SEED},{hash}", builtin.name);
        }
    }
}

/// Returns a shortened scenario, and its settings as `KEY=VALUE` separated by `;`.
fn shortened(name: &str) -> Result<(Scenario, String), String> {
    let load =
        |settings: &[(String, String)]| Scenario::load(name, settings).map_err(|error| error.to_string());
    let whole = load(&[])?;
    let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let bodies = whole.workload.transfers.iter();
    let bodies: Vec<_> =
        bodies.map(|body| (format!("workload.transfers.{}.bytes", body.name), "16 KiB".to_owned())).collect();
    let lengths = match whole.workload.duration {
        // Flows may start only when routes have settled.
        Some(_) => ["60 s", "240 s", "420 s"]
            .map(|end| vec![setting("workload.warm_up", "0 s"), setting("workload.duration", end)])
            .into(),
        None if whole.workload.exchanges.is_some() => vec![vec![setting("workload.exchanges", "5")]],
        None => vec![Vec::new()],
    };
    let mut refused = String::new();
    for length in lengths {
        let settings: Vec<_> = bodies.iter().cloned().chain(length).collect();
        match load(&settings) {
            Ok(scenario) => {
                let shown: Vec<_> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
                return Ok((scenario, shown.join(";")));
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}
