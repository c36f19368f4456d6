//! The hosts of workloads in which each client has one exchange after the other, over UDP.

use std::sync::Arc;

use coapace_control::REGISTRY;
use coapace_proto::{Config, Setup};
use coapace_scenario::File;
use coapace_sim::{Luck, Time};

use super::endpoints::{configs, request, response};
use super::observe::{Run, series};
use super::seats::{Casting, Role, Seats};
use crate::mix::{Mix, MixPart};
use crate::nodes::{
    ClientBehaviour, ClientNode, HostNode, RelayNode, ServerBehaviour, ServerNode, TransferBody,
};

/// Returns the behaviour of servers with the endpoint configuration `config`, which serve `bodies`. At most `bringing`
/// clients upload a body at the same time.
pub(super) fn service(
    run: Run<'_>,
    config: Config,
    bodies: Vec<Arc<TransferBody>>,
    bringing: u32,
) -> Arc<ServerBehaviour> {
    let Run { scenario, contender, seed, .. } = run;
    let luck = Luck::new(seed);
    // A server has one endpoint, so it has the mechanism of the first population for all clients.
    let controller = contender.parts().first().map_or_else(|| REGISTRY[0].mechanism.into(), MixPart::seam);
    Arc::new(ServerBehaviour {
        setup: Arc::new(Setup { controller, config, bulk: None }),
        response: response(scenario),
        keys: scenario.server.clone(),
        bodies,
        bringing,
        times: luck.stream("service"),
        dither: luck.stream("server/dither"),
    })
}

/// Returns a function that makes the host for a role. Timeouts that are armed before the time `from` do not count.
pub(super) fn hosts<'a>(run: Run<'a>, seats: &'a Seats, mix: &'a Mix, from: Time) -> Casting<'a> {
    let Run { scenario, seed, observe, .. } = run;
    let luck = Luck::new(seed);
    let File { clients, server, workload, .. } = &**scenario;
    let (config, of_servers) = configs(scenario, seats);
    // Each kind of decision has a stream of its own: a mechanism that draws more dither leaves the starts as they are.
    let plan = |(population, part): (usize, &MixPart)| {
        Arc::new(ClientBehaviour {
            population,
            setup: Arc::new(Setup { controller: part.seam(), config, bulk: None }),
            // Only a separate response needs a token to be matched. Without one, a message is as short as it can be.
            has_tokens: server.may_separate(),
            request: request(scenario),
            clients: clients.clone(),
            workload: workload.clone(),
            dither: luck.stream("dither"),
            starts: luck.stream("start"),
            batches: luck.stream("batches"),
            measured_from: from,
        })
    };
    let plans: Vec<_> = mix.parts().iter().enumerate().map(plan).collect();
    let service = service(run, of_servers, Vec::new(), 0);
    Box::new(move |role| match role {
        Role::Server(node) | Role::Depot(_, node) => {
            HostNode::Server(Box::new(ServerNode::new(service.clone(), node)))
        }
        Role::Client { number, .. } => {
            // Clients count from 1, and a mix deals its parts out from 0.
            let part = mix.part_of(number - 1);
            let series = series(mix, part, number, observe);
            HostNode::Client(ClientNode::new(plans[part].clone(), number, seats.server_of(number), series))
        }
        Role::Relay => HostNode::Relay(RelayNode),
    })
}
