//! The Python package `coapace`: the classes and functions that its Python files wrap.
//!
//! Times are floats in seconds in this package, as is the custom in Python, and integer microseconds in the Rust crates
//! that it calls.

// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod command;
mod comparing;
mod cue;
mod endpoint;
mod failing;
mod mechanism;
mod running;
mod scenario;
mod scripted;
mod searching;
mod seconds;
mod sweeping;
mod table;
mod value;
mod watching;

use pyo3::prelude::*;

/// The native part of the package `coapace`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    const VERSION: &str = crate::command::VERSION;
    #[pymodule_export]
    use crate::comparing::{Coexistence, Ranking, coexist, rank, restore_coexistence, restore_ranking};
    #[pymodule_export]
    use crate::cue::{CueOfPython, SampleOfPython};
    #[pymodule_export]
    use crate::endpoint::Call;
    #[pymodule_export]
    use crate::endpoint::client::{NativeClient, Remote};
    #[pymodule_export]
    use crate::endpoint::group::NativeGroup;
    #[pymodule_export]
    use crate::endpoint::mailbox::Mailbox;
    #[pymodule_export]
    use crate::endpoint::observation::NativeObservation;
    #[pymodule_export]
    use crate::endpoint::request::RequestOfPython;
    #[pymodule_export]
    use crate::endpoint::response::Response;
    #[pymodule_export]
    use crate::endpoint::server::{NativeServer, Reply};
    #[pymodule_export]
    use crate::mechanism::{Exchange, Mechanism, mechanisms, restore_mechanism, trace};
    #[pymodule_export]
    use crate::running::{Results, frames, papers, reproduce, restore_results, run};
    #[pymodule_export]
    use crate::scenario::{Scenario, restore_scenario, scenarios};
    #[pymodule_export]
    use crate::scripted::{is_scripted, register};
    #[pymodule_export]
    use crate::searching::{Search, measure};
    #[pymodule_export]
    use crate::sweeping::{Sweep, amount, amount_text, count_runs, make_batch};
    #[pymodule_export]
    use crate::table::{Table, restore_table};
}
