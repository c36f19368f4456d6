//! `coapace run`.

use std::sync::Arc;

use coapace_lab::contender::Contender;
use coapace_lab::experiment::Trial;
use coapace_lab::observed;
use coapace_lab::scenario::Scenario;

use super::output::{conduct_with_progress, create, print, remark, write_report};
use crate::Failure;
use crate::arguments::{Arguments, Format, Run};

pub(crate) fn run(arguments: &Arguments, run: &Run) -> Result<(), Failure> {
    if run.each && run.format == Format::Table {
        return Err(Failure::Usage("--each needs --format csv or --format json".to_owned()));
    }
    let files: Vec<_> = [&run.report, &run.pcap, &run.trace].into_iter().flatten().collect();
    if files.iter().enumerate().any(|(place, file)| files[..place].contains(file)) {
        return Err(Failure::Usage("--report, --pcap and --trace need a file each".to_owned()));
    }
    let scenario = Scenario::load(&run.scenario, &run.set)?;
    let contenders = contenders(&run.mechanism, &scenario)?;
    // Files are opened first: what cannot be written is known before the work.
    let mut report = run.report.as_deref().map(create).transpose()?;
    let pcap = run.pcap.as_deref().map(create).transpose()?;
    let trace = run.trace.as_deref().map(create).transpose()?;

    let scenario = Arc::new(scenario);
    if (pcap.is_some() || trace.is_some())
        && let Some(first) = contenders.first()
    {
        observed::write(&scenario, first, 1, pcap, trace)
            .map_err(|error| Failure::Io("cannot write the capture or trace".to_owned(), error))?;
        remark(arguments, &format!("captured: {}, seed 1", first.label));
    }
    let seeds = run.seeds.unwrap_or(scenario.defaults.seeds);
    let trials: Vec<Trial> =
        contenders.into_iter().map(|contender| Trial::new(&scenario, contender, seeds)).collect();
    let results = conduct_with_progress(arguments, &trials);
    if let (Some(file), Some(path)) = (&mut report, &run.report) {
        write_report(file, &scenario.title, &scenario.summary, &results)
            .map_err(|error| Failure::Io(format!("cannot write {}", path.display()), error))?;
        remark(arguments, &format!("report: {}", path.display()));
    }
    print(&results, run.format, run.each)
}

/// Those named, or those of the scenario.
fn contenders(labels: &[String], scenario: &Scenario) -> Result<Vec<Contender>, Failure> {
    let labels = if labels.is_empty() { &scenario.defaults.mechanisms } else { labels };
    let contender = |label: &String| {
        let contender = Contender::parse(label)?;
        contender.fits(scenario).map(|()| contender)
    };
    labels.iter().map(|label| contender(label).map_err(Failure::Usage)).collect()
}
