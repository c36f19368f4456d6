//! Coexistence of every two mechanisms, and rankings.

use std::path::PathBuf;
use std::sync::Arc;

use coapace_dataset::{VERSION, pack_results, unpack_results};
use coapace_lab::coexistence::{self, Matrix};
use coapace_lab::grid::varied;
use coapace_lab::papers::References;
use coapace_lab::rank::{Hindsight, Ranking as Ranked, Suite, SuiteCell};
use coapace_lab::results::CellResult;
use coapace_report::{CellGroup, Report};
use coapace_run::contender::Contender;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failing::checked;
use crate::running::{figure, write_figures, write_page};
use crate::scenario::{Scenario, there};
use crate::table::Table;
use crate::watching::{RunSettings, conduct};

/// Lets every pair of the mechanisms share the network of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, mechanisms, run_settings))]
pub(crate) fn coexist(
    py: Python<'_>,
    scenario: Scenario,
    mechanisms: Vec<String>,
    run_settings: RunSettings<'_>,
) -> PyResult<Coexistence> {
    let contenders = Contender::paired(&mechanisms, &scenario.read).map_err(PyValueError::new_err)?;
    let trials = coexistence::trials(&scenario.read, &contenders, coexistence::SEEDS);
    let trials = trials.map_err(PyValueError::new_err)?;
    let references = References::of(&trials);
    let results = conduct(py, trials, &run_settings)?;
    Ok(Coexistence { matrix: Matrix::of(&results), results: results.into(), references })
}

/// Restores pickled results of pairs.
#[pyfunction]
pub(crate) fn restore_coexistence(version: &str, text: &str) -> PyResult<Coexistence> {
    // The version is checked first, because the text of another version may mean something else.
    checked(version)?;
    let (results, references) = unpack_results(text).map_err(PyValueError::new_err)?;
    Ok(Coexistence { matrix: Matrix::of(&results), results: results.into(), references })
}

/// The results of every pair of mechanisms.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Coexistence {
    matrix: Matrix,
    results: Arc<[CellResult]>,
    /// The published results and the bounds that they are compared with.
    references: References,
}

impl Coexistence {
    fn report(&self) -> Report {
        let groups = CellGroup::by_conditions(self.matrix.alone.clone());
        let title = "Coexistence".to_owned();
        let coexistence = Some(self.matrix.clone());
        let references = self.references.clone();
        Report { title, commit: VERSION.to_owned(), groups, references, coexistence, ..Report::default() }
    }
}

