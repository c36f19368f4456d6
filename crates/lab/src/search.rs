//! A search for the parameters of a mechanism over random scenarios.
//!
//! A [`Set`] of scenarios is drawn from a seed. On each of these scenarios, every published mechanism with random
//! timeouts is measured; the lowest costs are the [baseline](evaluation::CostYardstick). A mechanism is then
//! [evaluated](evaluation::Evaluation) by the ratios of its costs to the baselines. [`Halving`] proposes parameters,
//! and a [`Journal`] stores the measurements.
//!
//! A [`Search`] connects these and measures nothing itself. It returns [pieces](evaluation::SearchPiece) of work, and receives
//! their results from the threads of this process ([`Search::conduct`]) or from another program.
//!
//! The scenarios of published papers are not part of any set, so they can be used to test a result.

pub mod costs;
mod dice;
pub mod evaluation;
pub mod generator;
pub mod halving;
pub mod journal;
pub mod meshes;
pub mod networks;
pub mod space;
pub mod terms;

use std::io;
use std::ops::{ControlFlow, Range};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coapace_scenario::ScenarioError;
use thiserror::Error;

use self::evaluation::{CostYardstick, Evaluation, Measured, SearchPiece, Set};
use self::halving::Halving;
use self::journal::{Journal, SearchConditions};
use self::terms::SearchTerms;
use crate::lists::distinct;
use coapace_run::workers::make_all;

/// A running search for parameters, or a comparison of given mechanisms.
#[derive(Debug)]
pub struct Search {
    terms: SearchTerms,
    set: Arc<Set>,
    /// The path of the journal; empty without one.
    path: PathBuf,
    journal: Journal,
    /// Proposes mechanisms; `None` if the given mechanisms are only compared.
    halving: Option<Halving>,
    /// The mechanism and the number of scenarios of each evaluation that the search has requested and received, in sequence. An
    /// evaluation that is requested twice is listed twice.
    evaluated: Vec<(String, usize)>,
    found: Vec<Evaluation>,
    batch: PieceBatch,
}

/// A batch of pieces of work that must be measured before the search continues, and the journal lines with their
/// results.
#[derive(Debug, Default)]
struct PieceBatch {
    pieces: Arc<[SearchPiece]>,
    measured: Vec<Option<Measured>>,
    /// The lines in sequence, each with the range of its pieces.
    lines: Vec<(PendingLine, Range<usize>)>,
    /// The number of lines that are already written to the journal.
    written: usize,
    /// The number of runs of the pieces that are not measured yet.
    left: usize,
    /// The number of runs of the whole search up to the end of this batch.
    end: usize,
}

/// A line to be written to a journal.
#[derive(Debug)]
enum PendingLine {
    Yardstick,
    Evaluation(String),
}

/// The reason why a search cannot start or continue.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The settings are invalid.
    #[error("{0}")]
    Usage(String),
    /// A random scenario is invalid, which is a bug of the generator.
    #[error("{0}")]
    Scenario(ScenarioError),
    /// The journal cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    Journal(PathBuf, io::Error),
    /// The check of a run failed, or the progress callback returned an error.
    #[error("{0}")]
    Failed(io::Error),
}

impl Search {
    /// Starts a search, or continues the search whose journal is at this path. `version` identifies the program, because
    /// another version may measure differently.
    ///
    /// # Errors
    /// Returns the reason why the search cannot start.
    pub fn open(terms: SearchTerms, version: &str, journal: Option<&Path>) -> Result<Self, SearchError> {
        let space = terms.space().map_err(SearchError::Usage)?;
        // The seed decides the set, so a continued search has the same scenarios.
        let set = Set::draw(terms.networks, terms.generator_seed, terms.scenarios)
            .map_err(SearchError::Scenario)?;
        let scenarios = set.scenarios.len();
        let conditions = SearchConditions {
            commit: version.to_owned(),
            networks: terms.networks,
            generator_seed: terms.generator_seed,
            scenarios,
        };
        let path = journal.unwrap_or(Path::new("")).to_owned();
        let journal =
            Journal::open(journal, &conditions).map_err(|error| SearchError::Journal(path.clone(), error))?;
        let mut search = Self {
            halving: space.map(|space| Halving::new(space, scenarios, terms.seed)),
            set: set.into(),
            terms,
            path,
            journal,
            evaluated: Vec::new(),
            found: Vec::new(),
            batch: PieceBatch::default(),
        };
        // The journal may have results already, up to the whole search.
        search.advance();
        Ok(search)
    }

    /// Returns the set of scenarios.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Returns the settings of the search.
    pub fn terms(&self) -> &SearchTerms {
        &self.terms
    }

    /// Returns the journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Closes the journal, so that another search can continue with it. Later measurements of this search are not written.
    pub fn close(&mut self) {
        self.journal.close();
    }

