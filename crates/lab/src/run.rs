//! One run: a scenario, a contender, a seed.

use std::sync::Arc;

use coapace_control::{Duration, REGISTRY};
use coapace_proto::{Config, Setup, Tail, Token};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpResponse, TcpServer};
use coapace_sim::{
    Accounting, Counters, Hop as Effects, HopError, HopId, Jitter, Loss as SimLoss, Luck, Markov, Network,
    NodeId, QueueSeries, Rate, Reordering, Site, Stream, Summary, Tap, Time, World,
};

use crate::contender::{Contender, ContenderKind};
use crate::mix::{Mix, Part};
use crate::nodes::{CONTENT, Client, GET, Host, Plan, Server, batch_size, start};
use crate::results::{Hash64, Population, RunResult, Series, jain_index};
use crate::scenario::{Hop, Ip, Jitter as Range, Loss, Scenario, WorkloadKind};

/// What is recorded of a run beside its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Nothing.
    Totals,
    /// RTO and queue lengths over time.
    Series,
}

const SERVER_SITE: Site = Site(0);
const CLIENTS_SITE: Site = Site(1);

/// Servers and their clients, made one by one as they take their places.
type Hosts<'a> = (Vec<Host>, Box<dyn Iterator<Item = Host> + 'a>);

/// What is measured of a run that lasts a fixed time: from a moment on, until its end.
type Window = (Time, Time);

/// Clients whose RTO is recorded.
const OBSERVED_CLIENTS: u32 = 3;

/// A run that does not end by itself is ended after so many simulated seconds.
const LIMIT: Time = Time::from_secs(1_000_000);

/// Over TCP, connections are made this long before the clock starts where they are made beforehand.
const CONNECTING: Time = Time::from_secs(60);

/// Points that a recorded series has at most.
const POINTS: usize = 800;

/// Runs `scenario` with `contender` and the random numbers of `seed`.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64, observe: Observe) -> RunResult {
    if observe == Observe::Totals {
        return run_tapped(scenario, contender, seed, observe, ()).0;
    }
    let (mut result, queues) = run_tapped(scenario, contender, seed, observe, QueueSeries::new(POINTS));
    let series = hop_names(scenario).into_iter().zip(0..).map(|(name, hop)| {
        let points = queues.hop(HopId(hop)).iter().map(|&(time, bytes)| (time.as_secs_f64(), bytes as f64));
        Series { name, points: points.collect(), ..Series::default() }
    });
    // A hop without a link has no queue.
    result.queues = series.filter(|series| series.points.iter().any(|&(_, bytes)| bytes > 0.0)).collect();
    result
}

/// As [`run`], watched by `tap`, which is returned.
pub fn run_tapped<T: Tap>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    observe: Observe,
    tap: T,
) -> (RunResult, T) {
    let luck = Luck::new(seed);
    let (servers, clients) = match &contender.kind {
        ContenderKind::Udp(mix) => udp_hosts(scenario, mix, luck, observe),
        ContenderKind::Tcp => tcp_hosts(scenario, luck, seed),
    };
    let mut world = World::new(network(scenario, luck), (Counters::new(), tap));
    world.reserve((scenario.server.count + scenario.clients.count) as usize);
    for server in servers {
        world.add(SERVER_SITE, server);
    }
    for client in clients {
        world.add(CLIENTS_SITE, client);
    }
    world.wake_all();
    let window = window(scenario, contender);
    let unmeasured = window.filter(|&(from, _)| from > Time::ZERO).map(|(from, _)| {
        world.run(from);
        counted(scenario, contender, world.nodes(), &world.tap().0)
    });
    let Summary { ended_at, events, hash } = world.run(window.map_or(LIMIT, |(_, end)| end));
    let (hosts, (counters, tap)) = world.into_parts();
    let mut result = counted(scenario, contender, &hosts, &counters);
    if let Some(unmeasured) = &unmeasured {
        result.leave_out(unmeasured);
    }
    result.seed = seed;
    result.events = events;
    result.trace_hash = Hash64(hash);
    result.duration_s =
        window.map_or(ended_at.as_secs_f64(), |(from, end)| end.as_secs_f64() - from.as_secs_f64());
    // Until the last client had its last response; if one never had, until nothing more happened.
    let finished = result.fct_s.iter().try_fold(0.0, |last: f64, fct| Some(last.max((*fct)?)));
    let measured_s = finished.filter(|_| window.is_none()).unwrap_or(result.duration_s);
    if measured_s > 0.0 {
        let payload_bits = result.completed() as f64 * f64::from(scenario.server.payload_bytes) * 8.0;
        result.goodput_bps = payload_bits / measured_s;
        result.throughput = result.completed() as f64 / measured_s;
    }
    if let ContenderKind::Udp(mix) = &contender.kind {
        let rates: Vec<(f64, u32)> = result.rates().zip(0..).collect();
        for (part, population) in result.populations.iter_mut().enumerate() {
            let own = rates.iter().filter(|(_, client)| mix.part_of(*client) == part).map(|(rate, _)| *rate);
            population.throughput = own.clone().sum();
            population.jain = jain_index(own);
        }
    }
    (result, tap)
}

