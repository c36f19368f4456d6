//! Random meshes: larger, harsher and busier than the meshes of the [generator](super::generator).

use std::fmt::Write;
use std::sync::Arc;

use coapace_scenario::{Scenario, ScenarioError};

use super::dice::Dice;
use super::generator::Drawn;

/// The distance between neighbours in metres.
const SPACING_M: f64 = 10.0;

/// The measured time of a run in seconds.
const MEASURED_S: f64 = 180.0;

/// The number of runs of a scenario.
const SEEDS: u32 = 4;

/// A kind of medium access control (MAC), with its settings in a scenario.
#[derive(Clone, Copy)]
struct MacPreset {
    preset: &'static str,
    /// Further keys of the table of the MAC in the scenario.
    keys: &'static str,
    /// How quickly the MAC carries messages, relative to one that always listens and senses before it sends.
    pace: f64,
}

impl MacPreset {
    const fn new(preset: &'static str, pace: f64) -> Self {
        Self { preset, keys: "", pace }
    }

    /// Returns whether radios sleep most of the time.
    fn sleeps(self) -> bool {
        self.pace < 0.2
    }
}

/// The kinds of medium access control. With the 101 slots of RFC 8180 a node sends at most one frame a second, and hardly a
/// message arrives over several hops; so slotframes have 11 slots.
const MACS: [MacPreset; 8] = [
    MacPreset::new("standard", 1.0),
    MacPreset::new("contiki-2", 1.0),
    MacPreset::new("contiki-2.7", 1.0),
    MacPreset::new("contiki-3", 1.0),
    MacPreset::new("contiki-ng", 1.0),
    MacPreset::new("none", 0.3),
    MacPreset::new("contikimac", 0.1),
    MacPreset { keys: "duty_cycle = { kind = \"tsch\", slotframe = 11 }\n", ..MacPreset::new("tsch", 0.1) },
];

/// Draws mesh number `place` of the set with this `seed`.
///
/// Radios are log-uniform from 10 to 60 (20 in a chain), in grids, chains, dumbbells or anywhere. The range of a radio
/// is 1.05 to 3 times the distance to its neighbours. Loads are log-uniform from 0.2 to 30 kbit/s: from far below to
/// far above the load that the channel around a sink carries over some hops. In some meshes, each client sends again as
/// soon as it has an answer, or many clients send at once.
///
/// # Errors
/// Returns the error of an invalid scenario, which is a bug of this generator.
pub fn draw(seed: u64, place: u32) -> Result<Drawn, ScenarioError> {
    let dice = &Dice::new(seed, "meshes", place);
    let mac = dice.one_of("mac", &MACS);
    // Drawn before the rest of the network, because the start of the flows depends on it.
    let is_rpl = dice.chance("rpl", 0.5);
    // RPL takes time to form routes, and longer where radios sleep.
    let begin_s = match mac.sleeps() {
        _ if !is_rpl => 10.0,
        true => 120.0,
        false => 60.0,
    };
    let mut description = String::new();
    let mut text = format!(
        "title = \"Drawn\"\nsummary = \"Mesh {place} of the set {seed}.\"\nsource = \"drawn\"\n[clients]\nuri_path = \"m\"\n\
         patience = \"{}\"\n[server]\npayload_bytes = 0\ndeduplication = {}\n",
        if dice.chance("patience", 0.5) { "rfc7252" } else { "published" },
        dice.chance("deduplication", 0.5),
    );
    network(dice, mac, is_rpl, &mut text, &mut description);
    let _ = writeln!(
        text,
        "[workload]\nkind = \"flows\"\nduration = \"{} s\"\nwarm_up = \"{begin_s} s\"",
        begin_s + MEASURED_S
    );
    flows(dice, mac.pace, begin_s, &mut text, &mut description);
    text += "[defaults]\nmechanisms = [\"default\"]\n";
    let scenario = Arc::new(Scenario::parse(&format!("mesh-{seed}-{place}"), "drawn.toml", &text, &[])?);
    Ok(Drawn { scenario, defaults_in_four: 0, seeds: SEEDS, description })
}

