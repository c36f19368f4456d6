//! One run of a scenario with a contender and a seed, and its results.
//!
//! * A *contender* is a mechanism, a mix of several, or CoAP over TCP. The clients of a mix that have the same mechanism are a
//!   *population*.
//! * A [run](run()) makes a [`RunResult`].
//! * A *flow* is a series of messages that clients offer to a server. A *sink* is a server in a mesh or of a flow. A *mote* is
//!   a host with flows.
//! * A [film](measured::Film) shows the nodes of a mesh at regular times of a run. A [journey](measured::Journey) is the path
//!   of one exchange through the mesh.

pub mod capture;
mod cast;
mod closed;
mod congestion;
pub mod contender;
mod endpoints;
mod filming;
mod flows;
mod following;
mod hops;
pub mod measured;
mod medium;
pub mod mix;
mod nodes;
mod observe;
mod seats;
mod tcp;
mod transfers;
pub mod workers;

pub use cast::{Cast, completed, needs_datagrams_alone, window};
pub use endpoints::{request, response};
pub use hops::{accounting, hop_names, network};
pub use observe::Observe;
pub use seats::{CLIENTS_SITE, SERVER_SITE};
pub use tcp::tcp_plans;

use coapace_scenario::{Hash64, Scenario, WorkloadKind};
use coapace_sim::{HopId, Luck, PacketCounters, QueueSeries, Summary, Tap, Time, World};

use crate::contender::Contender;
use crate::measured::{RunResult, Series};
use crate::nodes::HostNode;
use congestion::Congestion;
use filming::Filming;
use following::Following;
use medium::CountingMedium;
use observe::Run;
use seats::Seats;

/// The taps that count the packets of every run, and its CE marks.
type Totals = (PacketCounters, Option<Congestion>);

/// The latest end of a run without a fixed length, in simulated time.
const LIMIT: Time = Time::from_secs(1_000_000);

/// The maximum number of points of a recorded queue length over time.
const POINTS: usize = 800;

/// Runs `scenario` with `contender` and the random numbers of `seed`. `observe` says whether time series are recorded.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64, observe: Observe) -> RunResult {
    if observe == Observe::Totals {
        return run_tapped(scenario, contender, seed, observe, ()).0;
    }
    // Series and journeys cost memory for every packet, so only observed runs have their taps.
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

/// Runs like [`run`], and passes every event to `tap`. Returns the result and `tap`.
pub fn run_tapped<T: Tap>(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    observe: Observe,
    tap: T,
) -> (RunResult, T) {
    let (run, luck) = (Run { scenario, contender, seed, observe }, Luck::new(seed));
    match (&scenario.network.mesh, scenario.places()) {
        (Some(mesh), Some(places)) => {
            // All movements up to the end are computed before the run begins.
            let end = window(scenario, contender).map_or(LIMIT, |(_, end)| end);
            simulate(run, medium::mesh(mesh, places, luck, end), tap)
        }
        _ => simulate(run, hops::network(scenario, luck), tap),
    }
}

fn simulate<T: Tap, M: CountingMedium>(run: Run<'_>, medium: M, tap: T) -> (RunResult, T) {
    let Run { scenario, contender, seed, observe } = run;
    let seats = Seats::of(scenario);
    let window = window(scenario, contender);
    let (from, end) = window.unwrap_or((Time::ZERO, LIMIT));
    let mut host = cast::hosts(run, &seats, (from, end));
    let congestion = scenario.network.ecn_capable.then(|| Congestion::new(seats.first_client()));
    let mut world = World::new(medium, ((PacketCounters::new(), congestion), tap));
    world.reserve(seats.roles.len());
    for &(site, role) in &seats.roles {
        world.add(site, host(role));
    }
    // All hosts are there before the first acts, so that no packet goes to a node that is missing.
    world.wake_all();
    let count = |world: &World<HostNode, (Totals, T), M>, now: Time| {
        let (counters, congestion) = &world.tap().0;
        let mut result = cast::counted(run, world.nodes(), counters.dropped, counters.lost);
        result.ecn = congestion.as_ref().map(Congestion::counts);
        world.medium().count(now, &mut result);
        result
    };
    let is_fixed = window.is_some();
    let mut filming = Filming::new(scenario, &seats, window.map(|(_, end)| end), observe == Observe::Series);
    // The hosts count from the start, so the counts of the warm-up are subtracted at the end.
    let unmeasured = (from > Time::ZERO).then(|| {
        filming.advance(&mut world, from, is_fixed);
        count(&world, from)
    });
    filming.advance(&mut world, end, is_fixed);
    let Summary { ended_at, events, hash } = world.summary();
    // A fixed window counts whole even if the last event was earlier: an idle network is measured, too.
    let mut result = count(&world, window.map_or(ended_at, |(_, end)| end));
    let (hosts, (_, tap)) = world.into_parts();
    if let Some(unmeasured) = &unmeasured {
        result.leave_out(unmeasured);
    }
    result.film = filming.finish();
    result.seed = seed;
    result.events = events;
    result.trace_hash = Hash64(hash);
    completed(scenario, contender, window, ended_at, &mut result);
    // Flows need the duration, and replace the goodput.
    if scenario.workload.kind == WorkloadKind::Flows {
        flows::settle(scenario, &seats, &hosts, (from, end), &mut result);
    }
    transfers::settle(scenario, (from, window.map_or(ended_at, |(_, end)| end)), &mut result);
    (result, tap)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
