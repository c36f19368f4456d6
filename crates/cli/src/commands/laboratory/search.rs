//! `coapace search`.

use std::io::{self, Write};

use coapace_dataset::VERSION;
use coapace_lab::search::terms::SearchTerms;
use coapace_lab::search::{self, SearchError};

use crate::arguments::{Arguments, SearchArguments};
use crate::shown::remark;
use crate::{Failure, interrupt, progress};

pub(crate) fn search(arguments: &Arguments, search: &SearchArguments) -> Result<(), Failure> {
    let terms = SearchTerms {
        mechanisms: search.mechanism.clone(),
        vary: search.vary.clone(),
        networks: search.networks,
        generator_seed: search.generator_seed,
        scenarios: search.scenarios,
        brackets: search.brackets,
        seed: search.seed,
    };
    // The new name hides the arguments.
    let (each, is_kept) = (search.each, search.journal.is_some());
    let mut search = search::Search::open(terms, VERSION, search.journal.as_deref())?;
    let known = search.journal().evaluations();
    if known > 0 {
        remark(arguments, &format!("{known} evaluations were made before"));
    }
    let stop = interrupt::watch();
    let bar = progress::bar(search.progress().1, arguments.quiet);
    let mut printed = 0;
    let ended = search.conduct(arguments.jobs(), stop, || Ok(()), &mut |search| {
        bar.set_position(search.progress().0 as u64);
        // `found` grows with every round, and each network is printed once.
        let news = &search.found()[printed..];
        printed = search.found().len();
        let print = || {
            let mut out = io::stdout().lock();
            news.iter().try_for_each(|it| out.write_all(it.text(search.set(), each).as_bytes()))?;
            out.flush()
        };
        // The bar would be drawn into the lines if it were not suspended.
        if news.is_empty() { Ok(()) } else { bar.suspend(print) }
    });
    bar.finish_and_clear();
    if ended? {
        Ok(())
    } else {
        let kept = if is_kept {
            "the journal has the measurements so far"
        } else {
            "--journal FILE keeps measurements"
        };
        Err(Failure::Interrupted(format!("interrupted: {kept}")))
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Usage(message) => Self::Usage(message),
            // Only writing to standard output can fail.
            SearchError::Failed(error) => error.into(),
            SearchError::Scenario(_) | SearchError::Journal(..) => Self::Input(error.to_string()),
        }
    }
}