/// The window of a workload with a duration.
fn window(scenario: &Scenario, contender: &Contender) -> Option<Window> {
    let duration = scenario.workload.duration?;
    let start = match &contender.kind {
        ContenderKind::Tcp if connects_beforehand(scenario) => CONNECTING,
        _ => Time::ZERO,
    };
    Some((start + nanos(scenario.workload.warm_up), start + nanos(duration)))
}

/// What the hosts and the network have counted up to now.
fn counted(scenario: &Scenario, contender: &Contender, hosts: &[Host], counters: &Counters) -> RunResult {
    let populations = match &contender.kind {
        ContenderKind::Udp(mix) => mix.parts().iter().map(|part| Population::new(&part.label)).collect(),
        ContenderKind::Tcp => Vec::new(),
    };
    let (drops, losses) = (counters.dropped, counters.lost);
    let mut result = RunResult { drops, losses, populations, ..RunResult::default() };
    for host in hosts {
        host.report(scenario, &mut result);
    }
    result
}

/// The names of the hops, in the order of their numbers.
pub fn hop_names(scenario: &Scenario) -> Vec<String> {
    let up = scenario.network.up.iter().map(|hop| format!("up.{}", hop.name));
    up.chain(scenario.network.down.iter().map(|hop| format!("down.{}", hop.name))).collect()
}

/// The headers that the network adds.
pub fn accounting(scenario: &Scenario) -> Accounting {
    match scenario.network.ip {
        Ip::V4 => Accounting::Ipv4,
        Ip::V6 => Accounting::Ipv6,
    }
}

/// The clients at one site, the server at another, the hops of the scenario between them.
fn network(scenario: &Scenario, luck: Luck) -> Network {
    let mut network = Network::new(luck, accounting(scenario));
    for (way, hops, from, to) in [
        ("up", &scenario.network.up, CLIENTS_SITE, SERVER_SITE),
        ("down", &scenario.network.down, SERVER_SITE, CLIENTS_SITE),
    ] {
        let path: Result<Vec<HopId>, HopError> =
            hops.iter().map(|hop| network.add_hop(&format!("{way}.{}", hop.name), effects(hop))).collect();
        let path = path.expect("a scenario's values are within what a hop takes");
        network.connect(from, to, &path).expect("a scenario has 1 to 16 hops each way");
    }
    network
}

fn effects(hop: &Hop) -> Effects {
    let loss = match &hop.loss {
        Loss::Random(0.0) => SimLoss::None,
        Loss::Random(probability) => SimLoss::Random(*probability),
        Loss::Burst(burst) => SimLoss::Markov(Markov {
            p_good: burst.good,
            p_bad: burst.bad,
            good_to_bad: 1.0 / burst.mean_good_packets(),
            bad_to_good: 1.0 / f64::from(burst.mean_bad_packets),
        }),
    };
    let Range { min, max } = hop.jitter;
    Effects {
        rate: hop.rate.map(|bits_per_second| Rate {
            bits_per_second,
            capacity_bytes: hop.buffer_bytes.unwrap_or(u64::MAX),
        }),
        delay_ns: nanos(hop.delay),
        loss,
        jitter: (max > Duration::ZERO).then(|| Jitter { min_ns: nanos(min), max_ns: nanos(max) }),
        reordering: hop
            .reordering
            .as_ref()
            .map(|late| Reordering { probability: late.probability, extra_ns: nanos(late.delay) }),
    }
}

fn udp_hosts<'a>(scenario: &'a Scenario, mix: &'a Mix, luck: Luck, observe: Observe) -> Hosts<'a> {
    let Scenario { clients, server, workload, .. } = scenario;
    let config = Config {
        max_retransmit: clients.max_retransmit,
        nstart: clients.nstart,
        max_exchanges: 1,
        max_peers: 1,
        // Responses are piggybacked: a client has no duplicates to recognise.
        max_deduplicated: 0,
        ..Config::default()
    };
    let plan = |(population, part): (usize, &Part)| {
        Arc::new(Plan {
            population,
            setup: Arc::new(Setup { controller: part.mechanism, config }),
            request: request(scenario),
            exchanges: workload.exchanges,
            batch: match workload.kind {
                WorkloadKind::Continuous => None,
                WorkloadKind::Random => Some((workload.batch_min, workload.batch_max)),
            },
            think_time: workload.think_time,
            dither: luck.stream("dither"),
            start_spread_ns: nanos(clients.start_spread),
            starts: luck.stream("start"),
            batches: luck.stream("batches"),
        })
    };
    let plans: Vec<_> = mix.parts().iter().enumerate().map(plan).collect();
    let clients_of_a_server = clients.count.div_ceil(server.count);
    let config = Config {
        max_peers: clients_of_a_server,
        max_replies: clients_of_a_server.max(64),
        max_deduplicated: if server.deduplication { clients_of_a_server.saturating_mul(64) } else { 0 },
        ..config
    };
    // A server begins no exchange: its mechanism is never asked.
    let setup = Arc::new(Setup { controller: REGISTRY[0].mechanism, config });
    let server = |id| {
        let processing_ns = nanos(server.processing_delay);
        Host::Server(Box::new(Server::new(setup.clone(), NodeId(id), response(scenario), processing_ns)))
    };
    let client = move |client| {
        let part = mix.part_of(client - 1);
        let series = (observe == Observe::Series && client <= OBSERVED_CLIENTS).then(|| match mix.parts() {
            [_] => format!("client {client}"),
            parts => format!("client {client}, {}", parts[part].label),
        });
        Host::Client(Client::new(plans[part].clone(), client, server_of(scenario, client), series))
    };
    ((0..scenario.server.count).map(server).collect(), Box::new((1..=clients.count).map(client)))
}

