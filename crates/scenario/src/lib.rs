//! Scenarios: a network, a workload, and the names by which both are varied, in a TOML file. The crate also reads the names of
//! mechanisms. It runs nothing and knows no results.
//!
//! * A *key* is a name in the file, such as `clients.count`. Its dotted path begins at the top of the file.
//! * A *setting* changes the value of one key from outside: `--set KEY=VALUE`.
//! * A *knob* is a short name that a scenario gives to one setting, to several, or to a choice between groups of them.
//! * A *kind* defines which values a key accepts: it reads, checks, writes and describes them.
//! * A *flow* is a series of messages from each of its clients to one server. A *pattern* says when a client of a flow offers
//!   messages.
//! * A *transfer* is a body that each of its clients downloads from a server or uploads to it.
//! * A *place* is the position of a node of a mesh of radios. A *sink* is a server in a mesh.
//!
//! The keys are in [`docs/scenarios.md`](https://github.com/coapace/coapace/blob/main/docs/scenarios.md), which is written
//! from their declarations.
//!
//! ```
//! use coapace_scenario::Scenario;
//!
//! let settings = [("clients".to_owned(), "200".to_owned()), ("errors".to_owned(), "low".to_owned())];
//! let scenario = Scenario::load("nb-iot", &settings).unwrap();
//! assert_eq!(scenario.clients.count, 200);
//!
//! let mistyped = [("cleints".to_owned(), "200".to_owned())];
//! let error = Scenario::load("nb-iot", &mistyped).unwrap_err();
//! assert_eq!(error.to_string(), "--set cleints=200: unknown key `cleints`; did you mean `clients`?");
//! ```

mod cross_checks;
mod file;
mod flows;
mod hash;
mod hops;
mod hosts;
mod import;
mod knobs;
mod mac;
mod mesh;
pub mod naming;
mod network;
pub mod patterns;
mod places;
mod queues;
mod reference;
mod routing;
mod scenario;
mod schema;
mod service;
mod source;
mod template;
mod text;
mod transfers;
mod workload;

pub use file::{Defaults, File};
pub use flows::{Flow, Method, Moment, Side, WhenBusy};
pub use hash::Hash64;
pub use hops::{Burst, Hop, Loss};
pub use hosts::{Answering, Clients, Endurance, Server};
pub use mesh::{Mesh, Mobility, Topology, Waypoints};
pub use network::{Ip, NetworkTable, Tcp};
pub use places::Places;
pub use queues::Queue;
pub use reference::{json_schema, reference};
pub use routing::Routing;
pub use scenario::{Builtin, Scenario};
pub use schema::amount::{Amount, Dimension};
pub use schema::document::{setting_of, split_values};
pub use schema::error::ScenarioError;
pub use schema::preset::Preset;
pub use schema::scalar::{parse_share, parse_time};
pub use schema::table::Bare;
pub use service::{Exponential, ServiceTime};
pub use source::Source;
pub use template::Template;
pub use transfers::{Direction, Protocol, Transfer};
pub use workload::{Workload, WorkloadKind};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
