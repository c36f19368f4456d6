//! The lives of clients. A life begins when a program starts; when it ends, everything that its mechanism has learned is lost.
//!
//! A program that restarts begins with another Message ID (RFC 7252 §4.4), and with another token, if it counts tokens.
//! Most also use another source port. Some stacks draw each Message ID at random, and a port may change without a
//! restart, for example behind a NAT. So if the client counts Message IDs or tokens, a jump of the counter shows a
//! restart. Another port shows it only if the client counts neither.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use coapace_run::measured::quantile;
use coapace_sim::Time;
use serde::Serialize;

use super::exchanges::{CapturedExchange, From};
use super::pair::Pair;

/// A counter continues if the next number is at most this much higher: messages to other peers also take numbers.
const NEAR: u64 = 256;

/// Numbers come from a counter if at least this share of them continues the number before. With random Message IDs,
/// this share is 1/256.
const COUNTED: f64 = 0.1;

/// The restarts of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Starts {
    /// The number of clients. Programs that ran one after the other at one address, and used one server, count as one
    /// client.
    pub clients: u32,
    /// The number of restarts.
    pub restarts: u32,
    /// The number of clients with at least two exchanges. Only they can show a restart.
    pub could: u32,
    /// The number of clients that restarted.
    pub did: u32,
    /// The number of restarts after which the client used another port.
    pub other_ports: u32,
    /// The sign by which restarts were recognised; `None` if they cannot be.
    pub shown_by: Option<Sign>,
    /// The median time between the last exchange before a restart and the first one after it, in seconds; `None`
    /// without a restart.
    pub pause_s: Option<f64>,
}

/// A sign that a client has restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// A jump of the Message IDs of a client that counts them.
    MessageIds,
    /// A jump of the tokens of a client that counts them and has random Message IDs.
    Tokens,
    /// Another port of a client that counts neither Message IDs nor tokens.
    Ports,
}

/// Sets the numbers of the client and of its life in each exchange, and returns the restarts. Exchanges are sorted by
/// their first copies.
pub(super) fn tell_apart(exchanges: &mut [CapturedExchange], pairs: &[Pair]) -> Starts {
    let clients = chained(exchanges, pairs);
    let steps = || clients.iter().flat_map(|own| own.windows(2));
    let counts = |is_near: &dyn Fn(&CapturedExchange, &CapturedExchange) -> bool| {
        let near = steps().filter(|pair| is_near(&exchanges[pair[0]], &exchanges[pair[1]])).count();
        // Without any step the share is 0 of 0, and shows no counter.
        near > 0 && near as f64 >= COUNTED * steps().count() as f64
    };
    let shown_by = if counts(&ids_count_on) {
        Some(Sign::MessageIds)
    } else if counts(&tokens_count_on) {
        Some(Sign::Tokens)
    } else {
        steps().any(|pair| exchanges[pair[0]].pair != exchanges[pair[1]].pair).then_some(Sign::Ports)
    };
    let has_restarted = |before: &CapturedExchange, next: &CapturedExchange| match shown_by {
        // A program that counts both has not restarted if one of them goes on.
        Some(Sign::MessageIds) => !(ids_count_on(before, next) || tokens_count_on(before, next)),
        Some(Sign::Tokens) => !tokens_count_on(before, next),
        Some(Sign::Ports) => before.pair != next.pair,
        None => false,
    };
    let mut starts = Starts { clients: clients.len() as u32, shown_by, ..Starts::default() };
    let mut pauses = Vec::new();
    for (client, own) in (0u32..).zip(&clients) {
        let (mut life, mut busy_until) = (0, Time::ZERO);
        for (place, &number) in own.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| own[before]);
            let began = exchanges[number].began_at();
            // Requests that are open at the same time may depart out of the order of their numbers.
            if let Some(before) = before.filter(|_| busy_until <= began)
                && has_restarted(&exchanges[before], &exchanges[number])
            {
                life += 1;
                // Across a step of the clock the length of the pause is unknown.
                if exchanges[before].steps == exchanges[number].steps {
                    pauses.push((began - busy_until).as_secs_f64());
                }
                starts.other_ports += u32::from(exchanges[before].pair != exchanges[number].pair);
            }
            (exchanges[number].client, exchanges[number].life) = (client, life);
            busy_until = busy_until.max(over_at(&exchanges[number]));
        }
        starts.restarts += life;
        starts.could += u32::from(own.len() > 1);
        starts.did += u32::from(life > 0);
    }
    pauses.sort_by(f64::total_cmp);
    starts.pause_s = quantile(&pauses, 0.5);
    starts
}

impl Starts {
    /// Returns whether at least half of the clients that can show a restart did restart. If fewer did, their restarts
    /// count as accidents.
    pub fn are_usual(&self) -> bool {
        self.restarts > 0 && self.did * 2 >= self.could
    }
}

