//! Random networks: every number of a scenario is drawn.

use std::fmt::Write;
use std::sync::Arc;

use coapace_scenario::{Scenario, ScenarioError};

use super::dice::Dice;

/// The smallest buffer in bytes: four packets of the MTU of 296 bytes.
const SMALLEST_BUFFER: f64 = 4.0 * 296.0;

/// The interval of meshes among the drawn cells: one cell in six is a mesh of radios.
const MESH_EVERY: u32 = 6;

/// A random scenario, and how it is run.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The network and the workload.
    pub scenario: Arc<Scenario>,
    /// How many of four clients have `default` instead of the mechanism: 0, 1 or 2.
    pub defaults_in_four: u32,
    /// The number of runs. Scenarios with few clients have more runs, so that each cell has about as many clients in total.
    pub seeds: u32,
    /// The description of the network and of the workload, in one line.
    pub description: String,
}

/// Draws scenario number `place` of the set with this `seed`.
///
/// Clients are log-uniform from 1 to 1000, rates from 5 kbit/s to 1 Mbit/s, buffers from 0.2 to 20 bandwidth-delay products
/// or never full, round-trip times from 20 ms to 5 s, losses up to 30 % single or in bursts, one way or both.
///
/// # Errors
/// Returns the error of an invalid scenario, which is a bug of this generator.
pub fn draw(seed: u64, place: u32) -> Result<Drawn, ScenarioError> {
    draw_of(&Dice::new(seed, "generator", place), seed, false)
}

/// Draws a bottleneck like [`draw`] for measuring how a mechanism shares. The link loses nothing, its buffer can be full, and
/// half of at least 4 clients have `default`.
///
/// # Errors
/// Returns the error of an invalid scenario, which is a bug of this generator.
pub fn draw_shared(seed: u64, place: u32) -> Result<Drawn, ScenarioError> {
    draw_of(&Dice::new(seed, "shared", place), seed, true)
}

fn draw_of(dice: &Dice, seed: u64, is_shared: bool) -> Result<Drawn, ScenarioError> {
    let place = dice.place();
    let is_mesh = !is_shared && place % MESH_EVERY == MESH_EVERY - 1;
    let clients = match is_mesh {
        // A grid is a square, and one of its nodes is the server.
        true if is_grid(dice) => dice.log("mesh clients", 4.0, 25.0).sqrt().round().powi(2) - 1.0,
        true => dice.log("mesh clients", 2.0, 9.0).round(),
        false => dice.log("clients", if is_shared { 4.0 } else { 1.0 }, 1000.0).round(),
    };
    // Many clients have few exchanges each, so that no scenario takes much longer than the others.
    let exchanges = (4000.0 / clients).clamp(10.0, 50.0).round();
    let mut text = format!(
        "title = \"Drawn\"\nsummary = \"Number {place} of the set {seed}.\"\nsource = \"drawn\"\n\
         [clients]\npatience = \"published\"\nmax_retransmit = 20\nuri_path = \"hello\"\n"
    );
    let mut description = format!("{clients} clients");
    if !is_mesh {
        // The nodes of a mesh are its clients.
        let _ = writeln!(text, "count = {clients}");
    }
    if dice.chance("spread", 0.5) {
        text += "start_spread = \"1 s\"\n";
    }
    text += "[server]\npayload_bytes = 60\ndeduplication = false\n[workload]\n";
    let is_random = dice.chance("batches", 0.4);
    let _ = writeln!(
        text,
        "kind = \"{}\"\nexchanges = {exchanges}",
        if is_random { "random" } else { "continuous" }
    );
    if is_random {
        description += ", batches";
    }
    if dice.chance("thinks", 0.3) {
        let think_ms = dice.log("think", 100.0, 30_000.0).round();
        let _ = writeln!(text, "think_time = \"{think_ms} ms\"");
        let _ = write!(description, ", think {:.1} s", think_ms / 1e3);
    }
    if is_mesh {
        mesh(dice, clients, &mut text, &mut description);
    } else {
        bottleneck(dice, is_shared, &mut text, &mut description);
    }
    text += "[defaults]\nmechanisms = [\"default\"]\n";
    let scenario = Arc::new(Scenario::parse(&format!("drawn-{seed}-{place}"), "drawn.toml", &text, &[])?);
    let defaults_in_four = match dice.unit("beside") {
        _ if is_shared => 2,
        // Fewer than four clients cannot be divided into quarters.
        _ if clients < 4.0 => 0,
        drawn if drawn < 0.5 => 0,
        drawn if drawn < 0.75 => 1,
        _ => 2,
    };
    if defaults_in_four > 0 {
        let _ = write!(description, ", {} % default", defaults_in_four * 25);
    }
    // About 600 clients in all, between 4 and 60 runs.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 4 to 60")]
    let seeds = (600.0 / clients).clamp(4.0, 60.0) as u32;
    Ok(Drawn { scenario, defaults_in_four, seeds, description })
}

