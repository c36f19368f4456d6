//! A search for the parameters of a mechanism over scenarios that are drawn, not chosen.
//!
//! A [`Set`](evaluation::Set) is drawn from a seed. On each of its scenarios, every published mechanism that dithers is measured;
//! the least costs are the [yardstick](evaluation::CostYardstick). A mechanism is then [evaluated](evaluation::Evaluation) by the
//! ratios of its costs to the yardsticks. [`Halving`](halving::Halving) proposes parameters, and a [`Journal`](journal::Journal)
//! keeps the measurements.
//!
//! A [`Search`] ties these together and measures nothing itself. It asks for [pieces](evaluation::SearchPiece), and takes their
//! measurements from the threads of this process ([`Search::conduct`]) or from another program.
//!
//! The scenarios of published papers are not part of any set, so they can test whether a result holds elsewhere.

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

/// A search under way, or a comparison.
#[derive(Debug)]
pub struct Search {
    terms: SearchTerms,
    set: Arc<Set>,
    /// The path of the journal; empty without one.
    path: PathBuf,
    journal: Journal,
    /// Proposes mechanisms; `None` if the mechanisms of the terms are compared.
    halving: Option<Halving>,
    /// The mechanism and the number of scenarios of each evaluation that the search has asked for and has, in their order. An
    /// evaluation that is asked for twice is here twice.
    evaluated: Vec<(String, usize)>,
    found: Vec<Evaluation>,
    batch: PieceBatch,
}

/// The pieces that are measured before the search goes on, and the lines of the journal that they make.
#[derive(Debug, Default)]
struct PieceBatch {
    pieces: Arc<[SearchPiece]>,
    measured: Vec<Option<Measured>>,
    /// The lines, in their order, each with its pieces.
    lines: Vec<(PendingLine, Range<usize>)>,
    /// The number of lines that the journal has.
    written: usize,
    /// The runs of the pieces that are not measured.
    left: usize,
    /// The runs of the whole search up to the end of this batch.
    end: usize,
}

/// A line that a journal is to have.
#[derive(Debug)]
enum PendingLine {
    Yardstick,
    Evaluation(String),
}

/// The reason why a search cannot begin or go on.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The terms cannot be searched.
    #[error("{0}")]
    Usage(String),
    /// A scenario cannot be run, which is a mistake of the generator.
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
    /// Begins a search, or goes on with the search whose journal is at this path. `version` names the program, because another
    /// one may measure otherwise.
    ///
    /// # Errors
    /// Returns the reason why it cannot begin.
    pub fn open(terms: SearchTerms, version: &str, journal: Option<&Path>) -> Result<Self, SearchError> {
        let space = terms.space().map_err(SearchError::Usage)?;
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
        search.advance();
        Ok(search)
    }

    /// Returns the scenarios.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Returns the terms.
    pub fn terms(&self) -> &SearchTerms {
        &self.terms
    }

    /// Returns the journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Closes the journal, so that another search may go on with it. Later measurements of this search are not written.
    pub fn close(&mut self) {
        self.journal.close();
    }

    /// Returns the results: the evaluation of each mechanism that is compared, or of each new best mechanism at the end of a
    /// bracket, in their order.
    pub fn found(&self) -> &[Evaluation] {
        &self.found
    }

    /// Returns the evaluation with the least loss of those found.
    pub fn best(&self) -> Option<&Evaluation> {
        self.found.iter().min_by(|a, b| a.loss().total_cmp(&b.loss()))
    }

    /// Returns every evaluation that this search has asked for, in their order. A journal may have others.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        let all = distinct(&self.evaluated).into_iter();
        all.filter_map(|(label, scenarios)| self.journal.evaluation(label, *scenarios))
    }

    /// Returns the pieces to be measured before the search goes on; none if it is over. If the journal lacks a line of the last
    /// batch, all pieces of that line are asked for again.
    ///
    /// The pieces are in the order of the lines of the journal. A program that measures them in about this order loses little when it is
    /// killed.
    pub fn ask(&mut self) -> Arc<[SearchPiece]> {
        let left = self.journal.yardsticks().len()..self.set.scenarios.len();
        let mut lines: Vec<(PendingLine, Vec<SearchPiece>)> =
            left.map(|place| (PendingLine::Yardstick, CostYardstick::pieces(place))).collect();
        // An evaluation needs all yardsticks, so these are measured first.
        if lines.is_empty() {
            let (labels, scenarios) = self.wanted();
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

    /// Returns the pieces of the last batch that was asked for.
    pub fn asked(&self) -> &[SearchPiece] {
        &self.batch.pieces
    }

    /// Takes the measurement of the piece at this place of the last batch. The journal gets a line as soon as it is complete and
    /// all lines before it are written, so the order of measurements does not matter.
    ///
    /// # Errors
    /// Fails as the journal does.
    pub fn tell(&mut self, place: usize, measured: Measured) -> Result<(), SearchError> {
        let Some(slot) = self.batch.measured.get_mut(place) else { return Ok(()) };
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

    /// Returns the number of runs that are done, and of all. Runs that the journal makes needless count as done. So do the runs of
    /// places that a rung lacks.
    pub fn progress(&self) -> (usize, usize) {
        (self.batch.end - self.batch.left, self.batches().iter().sum())
    }

    /// Measures on `jobs` threads (0: one for each core) until the search is over or `stop` is true. Returns whether it is over.
    ///
    /// `check` is called after each piece in its thread. If it fails, the piece is not kept, and the search ends. `progress` is called
    /// in this thread before each batch and after each piece.
    ///
    /// # Errors
    /// Fails with the error of the journal, of `check` or of `progress`, and if a mechanism is unknown.
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
                failed = kept.err();
                if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            failed.map_or(Ok(()), Err)?;
            ended.unwrap_or_else(|panic| resume_unwind(panic));
            if self.batch.left > 0 {
                return Ok(false);
            }
        }
    }

    /// Returns the mechanisms whose evaluations the search waits for, each once, and their number of scenarios. Returns no
    /// mechanism if it is over.
    fn wanted(&self) -> (Vec<String>, usize) {
        let Some(halving) = &self.halving else {
            return (distinct(self.terms.mechanisms.iter().cloned()), self.set.scenarios.len());
        };
        let (places, scenarios) = halving.ask();
        let is_over = halving.over().0 >= self.terms.brackets;
        let places = places.iter().filter(|_| !is_over);
        (places.map(|place| halving.space().label(place)).collect(), scenarios)
    }

    /// Goes as far as the journal allows.
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

    /// Returns the number of runs of a piece.
    fn runs(&self, piece: &SearchPiece) -> usize {
        self.set.drawn(piece.place).map_or(0, |drawn| drawn.seeds as usize)
    }

    /// Returns the number of runs of an evaluation on the first `scenarios`.
    fn runs_on(&self, scenarios: usize) -> usize {
        let shared = self.set.shared.iter().filter(|_| scenarios == self.set.scenarios.len());
        self.set.scenarios.iter().take(scenarios).chain(shared).map(|drawn| drawn.seeds as usize).sum()
    }

    /// Returns the most runs of each batch of the search: of the yardsticks, and then of each rung of each bracket, or of the
    /// comparison.
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

    /// Returns the most runs up to the end of the next batch.
    fn end(&self) -> usize {
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
