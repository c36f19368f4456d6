//! Searches for the best mechanism with the state of `ebb`, as an upper bound: a table of actions (docs/search.md).
//!
//! ```sh
//! cargo run --release -p coapace-lab --example table -- --steps 1000 --journal table.jsonl
//! cargo run --release -p coapace-lab --example table -- --generator-seed 3 ebb table:start=…   # compares
//! ```
//!
//! `--networks meshes` draws larger and harsher meshes. `--only links`, `tiny` (links with buffers of ten packets at most) or `meshes`
//! leaves the other networks out. `--seed` makes another search. `--jobs` is the number of threads, and changes nothing else. A journal can
//! be used until the sources change.

mod bench;
mod climb;
mod sight;
mod table;

use std::error::Error;
use std::path::PathBuf;

use coapace_lab::search::evaluation::{Evaluation, Set};
use coapace_lab::search::generator::Drawn;
use coapace_lab::search::journal::SearchConditions;
use coapace_lab::search::networks::Networks;
use coapace_scenario::naming;

use self::bench::Bench;
use self::table::ENTRY;

/// Ten packets, in bytes.
const TINY_BUFFER: u64 = 10 * 296;

/// A function that returns whether a scenario belongs to a part of a set.
type IsPart = fn(&Drawn) -> bool;

/// The parts of a set.
const PARTS: [(&str, IsPart); 4] =
    [("all", |_| true), ("links", |drawn| !is_mesh(drawn)), ("tiny", is_tiny), ("meshes", is_mesh)];

/// The ratios that are listed of each mechanism, the greatest first.
const LISTED: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut generator_seed, mut scenarios, mut steps, mut seed, mut jobs) = (1, 72, 1000, 1, 0);
    let mut networks = Networks::default();
    let (mut only, mut journal, mut mechanisms) = ("all".to_owned(), None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("--") else {
            mechanisms.push(argument);
            continue;
        };
        let value = arguments.next().ok_or_else(|| format!("--{option} needs a value"))?;
        match option {
            "networks" => networks = Networks::parse(&value)?,
            "generator-seed" => generator_seed = value.parse()?,
            "scenarios" => scenarios = value.parse()?,
            "steps" => steps = value.parse()?,
            "seed" => seed = value.parse()?,
            "jobs" => jobs = value.parse()?,
            "only" => only = value,
            "journal" => journal = Some(PathBuf::from(value)),
            _ => return Err(format!("there is no option --{option}").into()),
        }
    }
    naming::add(&ENTRY)?;
    let mut set = Set::draw(networks, generator_seed, scenarios)?;
    let (name, is_part) =
        *PARTS.iter().find(|part| part.0 == only).ok_or_else(|| format!("there is no part {only}"))?;
    set.scenarios.retain(is_part);
    set.shared.retain(is_part);
    // The version has the name of the part, so that a journal of another part is refused.
    let commit = format!("{} {name}", env!("CARGO_PKG_VERSION"));
    let conditions = SearchConditions { commit, networks, generator_seed, scenarios: set.scenarios.len() };
    let mut bench = Bench::open(set, journal.as_deref(), &conditions, jobs)?;
    if mechanisms.is_empty() {
        let best = bench.climb(steps, seed, &mut |_, step, loss| eprintln!("step {step}: loss {loss:.4}"))?;
        mechanisms.push(best.label());
    }
    for mechanism in mechanisms {
        let all = bench.set().scenarios.len();
        print(&bench.evaluate(&mechanism, all)?, bench.set());
    }
    Ok(())
}

fn is_mesh(drawn: &Drawn) -> bool {
    drawn.scenario.network.mesh.is_some()
}

fn is_tiny(drawn: &Drawn) -> bool {
    drawn.scenario.network.up.iter().any(|hop| hop.buffer_bytes.is_some_and(|bytes| bytes <= TINY_BUFFER))
}

/// Prints geometric means, part by part, and the greatest ratios.
fn print(evaluation: &Evaluation, set: &Set) {
    println!("{}", evaluation.mechanism);
    for (name, is_part) in PARTS {
        let of_part = evaluation.ratios.iter().zip(&set.scenarios).filter(|(_, drawn)| is_part(drawn));
        let ratios: Vec<_> = of_part.map(|(ratios, _)| *ratios).collect();
        let part = Evaluation { ratios, shares: Vec::new(), ..evaluation.clone() };
        let Some((worst, ..)) = part.greatest().first().copied() else { continue };
        let means = [0, 1, 2].map(|cost| format!("{:.3}", part.geometric_mean(cost))).join("  ");
        println!("  {name:6}  {means}  worst {worst:.2}  loss {:.4}", part.loss());
    }
    if let Some([least, greatest]) = evaluation.shares() {
        println!("  share beside default {least:.2} to {greatest:.2}");
    }
    println!("  loss {:.4}", evaluation.loss());
    for (ratio, place, cost) in evaluation.greatest().into_iter().take(LISTED) {
        println!("  {ratio:.2}  {} of {}", set.networks.costs()[cost].name, set.scenarios[place].description);
    }
}
