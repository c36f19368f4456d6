//! Runs of scenarios and of papers, and their results.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coapace_dataset::{VERSION, pack_results, unpack_results};
use coapace_lab::experiment::Trial;
use coapace_lab::grid::varied;
use coapace_lab::lists::distinct;
use coapace_lab::papers::{PAPERS, Paper, References};
use coapace_lab::results::CellResult;
use coapace_report::{CellGroup, Plates, Report};
use coapace_run::contender::Contender;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::failing::{checked, refused_by_system};
use crate::scenario::Scenario;
use crate::table::Table;
use crate::watching::{RunSettings, conduct, watch};

/// Runs the scenarios with the mechanisms, each with all seeds.
#[pyfunction]
#[pyo3(signature = (scenarios, mechanisms, run_settings))]
pub(crate) fn run(
    py: Python<'_>,
    scenarios: Vec<Scenario>,
    mechanisms: Option<Vec<String>>,
    run_settings: RunSettings<'_>,
) -> PyResult<Results> {
    let mut trials = Vec::new();
    let settings: Vec<_> = scenarios.iter().map(|it| &it.settings).collect();
    // Cells are named by the settings in which the scenarios differ.
    let varied = varied(&settings);
    for scenario in &scenarios {
        let read = &scenario.showing(&varied);
        for label in mechanisms.as_ref().unwrap_or(&read.defaults.mechanisms) {
            let contender = contender(label, read)?;
            trials.push(Trial::new(read, contender, read.defaults.seeds));
        }
    }
    let references = References::of(&trials);
    let cells = conduct(py, trials, &run_settings)?;
    Ok(Results { cells: cells.into(), references, paper: None })
}

/// Runs the experiments of a paper, and other mechanisms under all its conditions.
#[pyfunction]
#[pyo3(signature = (key, quick, mechanisms, run_settings))]
pub(crate) fn reproduce(
    py: Python<'_>,
    key: &str,
    quick: bool,
    mechanisms: Vec<String>,
    run_settings: RunSettings<'_>,
) -> PyResult<Results> {
    let paper = Paper::named(key).map_err(PyValueError::new_err)?;
    let others: Result<Vec<_>, _> = mechanisms.iter().map(|label| Contender::parse(label)).collect();
    let others = others.map_err(PyValueError::new_err)?;
    let (trials, references) = paper.trials(quick, &others).map_err(PyValueError::new_err)?;
    let cells = conduct(py, trials, &run_settings)?;
    Ok(Results { cells: cells.into(), references, paper: Some(paper) })
}

/// Returns the key and the source of every paper.
#[pyfunction]
pub(crate) fn papers() -> PyResult<Vec<(&'static str, String)>> {
    let source = |paper: &Paper| {
        paper.source().map(|source| (paper.key, source.source)).map_err(PyValueError::new_err)
    };
    PAPERS.iter().map(source).collect()
}

/// Runs a scenario once, and returns its first `limit` events and the number of all.
#[pyfunction]
pub(crate) fn frames(
    py: Python<'_>,
    scenario: Scenario,
    mechanism: &str,
    seed: u64,
    limit: usize,
) -> PyResult<(Table, u64)> {
    let contender = contender(mechanism, &scenario.read)?;
    let work = move |_: &_, _: &_| coapace_dataset::frames(&scenario.read, &contender, seed, limit);
    let frames = watch(py, work, |_| Ok(()))?;
    let events = frames.as_ref().map_or(0, |frames| frames.events);
    Ok((Table::new(frames.map(|frames| frames.table))?, events))
}

/// Returns the mechanism that `label` names, if it fits the scenario.
fn contender(label: &str, scenario: &coapace_scenario::Scenario) -> PyResult<Contender> {
    Contender::fitting(label, scenario).map_err(PyValueError::new_err)
}

/// Returns a chart as a figure of plotly in JSON.
pub(crate) fn figure(report: &Report, name: Option<&str>) -> PyResult<String> {
    report.figure(name).map_err(PyValueError::new_err)
}

/// Writes the page of a report.
pub(crate) fn write_page(py: Python<'_>, report: &Report, path: &Path) -> PyResult<()> {
    // The file is created inside, so that other threads of Python run while the disk is waited for.
    let write = || report.write_html(BufWriter::new(File::create(path)?));
    py.detach(write).map_err(|error| refused_by_system("cannot write", path, &error))
}

