//! `coapace reproduce --check`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use coapace_dataset::artifact::{
    ArtefactFile, MANIFEST, METADATA, Manifest, ManifestCell, ReproductionRequest, SUMS, differing_files,
    differing_values, rows, verify,
};
use coapace_dataset::read_parquet;
use coapace_lab::experiment::{Trial, cells};
use coapace_lab::papers::{Paper, References};
use coapace_report::Report;

use super::artifact::{Artifact, program};
use super::output::{Conducted, conduct, set_seeds};
use super::reproduce::{left_out, others, paper_report};
use crate::arguments::{Arguments, seeds};
use crate::shown::remark;
use crate::{COMMIT, Failure};

/// The maximum number of differences that are printed in full.
const SHOWN: usize = 5;

pub(crate) fn repeat(arguments: &Arguments, folder: &Path) -> Result<(), Failure> {
    let manifest = read(folder)?;
    let here = program();
    if manifest.program == here {
        remark(
            arguments,
            &format!("files: written by the same version of this program, coapace {}", here.words()),
        );
    } else {
        // Another version may have other results by right, so the difference is named before they are compared.
        let other = format!("recorded by coapace {}, repeated by {}", manifest.program.words(), here.words());
        writeln!(io::stdout().lock(), "another program: {other}")?;
    }
    let wrong = |error| Failure::Input(format!("{}: {error}", folder.join(MANIFEST).display()));
    let (trials, references) = planned(&manifest.request).map_err(wrong)?;
    refuse_other_cells(&manifest, &trials)?;
    let mut conducted = conduct(arguments, &trials, references, None)?;
    if !conducted.is_complete() {
        return conducted.end();
    }
    let runs = manifest.runs();
    let differing = manifest.differing_runs(&conducted.results);
    refuse(&differing, &format!("{} of {runs} runs differ", differing.len()))?;
    compare_values(folder, &conducted)?;
    // Files are compared last: if runs or values differ, those are the better explanation.
    let again = made_again(&manifest, &trials, &mut conducted)?;
    let failed = |error| Failure::Io(format!("cannot compare {}", folder.display()), error);
    let mut differing = differing_files(folder, &again).map_err(failed)?;
    // The metadata may be edited for publication, for example to add authors.
    let is_edited = differing.iter().any(|file| file.path() == METADATA);
    differing.retain(|file| file.path() != METADATA);
    let files = again.len() - usize::from(is_edited);
    let message = format!("every run is identical, but {} of {files} files differ", differing.len());
    refuse(&differing, &message)?;
    let mut out = io::stdout().lock();
    writeln!(out, "identical: {runs} runs, every event and every value")?;
    let compared = again.iter().map(|file| file.path.as_str()).filter(|path| !is_edited || *path != METADATA);
    writeln!(out, "identical byte for byte: {}", listed(compared))?;
    writeln!(out, "taken as recorded: the command line, the program and the moment of writing")?;
    if is_edited {
        writeln!(out, "not compared: {METADATA}, which was edited")?;
    }
    Ok(())
}

/// Regenerates every file of the artefact in memory. Returns their hashes.
fn made_again(
    manifest: &Manifest,
    trials: &[Trial],
    conducted: &mut Conducted,
) -> Result<Vec<ArtefactFile>, Failure> {
    let request = &manifest.request;
    let paper = Paper::named(&request.paper).map_err(Failure::Input)?;
    let source = paper.source().map_err(Failure::Input)?;
    let quick = request.quick.then(|| left_out(paper)).transpose()?;
    let mut artifact = Artifact::again(manifest);
    artifact.add_results(paper, trials, conducted)?;
    conducted.references.sort_worst_first(&mut conducted.results);
    let report = Report {
        command: manifest.command.clone(),
        commit: manifest.program.commit.clone(),
        ..paper_report(&source, quick.as_deref(), conducted)
    };
    artifact.finish(request, &source, &report)
}

/// Formats a list of files. Files of scenarios are only counted, because there may be hundreds.
fn listed<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let (scenarios, mut others): (Vec<_>, Vec<_>) = paths.partition(|path| path.starts_with("scenarios/"));
    others.sort_unstable();
    format!("{}, and {} files in scenarios/", others.join(", "), scenarios.len())
}

/// Reads the manifest of an artefact after verifying all its files.
fn read(folder: &Path) -> Result<Manifest, Failure> {
    let damages = verify(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::Input(format!("{} is an incomplete artefact: it lacks {SUMS}", folder.display()))
        }
        _ => Failure::Io(format!("cannot check {}", folder.join(SUMS).display()), error),
    })?;
    refuse(&damages, "the artefact is damaged, or was edited")?;
    let path = folder.join(MANIFEST);
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::Io(format!("cannot read {}", path.display()), error))?;
    Manifest::read(&text).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// Returns the trials that the recorded arguments of an artefact ask for, and the published values.
fn planned(request: &ReproductionRequest) -> Result<(Vec<Trial>, References), String> {
    let range = request.seeds.as_deref().map(seeds).transpose()?;
    let (mut trials, references) =
        Paper::named(&request.paper)?.trials(request.quick, &others(&request.mechanisms)?)?;
    set_seeds(&mut trials, range);
    Ok((trials, references))
}

/// Ends the command before the runs if this program would run other cells than the recorded ones.
fn refuse_other_cells(manifest: &Manifest, trials: &[Trial]) -> Result<(), Failure> {
    let key = |cell: &ManifestCell| (cell.scenario_hash.clone(), cell.mechanism.clone());
    let planned: Vec<_> = cells(trials).iter().map(ManifestCell::of).collect();
    let lacking = |these: &[ManifestCell], those: &[ManifestCell], message: &str| -> Vec<String> {
        let known: BTreeSet<_> = those.iter().map(key).collect();
        let alone = these.iter().filter(|cell| !known.contains(&key(cell)));
        alone.map(|cell| format!("{}: {message}", cell.words())).collect()
    };
    let mut differing = lacking(&manifest.cells, &planned, "recorded, but this program does not run it");
    differing.extend(lacking(&planned, &manifest.cells, "run by this program, but not recorded"));
    refuse(&differing, "this program has other scenarios or mechanisms for the paper: nothing was run")
}

/// Compares the tables of cells and of runs with the recorded tables. Fails if a value differs.
fn compare_values(folder: &Path, conducted: &Conducted) -> Result<(), Failure> {
    for (name, each) in [("cells", false), ("runs", true)] {
        let path = folder.join(format!("results/{name}.parquet"));
        let failed = |error| Failure::Io(format!("cannot compare {}", path.display()), error);
        let recorded = read_parquet(&path).map_err(failed)?;
        let repeated = rows(&conducted.results, &conducted.references, each, COMMIT)
            .map_err(|error| failed(io::Error::other(error)))?;
        let differing = differing_values(&recorded, &repeated);
        let message = format!("every run is identical, but {} values of {name} differ", differing.len());
        refuse(&differing, &message)?;
    }
    Ok(())
}

/// Prints the first [`SHOWN`] differences and fails with `message`, if there are any differences.
fn refuse(differences: &[impl Display], message: &str) -> Result<(), Failure> {
    if differences.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    for difference in differences.iter().take(SHOWN) {
        writeln!(out, "{difference}")?;
    }
    if let Some(others) = differences.len().checked_sub(SHOWN).filter(|others| *others > 0) {
        writeln!(out, "… and {others} more")?;
    }
    Err(Failure::Refused(message.to_owned()))
}