    /// Returns the results: the evaluation of each compared mechanism, or of each new best mechanism at the end of a bracket,
    /// in sequence.
    pub fn found(&self) -> &[Evaluation] {
        &self.found
    }

    /// Returns the evaluation with the smallest loss among the results.
    pub fn best(&self) -> Option<&Evaluation> {
        self.found.iter().min_by(|a, b| a.loss().total_cmp(&b.loss()))
    }

    /// Returns every evaluation that this search has requested, in sequence. The journal may contain further
    /// evaluations.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        let all = distinct(&self.evaluated).into_iter();
        all.filter_map(|(label, scenarios)| self.journal.evaluation(label, *scenarios))
    }

    /// Returns the pieces to be measured before the search continues; none if it has ended. If the journal lacks a line of the
    /// last batch, all pieces of that line are returned again.
    ///
    /// The pieces are in the sequence of the journal's lines. A program that measures them in about this sequence loses little
    /// if it is killed.
    pub fn ask(&mut self) -> Arc<[SearchPiece]> {
        let left = self.journal.yardsticks().len()..self.set.scenarios.len();
        let mut lines: Vec<(PendingLine, Vec<SearchPiece>)> =
            left.map(|place| (PendingLine::Yardstick, CostYardstick::pieces(place))).collect();
        // An evaluation needs all yardsticks, so these are measured first.
        if lines.is_empty() {
            let (labels, scenarios) = self.wanted();
            // The journal may have them from an earlier search, or from an earlier bracket.
            let missing = labels.into_iter().filter(|it| self.journal.evaluation(it, scenarios).is_none());
            lines = missing
                .map(|label| {
                    let pieces = self.set.pieces(&label, scenarios);
                    (PendingLine::Evaluation(label), pieces)
                })
                .collect();
        }
        let mut batch = PieceBatch { end: self.end(), ..PieceBatch::default() };
        let mut pieces = Vec::new();
        for (line, more) in lines {
            let first = pieces.len();
            pieces.extend(more);
            batch.lines.push((line, first..pieces.len()));
        }
        batch.measured = vec![None; pieces.len()];
        batch.left = pieces.iter().map(|piece| self.runs(piece)).sum();
        batch.pieces = pieces.into();
        self.batch = batch;
        self.batch.pieces.clone()
    }

    /// Returns the pieces of the last batch.
    pub fn asked(&self) -> &[SearchPiece] {
        &self.batch.pieces
    }

    /// Receives the result of piece number `place` of the last batch. The journal gets a line as soon as this line is complete
    /// and all lines before it are written, so results may come in any sequence.
    ///
    /// # Errors
    /// Errors of the journal.
    pub fn tell(&mut self, place: usize, measured: Measured) -> Result<(), SearchError> {
        // Another program may return a number that the batch does not have.
        let Some(slot) = self.batch.measured.get_mut(place) else { return Ok(()) };
        // Another program may return a piece twice.
        if slot.replace(measured).is_none() {
            self.batch.left -= self.runs(&self.batch.pieces[place]);
        }
        while let Some((line, range)) = self.batch.lines.get(self.batch.written)
            && let Some(measured) =
                self.batch.measured[range.clone()].iter().copied().collect::<Option<Vec<_>>>()
        {
            let kept = match line {
                PendingLine::Yardstick => self.journal.add_yardstick(CostYardstick::of(&measured)),
                PendingLine::Evaluation(label) => {
                    // Pieces for shares follow the scenarios for costs, and have no baseline.
                    let scenarios = measured.len().min(self.set.scenarios.len());
                    let yardsticks = &self.journal.yardsticks()[..scenarios];
                    let evaluation = Evaluation::of(label, yardsticks, &measured);
                    self.journal.add(evaluation)
                }
            };
            kept.map_err(|error| SearchError::Journal(self.path.clone(), error))?;
            self.batch.written += 1;
            self.advance();
        }
        Ok(())
    }

    /// Returns the number of runs that are done, and the most runs of the whole search. Runs with results in the
    /// journal count as done. If a rung, a step of `Halving`, has fewer points than its maximum, the runs that it saves
    /// count as done, too.
    pub fn progress(&self) -> (usize, usize) {
        (self.batch.end - self.batch.left, self.batches().iter().sum())
    }

    /// Measures on `jobs` threads (0: one for each core) until the search has ended or `stop` is true. Returns whether it has
    /// ended.
    ///
    /// `check` is called after each piece in its thread. If it fails, the piece is not kept, and the search ends. `progress` is
    /// called in this thread before each batch and after each piece.
    ///
    /// # Errors
    /// Errors of the journal, of `check` or of `progress`, and an unknown mechanism.
    ///
    /// # Panics
    /// Panics if a run does.
    pub fn conduct(
        &mut self,
        jobs: usize,
        stop: &AtomicBool,
        check: fn() -> io::Result<()>,
        progress: &mut dyn FnMut(&Self) -> io::Result<()>,
    ) -> Result<bool, SearchError> {
        loop {
            // A new batch each time, because the next places of a search depend on the losses of the last.
            let pieces = self.ask();
            progress(self).map_err(SearchError::Failed)?;
            if pieces.is_empty() {
                return Ok(true);
            }
            let (set, count) = (self.set.clone(), pieces.len());
            let make = move |place: usize| {
                let measured = set.measure(&pieces[place]).map_err(SearchError::Usage);
                (place, measured.and_then(|it| check().map(|()| it).map_err(SearchError::Failed)))
            };
            let mut failed = None;
            let ended = make_all(count, jobs, stop, make, &mut |(place, measured)| {
                let kept = measured.and_then(|measured| {
                    self.tell(place, measured)?;
                    progress(self).map_err(SearchError::Failed)
                });
                // `make_all` passes nothing more after a break, so the first failure is kept.
                failed = kept.err();
                if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            // The reason first: an error ends the threads before all pieces are measured.
            failed.map_or(Ok(()), Err)?;
            ended.unwrap_or_else(|panic| resume_unwind(panic));
            // Interrupted: `stop` became true before the batch was over.
            if self.batch.left > 0 {
                return Ok(false);
            }
        }
    }

    /// Returns the mechanisms whose evaluations the search waits for, each once, and the number of scenarios on which
    /// they are evaluated. Returns no mechanism if the search has ended.
    fn wanted(&self) -> (Vec<String>, usize) {
        let Some(halving) = &self.halving else {
            return (distinct(self.terms.mechanisms.iter().cloned()), self.set.scenarios.len());
        };
        let (places, scenarios) = halving.ask();
        // `Halving` always proposes another bracket, so the number of brackets ends the search here.
        let is_over = halving.over().0 >= self.terms.brackets;
        let places = places.iter().filter(|_| !is_over);
        (places.map(|place| halving.space().label(place)).collect(), scenarios)
    }

    /// Advances the search as far as the journal has results.
    fn advance(&mut self) {
        let all = self.set.scenarios.len();
        if self.halving.is_none() {
            while let Some(label) = self.terms.mechanisms.get(self.found.len()) {
                let Some(evaluation) = self.journal.evaluation(label, all).cloned() else { return };
                self.evaluated.push((label.clone(), all));
                self.found.push(evaluation);
            }
            return;
        }
        loop {
            let (labels, scenarios) = self.wanted();
            let of = |label: &String| self.journal.evaluation(label, scenarios).map(Evaluation::loss);
            // An evaluation that is missing, or no mechanism at all because the search is over, ends the loop.
            let losses: Option<Vec<f64>> = labels.iter().map(of).collect();
            let (Some(halving), Some(losses)) = (&mut self.halving, losses.filter(|it| !it.is_empty()))
            else {
                return;
            };
            if halving.tell(&losses) {
                let label = halving.best().map(|(_, place)| halving.space().label(place));
                let best = label.and_then(|label| self.journal.evaluation(&label, all));
                self.found.extend(best.cloned());
            }
            self.evaluated.extend(labels.into_iter().map(|label| (label, scenarios)));
        }
    }

    /// Returns the number of runs for a piece.
    fn runs(&self, piece: &SearchPiece) -> usize {
        self.set.drawn(piece.place).map_or(0, |drawn| drawn.seeds as usize)
    }

    /// Returns the number of runs for the evaluation of a mechanism on the first `scenarios` scenarios.
    fn runs_on(&self, scenarios: usize) -> usize {
        let shared = self.set.shared.iter().filter(|_| scenarios == self.set.scenarios.len());
        self.set.scenarios.iter().take(scenarios).chain(shared).map(|drawn| drawn.seeds as usize).sum()
    }

    /// Returns the largest number of runs of each batch of the search: first the baselines, and then each rung of each
    /// bracket, or the comparison.
    fn batches(&self) -> Vec<usize> {
        let all = self.set.scenarios.len();
        let once: usize = self.set.scenarios.iter().map(|drawn| drawn.seeds as usize).sum();
        let rung = |(places, scenarios)| places * self.runs_on(scenarios);
        let others = match &self.halving {
            None => vec![self.terms.mechanisms.len() * self.runs_on(all)],
            Some(_) => Halving::rungs(all).map(rung).repeat(self.terms.brackets as usize),
        };
        [vec![CostYardstick::mechanisms().len() * once], others].concat()
    }

    /// Returns the largest number of runs from the beginning of the search to the end of the next batch.
    fn end(&self) -> usize {
        // Batch 0 has the baselines, and each later one a rung or the comparison.
        let over = match &self.halving {
            _ if self.journal.yardsticks().len() < self.set.scenarios.len() => 0,
            None => 1,
            Some(halving) => {
                let (brackets, rungs) = halving.over();
                1 + brackets as usize * Halving::RUNGS + rungs
            }
        };
        self.batches().iter().take(over + 1).sum()
    }
}