/// Writes charts of a report as files. Returns their number.
pub(crate) fn write_figures(
    py: Python<'_>,
    report: &Report,
    path: &Path,
    (charts, size, titles): (Vec<String>, &str, bool),
) -> PyResult<usize> {
    let size = size.parse().map_err(PyValueError::new_err::<String>)?;
    let plates = Plates { charts, size, titles };
    let written = py.detach(|| report.write_figures(path, &plates));
    written.map_err(|error| refused_by_system("cannot write", path, &error))
}

/// Restores pickled results.
#[pyfunction]
#[pyo3(signature = (version, text, paper))]
pub(crate) fn restore_results(version: &str, text: &str, paper: Option<&str>) -> PyResult<Results> {
    checked(version)?;
    let paper = paper.map(Paper::named).transpose().map_err(PyValueError::new_err)?;
    let (cells, references) = unpack_results(text).map_err(PyValueError::new_err)?;
    Ok(Results { cells: cells.into(), references, paper })
}

/// The content of pickled results: the version, their text, and the key of the paper.
type PickledResults = (&'static str, String, Option<&'static str>);

/// The results of runs.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Results {
    cells: Arc<[CellResult]>,
    /// The published results and the bounds that they are compared with.
    references: References,
    /// The paper whose experiments they are.
    paper: Option<&'static Paper>,
}

impl Results {
    /// Returns the cells in the sequence in which the command judges them. Rankings of equal distance keep their sequence.
    fn worst_first(&self) -> Vec<CellResult> {
        let mut cells = self.cells.to_vec();
        self.references.sort_worst_first(&mut cells);
        cells
    }

    fn report(&self) -> Report {
        let source = self.paper.and_then(|paper| paper.source().ok());
        let names = distinct(self.cells.iter().map(|cell| cell.cell.scenario.as_str()));
        let title = source.map_or_else(|| names.join(", "), |source| source.source);
        let groups = CellGroup::by_conditions(self.cells.to_vec());
        Report {
            title,
            commit: VERSION.to_owned(),
            command: "coapace in Python".to_owned(),
            groups,
            references: self.references.clone(),
            ..Report::default()
        }
    }
}

#[pymethods]
impl Results {
    /// Results are equal if all their values are.
    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        // A pickle leaves out films, and an unpickled copy has to be equal. So packed texts are compared.
        let packed =
            |results: &Self| pack_results(&results.cells, &results.references).map_err(PyValueError::new_err);
        Ok(self.paper.map(|paper| paper.key) == other.paper.map(|paper| paper.key)
            && packed(self)? == packed(other)?)
    }

    /// Pickled as the results of all runs, without films of meshes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledResults)> {
        let text =
            py.detach(|| pack_results(&self.cells, &self.references)).map_err(PyValueError::new_err)?;
        let restore = py.import("coapace._native")?.getattr("restore_results")?;
        Ok((restore, (VERSION, text, self.paper.map(|paper| paper.key))))
    }

    /// Writes charts as files: their names, their size, and whether they have titles.
    fn write_figures(
        &self,
        py: Python<'_>,
        path: PathBuf,
        plates: (Vec<String>, String, bool),
    ) -> PyResult<usize> {
        write_figures(py, &self.report(), &path, (plates.0, &plates.1, plates.2))
    }

    /// Writes the page of the command's report.
    fn write_html(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        write_page(py, &self.report(), &path)
    }

    /// A row for each scenario and mechanism, its seeds pooled.
    fn cells(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::cells(&self.cells, &self.references)))
    }

    /// A row for each run.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::runs(&self.cells, &self.references)))
    }

    /// A row for each client of each run: when it was done, and its exchanges.
    fn clients(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::clients(&self.cells)))
    }

    /// A row for each point of each time series.
    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::series(&self.cells)))
    }

    /// A row for each published value beside the measured one.
    fn values(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::values(&self.cells, &self.references)))
    }

    /// A row for each published ranking.
    fn orders(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::orders(&self.worst_first(), &self.references)))
    }

    /// The agreement with the paper, in a few lines.
    fn summary(&self) -> PyResult<String> {
        let paper = self.paper.ok_or_else(|| PyRuntimeError::new_err("these are not the runs of a paper"))?;
        Ok(paper.summary(&self.worst_first(), &self.references))
    }

    /// The names of the charts.
    fn charts(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.report().charts())
    }

    /// A chart as a figure of plotly in JSON.
    #[pyo3(signature = (name=None))]
    fn figure(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        py.detach(|| figure(&self.report(), name))
    }
}
