//! The artefact of `coapace reproduce --artifact`: a directory with the scenarios, the results, the report and their
//! hashes.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use coapace_dataset::artifact::{
    ArtefactFile, Folder, Manifest, ManifestCell, ProgramVersion, ReproductionRequest,
};
use coapace_dataset::{Table, artifact, clients, write_parquet};
use coapace_lab::experiment::Trial;
use coapace_lab::output::{RowFormat, order_rows, write_rows};
use coapace_lab::papers::{Paper, PaperSource};
use coapace_report::Report;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::output::{Conducted, command_line};
use crate::arguments::{Arguments, Reproduce};
use crate::shown::remark;
use crate::{COMMIT, Failure};

/// The text of `README.md` in an artefact.
const README: &str = include_str!("artifact.md");

/// An artefact that is being written, or regenerated for comparison.
pub(super) struct Artifact {
    folder: Folder,
    cells: Vec<ManifestCell>,
    making: Making,
}

/// The command, the program version and the time that an artefact records. A check takes them from the manifest.
struct Making {
    command: String,
    program: ProgramVersion,
    /// The time of writing; `None` to use the time of completion.
    written: Option<String>,
}

impl Artifact {
    /// Creates the folder of an artefact if the command line asks for one.
    pub(super) fn asked(reproduce: &Reproduce) -> Result<Option<Self>, Failure> {
        reproduce.artifact.as_deref().map(Self::create).transpose()
    }

    /// Creates the folder. This happens before the runs, so that an error costs no time.
    fn create(root: &Path) -> Result<Self, Failure> {
        let folder = Folder::create(root).map_err(|error| Failure::cannot_write(root, error))?;
        let making = Making { command: command_line(), program: program(), written: None };
        Ok(Self { folder, cells: Vec::new(), making })
    }

    /// Returns an artefact that is only kept in memory, with the command, the program and the time of a manifest.
    pub(super) fn again(manifest: &Manifest) -> Self {
        let Manifest { command, program, written, .. } = manifest.clone();
        let making = Making { command, program, written: Some(written) };
        Self { folder: Folder::unwritten(), cells: Vec::new(), making }
    }

    /// Writes the scenarios and the results, in the sequence of the trials.
    pub(super) fn add_results(
        &mut self,
        paper: &Paper,
        trials: &[Trial],
        conducted: &Conducted,
    ) -> Result<(), Failure> {
        let Conducted { results, references, .. } = conducted;
        self.cells = results.iter().map(ManifestCell::of).collect();
        let page = paper.markdown(&self.making.command, results, references).map_err(Failure::Input)?;
        // A repetition writes the recorded commit, so that its files can be equal byte for byte.
        let commit = self.making.program.commit.clone();
        self.write(|folder, cells| {
            let mut known = BTreeSet::new();
            for (trial, cell) in trials.iter().zip(cells) {
                let path = cell.scenario_file();
                // Several mechanisms have one scenario, whose files are written once.
                if known.insert(path.clone()) {
                    folder.add(&format!("{path}.toml"), trial.scenario.to_toml().as_bytes())?;
                    folder.add(&format!("{path}.txt"), trial.scenario.canonical().as_bytes())?;
                }
            }
            for (name, each) in [("cells", false), ("runs", true)] {
                folder.add(
                    &format!("results/{name}.csv"),
                    &bytes(|out| write_rows(out, RowFormat::Csv, each, &commit, results, references))?,
                )?;
                let table = artifact::rows(results, references, each, &commit).map_err(io::Error::other)?;
                add_parquet(folder, name, &table)?;
            }
            add_parquet(folder, "clients", &clients(results).map_err(io::Error::other)?)?;
            let orders = bytes(|out| order_rows(&commit, results, references).write(out, RowFormat::Csv))?;
            folder.add("results/orders.csv", &orders)?;
            folder.add("page.md", page.as_bytes())
        })
    }

    /// Writes the rest of the artefact and prints its folder. If runs are missing, only prints that
    /// nothing was written.
    pub(super) fn complete(
        self,
        arguments: &Arguments,
        reproduce: &Reproduce,
        source: &PaperSource,
        report: &Report,
        conducted: &Conducted,
    ) -> Result<(), Failure> {
        if !conducted.is_complete() {
            remark(arguments, "artifact: not written, because the runs are not complete");
            return Ok(());
        }
        self.finish(&request(reproduce), source, report)?;
        let root = reproduce.artifact.as_deref().unwrap_or(Path::new("")).display();
        let runs: usize = conducted.results.iter().map(|result| result.runs.len()).sum();
        let text = format!("artifact: {runs} runs in {root}; coapace reproduce --check DIR repeats them");
        remark(arguments, &text);
        Ok(())
    }

    /// Writes the report and the files that list all others. Returns the hashes of all files.
    pub(super) fn finish(
        mut self,
        request: &ReproductionRequest,
        source: &PaperSource,
        report: &Report,
    ) -> Result<Vec<ArtefactFile>, Failure> {
        let Making { command, program, written } = &self.making;
        let manifest = Manifest {
            format: Manifest::FORMAT,
            title: source.title.clone(),
            source: source.source.clone(),
            command: command.clone(),
            request: request.clone(),
            program: program.clone(),
            written: written.clone().unwrap_or_else(now),
            cells: self.cells.clone(),
        };
        self.write(|folder, _| {
            folder.add("report.html", &bytes(|out| report.write_html(out))?)?;
            folder.add("README.md", readme(&manifest).as_bytes())
        })?;
        let root = self.folder.root().unwrap_or(Path::new("")).to_owned();
        self.folder.finish(&manifest).map_err(|error| Failure::cannot_write(&root, error))
    }

    /// Calls `write` with the folder and the cells. An error gets the name of the folder.
    fn write(
        &mut self,
        write: impl FnOnce(&mut Folder, &[ManifestCell]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Self { folder, cells, .. } = self;
        let root = folder.root().unwrap_or(Path::new("")).to_owned();
        write(folder, cells).map_err(|error| Failure::cannot_write(&root, error))
    }
}

/// Returns the arguments that affect the runs.
fn request(reproduce: &Reproduce) -> ReproductionRequest {
    ReproductionRequest {
        paper: reproduce.paper.clone().unwrap_or_default(),
        quick: reproduce.quick,
        mechanisms: reproduce.mechanism.clone(),
        seeds: reproduce.seeds.map(|seeds| seeds.to_string()),
    }
}

/// Returns the description of this program for the manifest.
pub(super) fn program() -> ProgramVersion {
    ProgramVersion { version: env!("CARGO_PKG_VERSION").to_owned(), commit: COMMIT.to_owned() }
}

fn add_parquet(folder: &mut Folder, name: &str, table: &Table) -> io::Result<()> {
    folder.add(&format!("results/{name}.parquet"), &bytes(|out| write_parquet(table, out))?)
}

/// Returns the bytes that `write` writes.
fn bytes(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes).map(|()| bytes)
}

/// Returns the present moment in UTC, as in `2026-11-23T10:00:00.000000Z`.
fn now() -> String {
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

fn readme(manifest: &Manifest) -> String {
    let Manifest { title, source, command, program, .. } = manifest;
    let runs = manifest.runs().to_string();
    let (program, paper) = (program.words(), &manifest.request.paper);
    [
        ("{title}", title),
        ("{source}", source),
        ("{command}", command),
        ("{program}", &program),
        ("{paper}", paper),
        ("{runs}", &runs),
    ]
    .iter()
    .fold(README.to_owned(), |text, (place, value)| text.replace(place, value))
}
