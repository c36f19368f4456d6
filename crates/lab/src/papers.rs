//! Published experiments: their values, rankings and ratios as data. They are run like any other scenario.

mod claim;
mod experiment;
pub(crate) mod nearness;
mod order;
mod outcome;
mod published;
pub(crate) mod references;
mod sensitivity;
mod source;
mod trials;
mod values;
pub(crate) mod verdict;

pub use self::nearness::{Judged, Nearness, judged, nearness, witnesses};
pub use self::order::{Chain, Order, Ranked, RatioAllowance, Relation};
pub use self::outcome::OrderOutcome;
pub use self::published::{Compared, PaperTable, Published, Witness};
pub use self::references::References;
pub use self::sensitivity::{Count, Sensitivity, SensitivityPlan, SensitivityScore, VariedValue};
pub use self::source::PaperSource;
pub use self::verdict::{OrderVerdict, rules, tally, verdicts};
pub(crate) use self::verdict::{count, tally_by_claim};

/// A paper that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// The key of the paper on the command line.
    pub key: &'static str,
    source: &'static str,
    /// The published values as CSV; empty if the paper publishes only rankings.
    published: &'static str,
}

/// Makes a `Paper` from the name of its folder and the name of the file with its published values, if it has any.
macro_rules! paper {
    ($key:literal $(, $published:literal)?) => {
        Paper {
            key: $key,
            source: include_str!(concat!("../papers/", $key, "/source.toml")),
            published: concat!($(include_str!(concat!("../papers/", $key, "/", $published)))?),
        }
    };
}

/// The known papers. Each is a folder in `papers/` and an entry here.
pub const PAPERS: &[Paper] = &[
    paper!("raitahila2019", "published.csv"),
    paper!("meng2017"),
    paper!("betzler2015", "published.csv"),
    paper!("ancillotti2018"),
    paper!("rathod2022", "published.csv"),
];

impl Paper {
    /// Returns the paper of this key.
    pub fn find(key: &str) -> Option<&'static Self> {
        PAPERS.iter().find(|paper| paper.key == key)
    }

    /// Returns the paper of this key.
    ///
    /// # Errors
    /// Returns one line with the known keys if the paper is unknown.
    pub fn named(key: &str) -> Result<&'static Self, String> {
        let known = || PAPERS.iter().map(|paper| paper.key).collect::<Vec<_>>().join(", ");
        Self::find(key)
            .ok_or_else(|| format!("`{key}` is not the name of a paper; the papers are {}", known()))
    }

    /// Reads `source.toml` of the paper.
    ///
    /// # Errors
    /// Returns one line that describes the error in the paper's folder.
    pub fn source(&self) -> Result<PaperSource, String> {
        // `message` has no excerpt of the file, so the error stays on one line.
        toml::from_str(self.source)
            .map_err(|error| format!("papers/{}/source.toml: {}", self.key, error.message()))
    }

    /// Returns how quick runs are reduced, as text: `2 seeds, duration 120 s instead of 600 s`.
    ///
    /// # Errors
    /// Returns one line that describes the error in the paper's folder.
    pub fn quick(&self) -> Result<String, String> {
        let source = self.source()?;
        let claims = self.claims(&source)?;
        source.quick_words(&claims).map_err(|error| self.wrong(&error))
    }

    /// Returns the error with the name of the paper's folder as a prefix.
    fn wrong(&self, error: &str) -> String {
        format!("papers/{}: {error}", self.key)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a paper on `lossy-switch` with these experiments and values.
    pub(crate) fn paper(experiments: &str, published: &'static str) -> Paper {
        let head = "key = 'k'\ntitle = 't'\nsource = 's'\nresults = 'r'\nscenario = 'lossy-switch'\nquick_seeds = 2\n\
                    mechanisms = { ours = 'cocoa-i', plain = 'default' }\ncolumns = { loss = 'loss' }\n\
                    allowance = { margin = 0.05, tolerance = 0.25 }\n";
        let source = format!("{head}{experiments}").leak();
        Paper { key: "k", source, published }
    }

    #[test]
    fn an_error_in_the_folder_of_a_paper_names_its_file() {
        for (experiments, csv, problem) in [
            (
                "",
                "loss,mechanism,troughput\n",
                "papers/k/published.csv: source.toml has no knob for the column `troughput`, and `troughput` is not the name of a metric",
            ),
            ("", "loss,throughput\n4 %,1\n", "papers/k/published.csv: the column `mechanism` is missing"),
            (
                "",
                "loss,mechanism,jain\n4 %,ours,1\n4 %,ours,high\n",
                "papers/k/published.csv: line 3: the jain `high` is not a number",
            ),
            ("", "loss,mechanism,jain\n4 %,ours,inf\n", "line 2: the jain `inf` is not a number"),
            (
                "",
                "loss,mechanism,jain\n4 %,theirs,1\n",
                "line 2: source.toml names no mechanism for the row `theirs`",
            ),
            ("", "loss,mechanism,jain\n4 %,ours\n", "papers/k/published.csv: CSV error"),
            ("", "loss,mechanism,jain\n400 %,ours,1\n", "papers/k: --set loss=400 %: "),
            (
                "[[experiments]]\norders = { throughput = 'ours >' }",
                "",
                "papers/k/source.toml: the order `ours >` lacks a mechanism",
            ),
            (
                "[[experiments]]\norders = { speed = 'ours > plain' }",
                "",
                "papers/k/source.toml: `speed` is not the name of a metric",
            ),
            (
                "[[experiments]]\norders = { jain = 'ours > theirs' }",
                "",
                "papers/k: source.toml names no mechanism for the row `theirs`",
            ),
            (
                "[[experiments]]\nclaims = [{ metric = 'jain', says = 'ours = plain' }]",
                "",
                "papers/k/source.toml: the order `ours = plain` lacks the number after its `=`",
            ),
            (
                "[tables.3]\ntitle = 'T'\nfactor = 0.5",
                "",
                "papers/k/source.toml: the factor 0.5 of `T` is not 1 or more",
            ),
            (
                "[tables.3]\ntitle = 'T'\nfactor = 2\nquick_factor = 1.5",
                "",
                "papers/k/source.toml: the quick_factor 1.5 of `T` is less than its factor 2",
            ),
            ("", "table,mechanism,jain\n3,ours,1\n", "line 2: source.toml has no table `3`"),
            (
                "[quick.nb-iot]\nclients = '1'",
                "loss,mechanism,jain\n4 %,ours,1\n",
                "papers/k: source.toml shortens `nb-iot`, a scenario without published values",
            ),
            (
                "",
                "loss,mechanism,jain\n4 %,ours,1\n4 %,ours,0.9\n",
                "papers/k: published.csv has two values for the jain of cocoa-i in lossy-switch",
            ),
            (
                "[[experiments]]\nset = {}",
                "",
                "papers/k: an experiment in source.toml names no mechanism: give it `orders`, `claims` or `mechanisms`",
            ),
        ] {
            let error = paper(experiments, csv).trials(true, &[]).unwrap_err();
            assert!(error.contains(problem), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
