//! The network of a scenario without a mesh: a chain of hops between clients and servers.

use coapace_scenario::{Hop, Ip, Loss, Scenario};
use coapace_sim::{
    Accounting, Hop as Effects, HopError, HopId, Loss as SimLoss, Luck, Markov, Network, Rate, Span,
};

use super::seats::{CLIENTS_SITE, SERVER_SITE};

/// Returns the names of the hops, in the order of their numbers.
pub fn hop_names(scenario: &Scenario) -> Vec<String> {
    let up = scenario.network.up.iter().map(|hop| format!("up.{}", hop.name));
    up.chain(scenario.network.down.iter().map(|hop| format!("down.{}", hop.name))).collect()
}

/// Returns the headers that the network adds to datagrams.
pub fn accounting(scenario: &Scenario) -> Accounting {
    match scenario.network.ip {
        Ip::V4 => Accounting::Ipv4,
        Ip::V6 => Accounting::Ipv6,
    }
}

/// Returns a network with the servers at [`SERVER_SITE`], the clients at [`CLIENTS_SITE`], and the hops of the scenario between
/// them.
///
/// # Panics
/// If the scenario has a mesh in place of hops.
pub fn network(scenario: &Scenario, luck: Luck) -> Network {
    let (mtu, ecn_capable) = (scenario.network.mtu, scenario.network.ecn_capable);
    let mut network = Network::new(luck, accounting(scenario)).ecn_capable(ecn_capable);
    for (way, hops, from, to) in [
        ("up", &scenario.network.up, CLIENTS_SITE, SERVER_SITE),
        ("down", &scenario.network.down, SERVER_SITE, CLIENTS_SITE),
    ] {
        let path: Result<Vec<HopId>, HopError> = hops
            .iter()
            .map(|hop| network.add_hop(&format!("{way}.{}", hop.name), effects(hop, mtu)))
            .collect();
        let path = path.expect("a scenario's values are within what a hop takes");
        network.connect(from, to, &path).expect("a scenario has 1 to 16 hops each way");
    }
    network
}

fn effects(hop: &Hop, mtu: u32) -> Effects {
    let loss = match &hop.loss {
        // Without loss, no number is drawn for each packet.
        Loss::Random(0.0) => SimLoss::None,
        Loss::Random(probability) => SimLoss::Random(*probability),
        Loss::Burst(burst) => SimLoss::Markov(Markov {
            p_good: burst.good,
            p_bad: burst.bad,
            // The length of a state is geometric, so its mean is 1 divided by the probability of leaving it.
            good_to_bad: 1.0 / burst.mean_good_packets(),
            bad_to_good: 1.0 / f64::from(burst.mean_bad_packets),
        }),
    };
    Effects {
        rate: hop.rate.map(|bits_per_second| Rate {
            bits_per_second,
            // A buffer without a size is never full.
            capacity_bytes: hop.buffer_bytes.unwrap_or(u64::MAX),
        }),
        queue: hop.queue.config(mtu),
        marks: hop.ecn,
        delay: hop.delay,
        loss,
        // A hop without jitter keeps its packets in order, with one event for all of them.
        jitter: (hop.jitter.max > Span::ZERO).then_some(hop.jitter),
        reordering: hop.reordering,
    }
}
