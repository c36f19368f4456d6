//! `coapace new` and `coapace check`: the user's own scenario files.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "lab")]
use coapace_lab::experiment::{Trial, conduct};
#[cfg(feature = "lab")]
use coapace_run::contender::Contender;
use coapace_scenario::{Scenario, Source};

use crate::Failure;

/// The scenario that `coapace new` writes. A comment beside each key explains it.
const START: &str = include_str!("new.toml");

/// Writes a scenario file as a starting point, or a copy of a built-in one or of another file. An existing file is not
/// overwritten.
pub(crate) fn new(name: &Path, from: Option<&str>) -> Result<(), Failure> {
    let text = match from {
        None => START.to_owned(),
        Some(from) => Source::find(from)?.text,
    };
    let path = if name.extension().is_some() { name.to_owned() } else { name.with_extension("toml") };
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::Usage(format!("{} exists; choose another name", path.display())),
        _ => Failure::Io(path.display().to_string(), error),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    let shown = path.display();
    println!("{shown} is written. Edit it, then: coapace check {shown}; coapace run {shown}");
    Ok(())
}

/// Checks scenario files: every key, every choice of a knob, and one run.
pub(crate) fn check(files: &[PathBuf], out: &mut impl Write) -> Result<(), Failure> {
    for file in files {
        let name = file.to_string_lossy();
        // Reading checks the choices of knobs, too: one that is not the default would fail only in a grid, hours later.
        let scenario = Scenario::load(&name, &[])?;
        writeln!(out, "{name}: no mistake")?;
        let knobs: Vec<_> =
            scenario.knob_values().iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        let knobs = if knobs.is_empty() { "none".to_owned() } else { knobs.join(", ") };
        writeln!(
            out,
            "  {} clients, workload {}; knobs: {knobs}",
            scenario.clients.count,
            scenario.workload.kind.word()
        )?;
        for hop in scenario.network.up.iter().chain(&scenario.network.down) {
            if hop.rate.is_some() && hop.buffer_bytes.is_none() {
                writeln!(out, "  hop `{}` has a rate and no buffer_bytes: its queue has no bound", hop.name)?;
            }
        }
        #[cfg(feature = "lab")]
        one_run(scenario, out)?;
    }
    Ok(())
}

/// Makes one run, and prints how its exchanges ended.
#[cfg(feature = "lab")]
fn one_run(scenario: Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let mechanism = scenario.defaults.mechanisms.first().cloned().unwrap_or_else(|| "default".to_owned());
    let contender = Contender::fitting(&mechanism, &scenario).map_err(Failure::Usage)?;
    let trial = Trial::of_totals(&scenario.into(), contender, 1);
    let begun = std::time::Instant::now();
    let results = conduct(&[trial], 1, &|| {});
    let Some(run) = results.first().and_then(|result| result.first_run()) else { return Ok(()) };
    writeln!(
        out,
        "  one run with {mechanism}, seed 1: {} exchanges completed, {} given up, {} retransmissions in {:.1} s; computed in {:.2} s",
        run.completed(),
        run.given_up,
        run.retransmissions,
        run.duration_s,
        begun.elapsed().as_secs_f64(),
    )?;
    if run.completed() == 0 && run.transfers.is_empty() {
        writeln!(out, "  no exchange was completed: look at loss, buffers and the duration")?;
    }
    Ok(())
}