fn tcp_hosts(scenario: &Scenario, luck: Luck, seed: u64) -> Hosts<'_> {
    let Scenario { clients, server, tcp, network, .. } = scenario;
    let parameters = TcpParameters {
        mtu: network.mtu.try_into().unwrap_or(u16::MAX),
        ack_delay_us: tcp.delayed_ack.as_micros().try_into().unwrap_or(u32::MAX),
        nagle: tcp.nagle,
        handshake_timeout_percent: tcp.handshake_timeout_percent.try_into().unwrap_or(u16::MAX),
        ..TcpParameters::default()
    };
    let (sizes, starts) = (luck.stream("batches"), luck.stream("start"));
    let beforehand = connects_beforehand(scenario);
    let response = TcpResponse { code: CONTENT, tail: response(scenario) };
    // A client may have connections on their way down while it has a new one.
    let connections = 16 * clients.count.div_ceil(server.count) as usize;
    let server = |id| {
        // The first server's seed is the run's own.
        let seed = seed.wrapping_add(u64::from(id) << 48);
        Host::TcpServer(Box::new(TcpServer::new(NodeId(id), response.clone(), connections, parameters, seed)))
    };
    let client = move |client| {
        let start = start(nanos(clients.start_spread), starts, client);
        // One after the other, so that the handshakes do not measure a queue of their own making.
        let turn = CONNECTING.as_nanos() / 2 * u64::from(client) / u64::from(clients.count);
        let plan = TcpPlan {
            server: server_of(scenario, client),
            batches: batches(scenario, sizes, client),
            connect_at: if beforehand { Time::from_nanos(turn) } else { start },
            request_at: if beforehand { start + CONNECTING.as_nanos() } else { start },
            method: GET,
            token: Token::EMPTY,
            tail: request(scenario),
        };
        // Nodes are numbered from 0, the servers first; clients from 1.
        let node = NodeId(scenario.server.count - 1 + client);
        Host::TcpClient(Box::new(TcpClient::new(node, plan, parameters, seed ^ u64::from(client) << 32)))
    };
    ((0..scenario.server.count).map(server).collect(), Box::new((1..=clients.count).map(client)))
}

/// The server that a client asks, both counted in turn.
fn server_of(scenario: &Scenario, client: u32) -> NodeId {
    NodeId((client - 1) % scenario.server.count)
}

/// Whether the clock starts when the connections of TCP are made.
fn connects_beforehand(scenario: &Scenario) -> bool {
    scenario.workload.kind == WorkloadKind::Continuous && scenario.tcp.connect_first
}

/// Options of a request: its path.
fn request(scenario: &Scenario) -> Vec<u8> {
    let path = scenario.clients.uri_path_segments();
    path.fold(Tail::default(), |tail, segment| {
        tail.option(coap_numbers::option::URI_PATH, segment.as_bytes())
    })
    .into_bytes()
}

/// The payload of a response.
fn response(scenario: &Scenario) -> Vec<u8> {
    Tail::default().payload(&vec![b'.'; scenario.server.payload_bytes as usize]).into_bytes()
}

/// The batches of a client: sizes that add up to its exchanges, the last one cut short.
fn batches(scenario: &Scenario, sizes: Stream, client: u32) -> Vec<u32> {
    let workload = &scenario.workload;
    // Without a number of exchanges, more than there is time for.
    let exchanges = workload.exchanges.unwrap_or(u32::MAX);
    if workload.kind == WorkloadKind::Continuous {
        return vec![exchanges];
    }
    let mut batches = Vec::new();
    let mut left = exchanges;
    while left > 0 {
        let bounds = (workload.batch_min, workload.batch_max);
        let size = batch_size(bounds, sizes, client, batches.len() as u32).min(left);
        batches.push(size);
        left -= size;
    }
    batches
}

fn nanos(span: Duration) -> u64 {
    span.as_micros().saturating_mul(1_000)
}