/// Draws a bottleneck at random.
fn bottleneck(dice: &Dice, is_shared: bool, text: &mut String, description: &mut String) {
    let rate = dice.log("rate", 5e3, 1e6).round();
    let rtt_s = dice.log("rtt", 0.02, 5.0);
    let bdp = rate * rtt_s / 8.0;
    let in_bdp = (is_shared || !dice.chance("endless", 0.25)).then(|| dice.log("buffer", 0.2, 20.0));
    // A buffer without an end is larger than all that the clients can have under way.
    let bytes = in_bdp.map_or(100e6, |buffer| (buffer * bdp).max(SMALLEST_BUFFER)).round();
    // A shared bottleneck loses nothing at random, so that shares show the mechanisms and not the luck of a link.
    let loss = (!is_shared && dice.chance("lossy", 0.6)).then(|| 0.3 * dice.unit("loss"));
    // Drawn even if nothing is lost, which costs nothing: draws are independent of each other.
    let in_bursts = dice.chance("bursts", 0.5);
    let ways = dice.unit("ways");
    let buffer = in_bdp.map_or_else(|| "endless".to_owned(), |_| format!("{:.1} BDP", bytes / bdp));
    let _ = write!(description, ", {:.0} kbit/s, RTT {rtt_s:.2} s, buffer {buffer}", rate / 1e3);
    *text += "[network]\nip = \"ipv4\"\nmtu = 296\n";
    // A quarter of lossy links lose upwards only, a quarter downwards only, and half both ways.
    for (way, is_lossy) in [("up", ways < 0.75), ("down", !(0.25..0.5).contains(&ways))] {
        let _ = writeln!(
            text,
            "[[network.{way}]]\nname = \"link\"\nrate = \"{rate} bit/s\"\nbuffer_bytes = {bytes}\ndelay = \"{} us\"\n\
             jitter = [\"0 ms\", \"{} us\"]",
            // Delays take 90 % of the round trip. Jitter adds up to 10 % of it in each direction.
            (rtt_s * 450_000.0).round(),
            (rtt_s * 100_000.0).round(),
        );
        if let Some(loss) = loss.filter(|_| is_lossy) {
            let percent = loss * 100.0;
            let _ = if in_bursts {
                writeln!(
                    text,
                    "loss = {{ good = \"0 %\", bad = \"80 %\", average = \"{percent:.2} %\", mean_bad_packets = 4 }}"
                )
            } else {
                writeln!(text, "loss = \"{percent:.2} %\"")
            };
            let _ = write!(
                description,
                ", {percent:.0} % lost {way}{}",
                if in_bursts { " in bursts" } else { "" }
            );
        }
    }
}

fn is_grid(dice: &Dice) -> bool {
    dice.chance("grid", 0.7)
}

/// Draws a small mesh at random.
fn mesh(dice: &Dice, clients: f64, text: &mut String, description: &mut String) {
    let kind = if is_grid(dice) { "grid" } else { "chain" };
    let delivery = (70.0 + 30.0 * dice.unit("delivery")).round();
    let mac = dice.one_of("mac", &["contiki-2.7", "contiki-3", "contiki-ng", "standard", "none"]);
    // 15 m below reach all eight neighbours in a grid of 10 m, diagonals of 14 m included.
    let nodes = clients + 1.0;
    let _ = writeln!(
        text,
        "[network.mesh.topology]\nkind = \"{kind}\"\nnodes = {nodes}\nspacing = \"10 m\"\n[network.mesh.radio]\n\
         propagation = {{ kind = \"unit-disk\", range = \"15 m\", interference = \"25 m\", sense = \"20 m\" }}\n\
         delivery = \"{delivery} %\"\n[network.mesh.mac]\npreset = \"{mac}\"\n[network.mesh.routing]\nkind = \"shortest\""
    );
    let _ = write!(description, ", {kind} of radios, delivery {delivery} %, MAC {mac}");
}

#[cfg(test)]
mod tests {
    use coapace_scenario::Hash64;

    use super::*;

    #[test]
    fn every_randomly_drawn_scenario_is_valid() {
        for place in 0..600 {
            let drawn = draw(1, place).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!((4..=60).contains(&drawn.seeds));
        }
    }

    #[test]
    fn generator_seed_1_draws_the_scenarios_of_our_documented_results() {
        let hashes = (0..72).flat_map(|place| [draw(1, place), draw_shared(1, place)]);
        let hashes = hashes.flat_map(|drawn| drawn.unwrap().scenario.hash().into_bytes());
        assert_eq!(
            Hash64::of(hashes).to_string(),
            "945c3075e03d0087",
            "docs/search.md and docs/ebb.md have values of this set"
        );
    }
}