#[pymethods]
impl Coexistence {
    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        same(&self.results, &other.results)
    }

    /// Pickled as the results of all runs.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, String))> {
        // The matrix is not packed: it follows from the results.
        let text = pack_results(&self.results, &self.references).map_err(PyValueError::new_err)?;
        Ok((py.import("coapace._native")?.getattr("restore_coexistence")?, (VERSION, text)))
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

    /// A row for each mechanism with each other.
    fn pairs(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::pairs(&self.matrix)))
    }

    /// The matrix in sentences.
    fn sentences(&self) -> Vec<String> {
        self.matrix.sentences()
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

/// A scenario, or the name or the path of a suite or a scenario.
#[derive(FromPyObject)]
pub(crate) enum SuiteOrScenario {
    Loaded(Scenario),
    Named(String),
}

/// Ranks mechanisms over suites and scenarios.
#[pyfunction]
#[pyo3(signature = (entries, mechanisms, run_settings))]
pub(crate) fn rank(
    py: Python<'_>,
    entries: Vec<SuiteOrScenario>,
    mechanisms: Vec<String>,
    run_settings: RunSettings<'_>,
) -> PyResult<Ranking> {
    let loaded = entries.iter().filter_map(|entry| match entry {
        SuiteOrScenario::Loaded(scenario) => Some(&scenario.settings),
        SuiteOrScenario::Named(_) => None,
    });
    let settings: Vec<_> = loaded.collect();
    // Cells are named by the settings in which the scenarios differ.
    let varied = varied(&settings);
    // The iterator is lazy: nothing is read before the loop below has looked for the files.
    let suites = entries.iter().map(|entry| match entry {
        SuiteOrScenario::Loaded(scenario) => Ok(Suite::of(&scenario.showing(&varied))),
        SuiteOrScenario::Named(word) => Suite::load(std::slice::from_ref(word), &[]),
    });
    // A missing file is an `OSError`, so files are looked for before the suites are read.
    for entry in &entries {
        if let SuiteOrScenario::Named(word) = entry {
            there(word)?;
        }
    }
    let suite = Suite::joined(suites).map_err(PyValueError::new_err)?;
    let contenders = Ranked::contenders(&mechanisms).map_err(PyValueError::new_err)?;
    let trials = suite.trials(&contenders).map_err(PyValueError::new_err)?;
    let results = conduct(py, trials, &run_settings)?;
    Ok(Ranking::new(suite, results.into()))
}

/// A cell of a suite in pickled form: the name and the text of its scenario, its seeds, and its metrics.
type CellOfPython = (String, String, u32, Vec<String>);

/// The content of a pickled ranking: the version, the title and summary of its suite, its cells, and the text of its results.
type PickledRanking = (&'static str, (String, String), Vec<CellOfPython>, String);

/// Restores a pickled ranking.
#[pyfunction]
pub(crate) fn restore_ranking(
    version: &str,
    heading: (String, String),
    cells: Vec<CellOfPython>,
    text: &str,
) -> PyResult<Ranking> {
    checked(version)?;
    let cell = |(name, text, seeds, metrics): CellOfPython| {
        // All settings are made in the text, so none is added.
        let read = coapace_scenario::Scenario::parse(&name, &name, &text, &[]);
        let scenario = Arc::new(read.map_err(|error| error.to_string())?);
        let metrics = metrics.iter().map(|metric| metric.parse()).collect::<Result<_, String>>()?;
        Ok(SuiteCell { scenario, seeds, metrics })
    };
    let cells = cells.into_iter().map(cell).collect::<Result<_, String>>().map_err(PyValueError::new_err)?;
    let (title, summary) = heading;
    let (results, _) = unpack_results(text).map_err(PyValueError::new_err)?;
    Ok(Ranking::new(Suite { title, summary, cells }, results.into()))
}

/// Returns whether all results are equal.
fn same(one: &[CellResult], other: &[CellResult]) -> PyResult<bool> {
    // A pickle leaves out films, and an unpickled copy has to be equal. So packed texts are compared.
    let packed = |results| pack_results(results, &References::default()).map_err(PyValueError::new_err);
    Ok(packed(one)? == packed(other)?)
}

/// A ranking of mechanisms over many conditions.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Ranking {
    ranked: Ranked,
    suite: Suite,
    results: Arc<[CellResult]>,
}

impl Ranking {
    fn new(suite: Suite, results: Arc<[CellResult]>) -> Self {
        // The ranking takes its results, and a pickle needs them, too.
        Self { ranked: Ranked::of(&suite, results.to_vec()), suite, results }
    }

    fn report(&self) -> Report {
        let (title, subtitle) = (self.suite.title.clone(), self.suite.summary.clone());
        let ranking = Some(self.ranked.clone());
        Report { title, subtitle, commit: VERSION.to_owned(), ranking, ..Report::default() }
    }
}

#[pymethods]
impl Ranking {
    /// The line above the rows of hindsight.
    #[classattr]
    const HINDSIGHT: &str = Hindsight::HEADING;

    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        let scenarios =
            |ranking: &Self| ranking.suite.cells.iter().map(|cell| cell.scenario.hash()).collect::<Vec<_>>();
        // Hashes are compared first, because packing the results takes longer.
        Ok(scenarios(self) == scenarios(other) && same(&self.results, &other.results)?)
    }

    /// Pickled as its suite and the results of all runs.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledRanking)> {
        let text = pack_results(&self.results, &References::default()).map_err(PyValueError::new_err)?;
        let cell = |SuiteCell { scenario, seeds, metrics }: &SuiteCell| {
            let metrics = metrics.iter().map(|metric| metric.name().to_owned()).collect();
            (scenario.name.clone(), scenario.to_toml(), *seeds, metrics)
        };
        let Suite { title, summary, cells } = &self.suite;
        let restore = py.import("coapace._native")?.getattr("restore_ranking")?;
        let heading = (title.clone(), summary.clone());
        Ok((restore, (VERSION, heading, cells.iter().map(cell).collect(), text)))
    }

    /// Writes the page of the command's report.
    fn write_html(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        write_page(py, &self.report(), &path)
    }

    /// A row for each metric of each mechanism in each cell.
    fn ratios(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::ratios(&self.ranked)))
    }

    /// A row for each mechanism.
    fn standings(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::standings(&self.ranked)))
    }

    /// A row for a choice of the best published mechanism in each cell, and a row for a choice among this project's
    /// mechanisms, too.
    fn hindsight(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::hindsight(&self.ranked)))
    }

    /// The mechanism to use, how far it is from the best, and its costs.
    fn advice(&self) -> Option<String> {
        self.ranked.advice()
    }

    /// The names of the charts.
    fn charts(&self) -> Vec<String> {
        self.report().charts()
    }

    /// A chart as a figure of plotly in JSON.
    #[pyo3(signature = (name=None))]
    fn figure(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        py.detach(|| figure(&self.report(), name))
    }
}
