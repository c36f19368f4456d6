//! The playground: the laboratory and the advice from captures for a page in a browser, which runs them without a server.
//!
//! Most functions take texts and return JSON. Each error is one line. Results are the same as with the command
//! `coapace`: the same crates make them, and `tests/check-playground` compares the hashes.
//!
//! * A *knob* is a short name for settings of a scenario; its *steps* are the values that a slider offers.
//! * A *gathering* collects the results of several mechanisms, which workers make, and summarises them.
//! * A *ladder* is the sequence of the messages of one exchange between its two hosts, over time.

mod advising;
mod catalogue;
mod gathering;
mod knobs;
mod ladder;
mod opened;
mod running;
// Mechanisms look as they do in reports.
#[path = "../../report/src/style.rs"]
#[allow(dead_code, reason = "the page has a style sheet of its own")]
mod style;

use serde::Serialize;
#[cfg(target_family = "wasm")]
use wasm_bindgen::prelude::wasm_bindgen;

pub use gathering::Gathering;

/// Returns the built-in scenarios with their texts, the mechanisms with their colours, and the version.
///
/// # Errors
/// An error if a built-in scenario cannot be read.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn catalogue() -> Result<String, String> {
    json(&catalogue::Catalogue::new()?)
}

/// Returns a description of a scenario, with its knobs and the steps of their sliders. `name` is the name for results,
/// and `text` is the scenario file.
///
/// # Errors
/// Returns one line that names the wrong line of the file.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn describe(name: &str, text: &str) -> Result<String, String> {
    json(&catalogue::Description::of(name, text)?)
}

/// Applies settings to a scenario. `settings` is a JSON list of `[key, value]`. Returns the hash of the resulting
/// scenario, and its file.
///
/// # Errors
/// Returns one line that names the wrong line or setting.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn check(name: &str, text: &str, settings: &str) -> Result<String, String> {
    json(&catalogue::Checked::of(&*opened::scenario(name, text, settings)?))
}

/// Makes one run, and returns its result. If `series` is true, the result has the RTO, queues and transfers over time,
/// and the film of a mesh.
///
/// # Errors
/// Returns one line if the scenario cannot be read or the mechanism does not fit it.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn run(
    name: &str,
    text: &str,
    settings: &str,
    mechanism: &str,
    seed: u32,
    series: bool,
) -> Result<String, String> {
    json(&running::OneRun::make(&*opened::scenario(name, text, settings)?, mechanism, seed, series)?)
}

/// Makes one run, and returns the messages of some of its exchanges as a ladder.
///
/// # Errors
/// Returns the errors of [`run`].
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn ladder(name: &str, text: &str, settings: &str, mechanism: &str, seed: u32) -> Result<String, String> {
    json(&ladder::Ladder::of(&*opened::scenario(name, text, settings)?, mechanism, seed)?)
}

/// Reads a capture, pcap or pcapng. Returns the findings, how each mechanism would have done, and both as text.
/// `options` is a JSON object with `ports` (further ports of servers) and `side` (`client`, `server`, `middle` or
/// null).
///
/// # Errors
/// Returns one line if the bytes are no capture or show no exchange.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn advise(name: &str, bytes: &[u8], options: &str) -> Result<String, String> {
    json(&advising::Advice::of(name, bytes, options)?)
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// Makes one run, and returns its packets as pcapng.
///
/// # Errors
/// Returns the errors of [`run`].
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub fn capture(
    name: &str,
    text: &str,
    settings: &str,
    mechanism: &str,
    seed: u32,
) -> Result<Vec<u8>, String> {
    running::packets(&*opened::scenario(name, text, settings)?, mechanism, seed)
}
