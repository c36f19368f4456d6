//! The keys of the workload.

use coapace_sim::Span;

use crate::flows::Flow;
use crate::schema::document::Item;
use crate::schema::kind::Or;
use crate::schema::scalar::{Scalar, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys, named};
use crate::schema::words::words;
use crate::transfers::Transfer;

keys! {
    /// The messages of the clients: requests one after the other, each after the response to the one before; or flows;
    /// or transfers of bodies.
    pub struct Workload completed by one_end, checked by workload_fits {
        /// `continuous`: clients send requests, and the mechanism keeps its state throughout. `random`: the exchanges
        /// come in batches of random size, and all state is forgotten after each batch; over TCP each batch has a
        /// connection of its own. `flows`: the clients send the messages of `[[workload.flows]]` until `duration` is
        /// over. `transfer`: clients make the transfers of `[[workload.transfers]]`, and the others send requests as in
        /// `continuous`.
        kind: WorkloadKind, one_of();
        /// The number of exchanges after which a client is done. Set either this or `duration`: if `duration` is set,
        /// the default is "none".
        exchanges: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(50);
        /// The length of the run. Exchanges that are still open at its end count as neither completed nor failed. Not
        /// for the kind `random`.
        duration: Option<Span>, Or("none", TIME) => None;
        /// The first part of `duration`, whose events do not count in the results.
        warm_up: Span, TIME => Span::ZERO;
        /// For the kind `random`: the smallest size of a batch, in exchanges.
        batch_min: u32, Whole(1, 1_000_000) => 1;
        /// For the kind `random`: the largest size of a batch, in exchanges. Sizes are uniform between both.
        batch_max: u32, Whole(1, 1_000_000) => 10;
        /// The time from a response to the client's next request.
        think_time: Span, TIME => Span::ZERO;
        /// The grid of a client's requests: each is sent at a multiple of this time after the first, and only if the
        /// last exchange is over. With 0 s they may be sent at any time. UDP only; flows have an `interval` of their
        /// own.
        interval: Span, TIME => Span::ZERO;
        /// The messages of the clients, for the kind `flows`.
        flows: Vec<Flow>, named(64, |flow: &Flow| &flow.name) => Vec::new();
        /// The transfers of the clients, for the kind `transfer`.
        transfers: Vec<Transfer>, named(16, |transfer: &Transfer| &transfer.name) => Vec::new();
    }
}

words! {
    /// The kind of a workload: the messages that clients send, and whether the mechanism keeps its state.
    pub enum WorkloadKind {
        /// Clients send requests, and the mechanism keeps its state throughout.
        Continuous = "continuous",
        /// Clients send requests in batches of random size, and their mechanism forgets its state after each batch.
        Random = "random",
        /// Clients send the messages of the flows.
        Flows = "flows",
        /// Clients make the transfers.
        Transfer = "transfer",
    }
}

fn one_end(workload: &Item) -> Item {
    workload.with_either("duration", "exchanges")
}

fn workload_fits(workload: &Workload) -> Result<(), Misfit> {
    let Workload {
        kind, exchanges, duration, warm_up, batch_min, batch_max, interval, flows, transfers, ..
    } = workload;
    // Tables of flows or transfers would be ignored without their kind, so they are refused.
    let has_flows = *kind == WorkloadKind::Flows;
    let problem = "is missing: the kind \"flows\" needs one or more";
    Misfit::unless(!has_flows || !flows.is_empty(), "flows", problem)?;
    Misfit::unless(has_flows || flows.is_empty(), "flows", "needs the kind \"flows\"")?;
    let has_transfers = *kind == WorkloadKind::Transfer;
    let problem = "is missing: the kind \"transfer\" needs one or more";
    Misfit::unless(!has_transfers || !transfers.is_empty(), "transfers", problem)?;
    Misfit::unless(has_transfers || transfers.is_empty(), "transfers", "needs the kind \"transfer\"")?;
    if duration.is_none()
        && let Some(endless) = transfers.iter().find(|transfer| transfer.count.is_none())
    {
        let path = format!("transfers.{}.count", endless.name);
        return Err(Misfit::new(path, "must not be \"none\" without a `workload.duration`"));
    }
    let problem = "cannot be combined with the kind \"flows\": a flow has its own";
    Misfit::unless(!has_flows || *interval == Span::ZERO, "interval", problem)?;
    // Both bounds always have values, so they are compared even where the kind has no batches.
    let problem = format!("must not be below `batch_min`, which is {batch_min}");
    Misfit::unless(batch_min <= batch_max, "batch_max", problem)?;
    // One of the two ends a run, and not both. The order of the arms decides which fault is reported first.
    match (exchanges, duration) {
        (Some(exchanges), Some(_)) => {
            let problem = format!(
                "cannot be combined with `exchanges`, which is {exchanges}: make one of them \"none\""
            );
            Err(Misfit::new("duration", problem))
        }
        (None, None) => Err(Misfit::new("exchanges", "must not be \"none\" without a `duration`")),
        (None, Some(_)) if *kind == WorkloadKind::Random => {
            Err(Misfit::new("duration", "needs the kind \"continuous\": batches are of `exchanges`"))
        }
        (Some(_), None) if *kind == WorkloadKind::Flows => {
            Err(Misfit::new("duration", "is missing: the kind \"flows\" needs one"))
        }
        (None, Some(duration)) if warm_up >= duration => {
            let [warm_up, duration] = [warm_up, duration].map(|span| TIME.text(span));
            let problem = format!("of {warm_up} must be shorter than `duration`, which is {duration}");
            Err(Misfit::new("warm_up", problem))
        }
        (Some(_), None) if *warm_up > Span::ZERO => Err(Misfit::new("warm_up", "needs a `duration`")),
        _ => Ok(()),
    }
}
