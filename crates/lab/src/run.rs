//! One run: a scenario, a contender, a seed.

use std::sync::Arc;

use coapace_control::Duration;
use coapace_proto::{Config, Setup, Token};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpResponse, TcpServer};
use coapace_sim::{Luck, Node, NodeId, Stream, Time};

use crate::contender::{Contender, ContenderKind};
use crate::nodes::{Client, Host, Plan, Server};
use crate::results::{Hash64, RunResult, Series};
use crate::scenario::{Scenario, WorkloadKind};

/// What is recorded of a run beside its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Nothing.
    Totals,
    /// RTO and queue lengths over time.
    Series,
}

/// The node of the server; clients follow it.
const SERVER: NodeId = NodeId(0);
