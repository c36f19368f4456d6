//! One run of a mechanism, and its result.

use coapace_run::contender::Contender;
use coapace_run::measured::{Film, RunResult};
use coapace_run::{Observe, capture, run};
use coapace_scenario::Scenario;
use serde::Serialize;

/// The result of a run, and the film of its mesh, if there is one.
#[derive(Serialize)]
pub(crate) struct OneRun {
    run: RunResult,
    film: Option<Box<Film>>,
}

impl OneRun {
    pub(crate) fn make(
        scenario: &Scenario,
        mechanism: &str,
        seed: u32,
        has_series: bool,
    ) -> Result<Self, String> {
        let contender = Contender::fitting(mechanism, scenario)?;
        let observe = if has_series { Observe::Series } else { Observe::Totals };
        let mut run = run(scenario, &contender, seed.into(), observe);
        // Without a mesh there is nothing to draw.
        let film = run.film.take().filter(|film| !film.nodes.is_empty() && !film.frames.is_empty());
        Ok(Self { run, film })
    }
}

/// Makes a run of `mechanism`, and returns its packets as pcapng.
pub(crate) fn packets(scenario: &Scenario, mechanism: &str, seed: u32) -> Result<Vec<u8>, String> {
    let contender = Contender::fitting(mechanism, scenario)?;
    let mut packets = Vec::new();
    capture::write(scenario, &contender, seed.into(), Some(&mut packets), None)
        .map_err(|error| error.to_string())?;
    Ok(packets)
}
