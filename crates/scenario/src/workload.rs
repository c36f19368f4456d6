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
    /// The requests of every client, one after the other, the next when the last is answered; or its flows.
    pub struct Workload completed by one_end, checked by workload_fits {
        /// `continuous`: the mechanism keeps its state throughout. `random`: the exchanges come in batches of random size, and
        /// after each batch all state is forgotten; over TCP each batch has a connection of its own. `flows`: the clients send
        /// the messages of `[[workload.flows]]` until `duration` is over. `transfer`: clients make the transfers of
        /// `[[workload.transfers]]`, and the others send requests like those of `continuous`.
        kind: WorkloadKind, one_of();
        /// Exchanges of a client, which is done when the last of them is over. Either this or `duration` is given: with
        /// `duration` the default is none.
        exchanges: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(50);
        /// The time from the start of the run at which it ends. Exchanges that are still open then count as neither completed
        /// nor failed. Not for `random`.
        duration: Option<Span>, Or("none", TIME) => None;
        /// The beginning of `duration` in which nothing is counted.
        warm_up: Span, TIME => Span::ZERO;
        /// The smallest batch of `random`, in exchanges.
        batch_min: u32, Whole(1, 1_000_000) => 1;
        /// The largest batch of `random`, in exchanges. Sizes are uniform between both.
        batch_max: u32, Whole(1, 1_000_000) => 10;
        /// The time from a response to the next request.
        think_time: Span, TIME => Span::ZERO;
        /// The time between two requests of a client: it makes one at a multiple of this after its first, and only if the last
        /// is over. 0 s allows any moment. UDP only; flows have their own.
        interval: Span, TIME => Span::ZERO;
        /// The messages of the clients, for the kind `flows`.
        flows: Vec<Flow>, named(64, |flow: &Flow| &flow.name) => Vec::new();
        /// The transfers of the clients, for the kind `transfer`.
        transfers: Vec<Transfer>, named(16, |transfer: &Transfer| &transfer.name) => Vec::new();
    }
}

words! {
    /// The state that a client keeps, and the messages that it sends.
    pub enum WorkloadKind {
        /// The mechanism keeps its state throughout.
        Continuous = "continuous",
        /// Batches of random size. All state is forgotten after each.
        Random = "random",
        /// The messages of the flows.
        Flows = "flows",
        /// The blocks of the transfers.
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
    let problem = "does not go with the kind \"flows\": a flow has its own";
    Misfit::unless(!has_flows || *interval == Span::ZERO, "interval", problem)?;
    let problem = format!("must not be below `batch_min`, which is {batch_min}");
    Misfit::unless(batch_min <= batch_max, "batch_max", problem)?;
    match (exchanges, duration) {
        (Some(exchanges), Some(_)) => {
            let problem =
                format!("does not go with `exchanges`, which is {exchanges}: make one of them \"none\"");
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