/// Returns, for each client, the indices of its exchanges in sequence. Ports that one address used one after the other,
/// towards one server, belong to one client.
fn chained(exchanges: &[CapturedExchange], pairs: &[Pair]) -> Vec<Vec<usize>> {
    let mut of_pair: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (number, exchange) in exchanges.iter().enumerate().filter(|(_, it)| it.from == From::Client) {
        of_pair.entry(exchange.pair).or_default().push(number);
    }
    let mut in_order: Vec<(u32, Vec<usize>)> = of_pair.into_iter().collect();
    // Exchanges are numbered by time, so ports are taken in the order of their first use.
    in_order.sort_by_key(|(_, own)| own.first().copied());
    let mut clients: Vec<Vec<usize>> = Vec::new();
    // The clients of an address and a server, by the time when the last exchange of each was over.
    let mut idle: BTreeMap<(IpAddr, SocketAddr), BTreeSet<(Time, usize)>> = BTreeMap::new();
    for (pair, own) in in_order {
        let Pair { client, server, .. } = pairs[pair as usize];
        let began = own.first().map_or(Time::ZERO, |&first| exchanges[first].began_at());
        let over = own.iter().map(|&it| over_at(&exchanges[it])).max().unwrap_or(began);
        let known = idle.entry((client.ip(), server)).or_default();
        // A program that is still busy cannot have restarted at this port. Of the others, the last to end is the likeliest.
        // `usize::MAX` includes all clients that were over at this very moment.
        let latest = known.range(..=(began, usize::MAX)).next_back().copied();
        let number = latest.map_or(clients.len(), |(_, number)| number);
        match latest {
            Some(latest) => {
                known.remove(&latest);
                clients[number].extend(own);
            }
            None => clients.push(own),
        }
        known.insert((over, number));
    }
    clients
}

/// Returns when an exchange ended, or the time of its last copy if it was not answered.
fn over_at(exchange: &CapturedExchange) -> Time {
    let last = exchange.copies.last().map_or(Time::ZERO, |copy| copy.at);
    // Packets out of order may put an answer before the first copy.
    exchange.ended_at().unwrap_or(last).max(exchange.began_at())
}

fn ids_count_on(before: &CapturedExchange, next: &CapturedExchange) -> bool {
    // Message IDs wrap at 65,536.
    let step = next.message_id().wrapping_sub(before.message_id());
    (1..=NEAR).contains(&u64::from(step))
}