/// Draws positions, radios, medium access, routing and movement.
fn network(dice: &Dice, mac: MacPreset, is_rpl: bool, text: &mut String, description: &mut String) {
    let kind = dice.one_of("kind", &["grid", "grid", "random", "random", "chain", "dumbbell"]);
    // Radios that sleep do not learn routes as quickly as nodes walk.
    let is_mobile = !mac.sleeps() && dice.chance("mobile", 0.25);
    let mut nodes = dice.log("nodes", 10.0, if kind == "chain" { 20.0 } else { 60.0 }).round();
    let columns = nodes.sqrt().round();
    if kind == "grid" {
        // A grid without a last row that is half empty.
        nodes = columns * (nodes / columns).round();
    }
    let range = match kind {
        // Nodes anywhere need a longer range to be connected.
        "random" => dice.log("range", 2.0, 3.0),
        // A node that walks needs somebody to hear it for some of the time.
        _ if is_mobile => dice.log("range", 1.5, 2.5),
        _ => dice.log("range", 1.05, 2.5),
    } * SPACING_M;
    // `disks_grow` of the scenario refuses interference below the range.
    let interference = range * dice.between("interference", 1.0, 2.0);
    // A radio senses at least what it can receive, and nothing beyond the range of interference.
    let sense = dice.between("sense", range, interference);
    // Without acknowledgements of frames a hop that loses many leaves nothing.
    let most_lost = if mac.preset == "none" { 10.0 } else { 50.0 };
    let lost = if dice.chance("lossy", 0.7) { most_lost * dice.unit("loss") } else { 0.0 };
    let _ = writeln!(
        text,
        "[network.mesh.topology]\nkind = \"{kind}\"\nnodes = {nodes}\nspacing = \"{SPACING_M} m\"\ndraw = {}",
        dice.place()
    );
    if kind == "grid" {
        let _ = writeln!(text, "columns = {columns}");
    }
    let _ = writeln!(
        text,
        "[network.mesh.radio]\npropagation = {{ kind = \"unit-disk\", range = \"{range:.2} m\", interference = \
         \"{interference:.2} m\", sense = \"{sense:.2} m\" }}\ndelivery = [\"{:.2} %\", \"100 %\"]\n\
         [network.mesh.mac]\npreset = \"{}\"\n{}[network.mesh.routing]\nkind = \"{}\"",
        100.0 - lost,
        mac.preset,
        mac.keys,
        if is_rpl { "rpl" } else { "shortest" },
    );
    let _ = write!(
        description,
        "{nodes} radios, {kind}, range {:.1}, MAC {}, {}",
        range / SPACING_M,
        mac.preset,
        if is_rpl { "RPL" } else { "shortest routes" }
    );
    if is_rpl {
        let preset = dice.one_of("rpl preset", &["contiki-3", "contiki-2.7", "contiki-ng", "standard"]);
        let _ = writeln!(text, "preset = \"{preset}\"");
    }
    if lost > 0.0 {
        let _ = write!(description, ", up to {lost:.0} % lost");
    }
    if is_mobile {
        let speed = dice.log("speed", 0.6, 4.0);
        let margin = range * dice.between("margin", 0.0, 1.5);
        let _ = writeln!(
            text,
            "[network.mesh.mobility]\nkind = \"random-waypoint\"\nmax_speed = \"{speed:.2} m/s\"\nmargin = \"{margin:.1} m\""
        );
        let _ = write!(description, ", walking {margin:.0} m out");
    }
}

/// Draws the messages: at intervals, at random times, in periods, many at once, or each as soon as the previous one is
/// answered; and additional non-confirmable messages.
fn flows(dice: &Dice, pace: f64, begin_s: f64, text: &mut String, description: &mut String) {
    // Numbers are keyed by their names, so a new draw leaves the others of a place as they are.
    let payload = dice.log("payload", 8.0, 200.0).round();
    let when_busy = if dice.chance("queue", 0.5) { "queue" } else { "drop" };
    let to = if dice.chance("nearest", 0.3) { "\"nearest\"" } else { "0" };
    let mut flow = |name: &str, keys: &str| {
        let _ = writeln!(
            text,
            "[[workload.flows]]\nname = \"{name}\"\npayload_bytes = {payload}\nto = {to}\nstart = \"{begin_s} s\"\n{keys}"
        );
    };
    // A slower medium access gets less load, so that all kinds are about as busy.
    let load = |name: &str, low: f64, high: f64| (dice.log(name, low, high) * pace * 1000.0).round();
    let pattern = dice.one_of("pattern", &["constant", "poisson", "on-off", "bursts", "backlogged"]);
    match pattern {
        "backlogged" => {
            let share = dice.log("share", 20.0, 100.0).round();
            let response = dice.log("response", 8.0, 200.0).round();
            flow(
                "requests",
                &format!(
                    "pattern = \"backlogged\"\nmethod = \"get\"\nresponse_bytes = {response}\nshare = \"{share} %\""
                ),
            );
            let _ = write!(description, ", requests of {share} %");
        }
        "bursts" => {
            let interval = dice.log("interval", 20.0, 120.0).round();
            let spread = if dice.chance("spread", 0.5) { dice.log("spread s", 0.1, 10.0) } else { 0.0 };
            flow(
                "bursts",
                &format!(
                    "pattern = \"bursts\"\ninterval = \"{interval} s\"\nspread = \"{:.0} ms\"\nwhen_busy = \"{when_busy}\"",
                    spread * 1000.0
                ),
            );
            // Bursts alone would measure an idle mesh between them.
            let rate = load("background", 0.2, 6.0);
            flow("background", &format!("pattern = \"poisson\"\nrate = \"{rate} bit/s\""));
            let _ = write!(description, ", bursts each {interval} s and {:.2} kbit/s", rate / 1e3);
        }
        _ => {
            let rate = load("rate", 0.2, 30.0);
            flow(
                "messages",
                &format!("pattern = \"{pattern}\"\nrate = \"{rate} bit/s\"\nwhen_busy = \"{when_busy}\""),
            );
            let _ = write!(description, ", {pattern} {:.2} kbit/s", rate / 1e3);
        }
    }
    if dice.chance("unconfirmed", 0.25) {
        let rate = load("unconfirmed rate", 0.2, 6.0);
        flow("unconfirmed", &format!("pattern = \"poisson\"\nconfirmable = false\nrate = \"{rate} bit/s\""));
        let _ = write!(description, ", {:.2} kbit/s NON", rate / 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_randomly_drawn_mesh_is_valid() {
        for place in 0..600 {
            let drawn = draw(1, place).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!((7..=64).contains(&drawn.scenario.clients.count), "{place}: {}", drawn.description);
        }
    }
}
