//! The hosts of workloads in which a client has one exchange after the other, over UDP.

use std::sync::Arc;

use coapace_control::REGISTRY;
use coapace_proto::Setup;
use coapace_scenario::{Scenario, WorkloadKind};
use coapace_sim::{Luck, Time};

use super::endpoints::configs;
use super::messages::{request, response};
use super::observe::{Observe, series};
use super::seats::{Role, Seats};
use crate::mix::{Mix, Part};
use crate::nodes::{Client, Host, Plan, Relay, Server};

/// Returns a function that makes the host for a role. Timeouts are counted from `from` on.
pub(super) fn hosts<'a>(
    scenario: &'a Scenario,
    seats: &'a Seats,
    mix: &'a Mix,
    luck: Luck,
    observe: Observe,
    from: Time,
) -> Box<dyn FnMut(Role) -> Host + 'a> {
    let Scenario { clients, server, workload, .. } = scenario;
    let (config, of_servers) = configs(scenario, seats);
    let plan = |(population, part): (usize, &Part)| {
        Arc::new(Plan {
            population,
            setup: Arc::new(Setup { controller: part.mechanism, config }),
            request: request(scenario),
            exchanges: workload.exchanges,
            batch: match workload.kind {
                WorkloadKind::Continuous | WorkloadKind::Flows => None,
                WorkloadKind::Random => Some((workload.batch_min, workload.batch_max)),
            },
            think_time: workload.think_time,
            interval: workload.interval,
            dither: luck.stream("dither"),
            start: clients.start,
            start_spread: clients.start_spread,
            starts: luck.stream("start"),
            batches: luck.stream("batches"),
            measured_from: from,
        })
    };
    let plans: Vec<_> = mix.parts().iter().enumerate().map(plan).collect();
    // A server begins no exchange, so its mechanism is never used.
    let setup = Arc::new(Setup { controller: REGISTRY[0].mechanism, config: of_servers });
    let server = move |node| {
        Host::Server(Box::new(Server::new(setup.clone(), node, response(scenario), server.processing_delay)))
    };
    let client = move |client| {
        let part = mix.part_of(client - 1);
        let series = series(mix, part, client, observe);
        Host::Client(Client::new(plans[part].clone(), client, seats.server_of(client), series))
    };
    Box::new(move |role| match role {
        Role::Server(node) => server(node),
        Role::Client { number, .. } => client(number),
        Role::Relay => Host::Relay(Relay),
    })
}
