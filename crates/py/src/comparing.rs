//! Coexistence of every two mechanisms, and rankings.

use coapace_lab::coexistence::{self, Matrix};
use coapace_lab::contender::Contender;
use coapace_lab::grid::varied;
use coapace_lab::rank::{Hindsight, Ranking as Ranked, Suite};
use coapace_report::{Group, Report};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::running::{figure, set_seeds};
use crate::scenario::Scenario;
use crate::table::Table;
use crate::watching::{Terms, conduct};

/// Lets every two of the mechanisms share the network of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, mechanisms, terms))]
pub(crate) fn coexist(
    py: Python<'_>,
    scenario: Scenario,
    mechanisms: Vec<String>,
    terms: Terms<'_>,
) -> PyResult<Coexistence> {
    let contenders = Contender::named(&mechanisms).map_err(PyValueError::new_err)?;
    let seeds = terms.seeds.unwrap_or(coexistence::SEEDS);
    let mut trials =
        coexistence::trials(&scenario.read, &contenders, seeds).map_err(PyValueError::new_err)?;
    set_seeds(&mut trials, &terms)?;
    let results = conduct(py, trials, &terms)?;
    Ok(Coexistence { matrix: Matrix::of(&results) })
}

/// The results of every pair of mechanisms.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Coexistence {
    matrix: Matrix,
}

impl Coexistence {
    fn report(&self) -> Report {
        let groups = Group::by_conditions(self.matrix.alone.clone());
        Report { groups, coexistence: Some(self.matrix.clone()), ..Report::default() }
    }
}

#[pymethods]
impl Coexistence {
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
pub(crate) enum Entry {
    Loaded(Scenario),
    Named(String),
}

/// Ranks mechanisms over suites and scenarios.
#[pyfunction]
#[pyo3(signature = (entries, mechanisms, terms))]
pub(crate) fn rank(
    py: Python<'_>,
    entries: Vec<Entry>,
    mechanisms: Vec<String>,
    terms: Terms<'_>,
) -> PyResult<Ranking> {
    let loaded = entries.iter().filter_map(|entry| match entry {
        Entry::Loaded(scenario) => Some(&scenario.settings),
        Entry::Named(_) => None,
    });
    let settings: Vec<_> = loaded.collect();
    let varied = varied(&settings);
    let suites = entries.iter().map(|entry| match entry {
        Entry::Loaded(scenario) => Ok(Suite::of(&scenario.showing(&varied))),
        Entry::Named(word) => Suite::load(std::slice::from_ref(word), &[]),
    });
    let suite = Suite::joined(suites).map_err(PyValueError::new_err)?;
    let contenders = Ranked::contenders(&mechanisms).map_err(PyValueError::new_err)?;
    let mut trials = suite.trials(&contenders).map_err(PyValueError::new_err)?;
    set_seeds(&mut trials, &terms)?;
    let results = conduct(py, trials, &terms)?;
    Ok(Ranking { ranking: Ranked::of(&suite, results) })
}

/// Mechanisms over many conditions.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Ranking {
    ranking: Ranked,
}

impl Ranking {
    fn report(&self) -> Report {
        Report { ranking: Some(self.ranking.clone()), ..Report::default() }
    }
}

#[pymethods]
impl Ranking {
    /// The line above the rows of hindsight.
    #[classattr]
    const HINDSIGHT: &str = Hindsight::HEADING;

    /// A row for each figure of each mechanism in each cell.
    fn ratios(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::ratios(&self.ranking)))
    }

    /// A row for each mechanism.
    fn standings(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::standings(&self.ranking)))
    }

    /// A row for what the best mechanism of each cell reaches, and one that may choose those made here, too.
    fn hindsight(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::hindsight(&self.ranking)))
    }

    /// The mechanism to use, how far it is from the best, and what it costs.
    fn advice(&self) -> Option<String> {
        self.ranking.advice()
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
