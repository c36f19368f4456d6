//! One run: a scenario, a contender and a seed.

mod closed;
mod congestion;
mod endpoints;
mod filming;
mod flows;
mod following;
mod hops;
mod medium;
mod mesh;
mod messages;
mod observe;
mod seats;
mod tcp;

pub use hops::{accounting, hop_names, network};
pub use observe::Observe;
pub use seats::{CLIENTS_SITE, SERVER_SITE};

use coapace_scenario::{Hash64, Scenario, WorkloadKind};
use coapace_sim::{Counters, HopId, Luck, QueueSeries, Summary, Tap, Time, World};

use crate::contender::{Contender, ContenderKind};
use crate::nodes::Host;
use crate::results::{Population, RunResult, Series, jain_index};
use congestion::Congestion;
use filming::Filming;
use following::Following;
use medium::CountingMedium;
use seats::Seats;
use tcp::{CONNECTING, connects_beforehand};

/// The beginning and the end of the measured part of a run of fixed length.
type Window = (Time, Time);

/// The taps that every run has.
type Totals = (Counters, Option<Congestion>);

/// The latest end of a run without a fixed length, in simulated time.
const LIMIT: Time = Time::from_secs(1_000_000);

/// The most points of a recorded series of a queue.
const POINTS: usize = 800;

/// Runs `scenario` with `contender` and the random numbers of `seed`.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64, observe: Observe) -> RunResult {
    if observe == Observe::Totals {
        return run_tapped(scenario, contender, seed, observe, ()).0;
    }
    let following = scenario.network.mesh.is_some().then(Following::new);
    let tap = (QueueSeries::new(POINTS), following);
    let (mut result, (queues, following)) = run_tapped(scenario, contender, seed, observe, tap);
    if let (Some(film), Some(following)) = (&mut result.film, following) {
        film.journeys = following.finish();
    }
    let series = hop_names(scenario).into_iter().zip(0..).map(|(name, hop)| {
        let points = queues.hop(HopId(hop)).iter().map(|&(time, bytes)| (time.as_secs_f64(), bytes as f64));
        Series { name, points: points.collect(), ..Series::default() }
    });
    // A hop without a rate has no queue.
    result.queues = series.filter(|series| series.points.iter().any(|&(_, bytes)| bytes > 0.0)).collect();
    result
}

/// Runs like [`run`], reports every event to `tap`, and returns it.
pub fn run_tapped<T: Tap>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    observe: Observe,
    tap: T,
) -> (RunResult, T) {
    let luck = Luck::new(seed);
    match (&scenario.network.mesh, scenario.places()) {
        (Some(mesh), Some(places)) => {
            let end = window(scenario, contender).map_or(LIMIT, |(_, end)| end);
            let medium = mesh::medium(mesh, places, luck, end);
            simulate(scenario, contender, seed, observe, medium, tap)
        }
        _ => simulate(scenario, contender, seed, observe, hops::network(scenario, luck), tap),
    }
}

fn simulate<T: Tap, M: CountingMedium>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    observe: Observe,
    medium: M,
    tap: T,
) -> (RunResult, T) {
    let luck = Luck::new(seed);
    let seats = Seats::of(scenario);
    let window = window(scenario, contender);
    let (from, end) = window.unwrap_or((Time::ZERO, LIMIT));
    let has_flows = scenario.workload.kind == WorkloadKind::Flows;
    let mut host = match &contender.kind {
        ContenderKind::Udp(mix) if has_flows => {
            flows::hosts(scenario, &seats, mix, luck, observe, (from, end))
        }
        ContenderKind::Udp(mix) => closed::hosts(scenario, &seats, mix, luck, observe, from),
        ContenderKind::Tcp => tcp::hosts(scenario, &seats, luck, seed),
    };
    let congestion = scenario.network.ecn_capable.then(|| Congestion::new(seats.servers()));
    let mut world = World::new(medium, ((Counters::new(), congestion), tap));
    world.reserve(seats.len());
    for (site, role) in seats.roles() {
        world.add(site, host(role));
    }
    world.wake_all();
    let count = |world: &World<Host, (Totals, T), M>, now: Time| {
        let (counters, congestion) = &world.tap().0;
        let mut result = counted(scenario, contender, world.nodes(), counters);
        result.ecn = congestion.as_ref().map(Congestion::counts);
        world.medium().count(now, &mut result);
        result
    };
    let is_fixed = window.is_some();
    let mut filming = Filming::new(scenario, &seats, window.map(|(_, end)| end), observe == Observe::Series);
    let unmeasured = (from > Time::ZERO).then(|| {
        filming.advance(&mut world, from, is_fixed);
        count(&world, from)
    });
    filming.advance(&mut world, end, is_fixed);
    let Summary { ended_at, events, hash } = world.summary();
    let mut result = count(&world, window.map_or(ended_at, |(_, end)| end));
    let (hosts, (_, tap)) = world.into_parts();
    if let Some(unmeasured) = &unmeasured {
        result.leave_out(unmeasured);
    }
    result.film = filming.finish();
    result.seed = seed;
    result.events = events;
    result.trace_hash = Hash64(hash);
    result.duration_s =
        window.map_or(ended_at.as_secs_f64(), |(from, end)| end.as_secs_f64() - from.as_secs_f64());
    // The measured time ends with the last response of the last client, or with the run if a client never had it.
    let finished = result.fct_s.iter().try_fold(0.0, |last: f64, fct| Some(last.max((*fct)?)));
    let measured_s = finished.filter(|_| window.is_none()).unwrap_or(result.duration_s);
    if measured_s > 0.0 {
        let payload_bits = result.completed() as f64 * f64::from(scenario.server.payload_bytes) * 8.0;
        result.goodput_bps = payload_bits / measured_s;
        result.throughput = result.completed() as f64 / measured_s;
    }
    if has_flows {
        flows::settle(scenario, &seats, &hosts, (from, end), &mut result);
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

/// Returns the measured part of a workload with a duration; `None` for other workloads.
fn window(scenario: &Scenario, contender: &Contender) -> Option<Window> {
    let duration = scenario.workload.duration?;
    let start = match &contender.kind {
        ContenderKind::Tcp if connects_beforehand(scenario) => Time::ZERO + CONNECTING,
        _ => Time::ZERO,
    };
    Some((start + scenario.workload.warm_up, start + duration))
}

/// Returns what the hosts and the network have counted so far.
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