/// Returns whether the token of `next` continues a counter from the token of `before`, in either byte order.
fn tokens_count_on(before: &CapturedExchange, next: &CapturedExchange) -> bool {
    // Tokens of one byte are always close.
    let bits = u32::from(next.token_bytes) * 8;
    if before.token_bytes != next.token_bytes || !(16..=64).contains(&bits) {
        return false;
    }
    let is_near = |before: u64, next: u64| {
        // A counter wraps at the length of its tokens, so only that many bits count.
        let step = next.wrapping_sub(before) << (64 - bits) >> (64 - bits);
        (1..=NEAR).contains(&step)
    };
    let reversed = |token: u64| token.swap_bytes() >> (64 - bits);
    let (before, next) = (before.token, next.token);
    is_near(before, next) || is_near(reversed(before), reversed(next))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::super::capture::tests::pcap;
    use super::super::headers::tests::ip;
    use super::super::simulated;
    use super::super::traffic::{self, Reading, Traffic};
    use super::super::workload::ObservedWorkload;
    use super::*;

    const SERVER: &str = "10.0.0.2:5683";

    /// Returns the traffic of requests answered after 100 ms: seconds, port, Message ID and token.
    fn answered(requests: &[(u64, u16, u16, &[u8])]) -> Traffic {
        let mut packets = Vec::new();
        for &(s, port, id, token) in requests {
            let message = |first: u8, code: u8| {
                [&[first | token.len() as u8, code][..], &id.to_be_bytes()[..], token].concat()
            };
            let client = format!("10.0.0.1:{port}");
            packets.push((s * 1_000_000, ip(&client, SERVER, &message(0x40, 1))));
            packets.push((s * 1_000_000 + 100_000, ip(SERVER, &client, &message(0x60, 0x45))));
        }
        let packets: Vec<_> = packets.iter().map(|(us, bytes)| (*us, &bytes[..])).collect();
        traffic::read(&*pcap(101, &packets), &Reading::default(), None, &mut || ControlFlow::Continue(()))
            .unwrap()
    }

    fn lives(requests: &[(u64, u16, u16, &[u8])]) -> (Vec<u32>, Starts) {
        let traffic = answered(requests);
        (traffic.exchanges.iter().map(|exchange| exchange.life).collect(), traffic.starts)
    }

    #[test]
    fn a_jump_of_message_ids_is_a_restart_of_the_client_at_any_port() {
        let (of, starts) = lives(&[
            (0, 4_000, 7, b""),
            (1, 4_000, 8, b""),
            (9, 4_000, 60_000, b""),
            (10, 4_000, 60_001, b""),
        ]);
        assert_eq!((of, starts.shown_by, starts.restarts), (vec![0, 0, 1, 1], Some(Sign::MessageIds), 1));
        assert!((starts.pause_s.unwrap() - 7.9).abs() < 1e-6 && starts.are_usual(), "{starts:?}");
        let (of, starts) = lives(&[
            (0, 4_000, 7, b""),
            (1, 4_000, 8, b""),
            (9, 5_000, 60_000, b""),
            (10, 5_000, 60_001, b""),
        ]);
        assert_eq!((of, starts.clients, starts.other_ports), (vec![0, 0, 1, 1], 1, 1));
    }

    #[test]
    fn continuing_message_ids_mean_no_restart_at_any_port() {
        // A NAT gives another port after a pause. Message IDs begin again behind the last.
        let (of, starts) = lives(&[(0, 4_000, 65_534, b""), (1, 4_000, 65_535, b""), (90, 5_000, 0, b"")]);
        assert_eq!((of, starts.clients, starts.restarts), (vec![0, 0, 0], 1, 0));
    }

    #[test]
    fn counting_tokens_reveal_restarts_that_message_ids_do_not() {
        let ids = [500, 31_000, 7, 44_000, 21_000, 9_999];
        let tokens: [&[u8]; 6] = [b"aaaa", b"aaab", b"aaac", b"xyzz", b"xyz{", b"xyz|"];
        let requests: Vec<_> = (0..6).map(|it| (it as u64, 4_000, ids[it], tokens[it])).collect();
        let (of, starts) = lives(&requests);
        assert_eq!((of, starts.shown_by), (vec![0, 0, 0, 1, 1, 1], Some(Sign::Tokens)));
        // The other byte first.
        let tokens: [&[u8]; 6] = [b"aaaa", b"baaa", b"caaa", b"zzyx", b"{zyx", b"|zyx"];
        let requests: Vec<_> = (0..6).map(|it| (it as u64, 4_000, ids[it], tokens[it])).collect();
        assert_eq!(lives(&requests).0, [0, 0, 0, 1, 1, 1]);
        // Message IDs that jump while tokens count on show no restart.
        let tokens: [&[u8]; 4] = [b"aaaa", b"aaab", b"aaac", b"aaad"];
        let ids = [7, 8, 9, 44_000];
        let requests: Vec<_> = (0..4).map(|it| (it as u64, 4_000, ids[it], tokens[it])).collect();
        assert_eq!(lives(&requests).1.restarts, 0);
    }

    #[test]
    fn without_sequential_ids_or_tokens_only_new_ports_reveal_restarts() {
        let (of, starts) = lives(&[(0, 4_000, 7, b""), (1, 4_001, 30_000, b""), (2, 4_002, 900, b"")]);
        assert_eq!((of, starts.shown_by, starts.clients), (vec![0, 1, 2], Some(Sign::Ports), 1));
        let (of, starts) = lives(&[(0, 4_000, 7, b""), (1, 4_000, 30_000, b""), (2, 4_000, 900, b"")]);
        assert_eq!((of, starts.shown_by), (vec![0, 0, 0], None));
    }

    #[test]
    fn two_ports_in_use_at_the_same_time_are_two_clients() {
        let (of, starts) =
            lives(&[(0, 4_000, 7, b""), (1, 5_000, 900, b""), (2, 4_000, 8, b""), (3, 5_000, 901, b"")]);
        assert_eq!((of, starts.clients, starts.restarts), (vec![0, 0, 0, 0], 2, 0));
    }

    #[test]
    fn simulated_clients_in_batches_and_continuous_clients_are_recognised() {
        let workload = |kind: &str, response: &str| {
            let set = [("clients", "20"), ("workload.kind", kind), ("server.response", response)];
            let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let scenario = Scenario::load("nb-iot", &set).unwrap();
            ObservedWorkload::of(&simulated::traffic(&scenario, &Contender::parse("default").unwrap(), 3))
                .unwrap()
        };
        for response in ["piggybacked", "separate"] {
            let random = workload("random", response);
            assert_eq!((random.clients, random.batch), (20, Some([1, 10])), "{:?}", random.starts);
            let continuous = workload("continuous", response);
            assert_eq!((continuous.clients, continuous.starts.restarts, continuous.batch), (20, 0, None));
        }
    }
}
