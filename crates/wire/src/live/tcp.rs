//! CoAP over the TCP of the operating system (RFC 8323), in two network namespaces with the emulated network between them.

mod client;
mod peer;
mod segments;
mod server;
mod sysctl;
mod talk;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use coapace_run::measured::RunResult;
use coapace_run::{completed, response, tcp_plans, window};
use coapace_sim::Time;
use coapace_sim::tcp::{PORT, TcpPlan};

use super::{Health, Live, LiveError};
use crate::Lateness;
use crate::emulation::waiting::EmulationClock;
use crate::emulation::{Emulation, NetworkNamespace};
use client::{ClientReport, Course};
use segments::Segments;
use server::TcpService;

/// The longest wait before the next check for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// The memory of the stack of a client's thread, in bytes.
const STACK: usize = 128 * 1024;

/// The maximum number of connections that the server accepts for each client.
const CONNECTIONS: u64 = 1_000;

/// Makes a run over TCP.
pub(super) fn run(live: &Live<'_>) -> Result<(RunResult, Health), LiveError> {
    let Live { scenario, contender, seed, .. } = *live;
    let plans = tcp_plans(scenario, seed);
    let tunnel = Emulation::new(scenario, seed).sources(plans.len()).tunnel(())?;
    let at = SocketAddr::new(tunnel.server_address(1), PORT);
    let service = Arc::new(TcpService {
        response: response(scenario),
        nagle: scenario.tcp.nagle,
        most: plans.len() as u64 * CONNECTIONS,
        stops: AtomicBool::new(false),
        answered: AtomicU64::new(0),
    });
    // Some settings hold only for sockets that are made later, so they come before any socket.
    inside(tunnel.server(), sysctl::set)?;
    // The program of another stack ends when the run does.
    let _other = live.peer.map(|peer| peer::start(peer, tunnel.server(), at, scenario)).transpose()?;
    if live.peer.is_none() {
        let listening = service.clone();
        inside(tunnel.server(), move || listening.start(at))?;
    }
    let window = window(scenario, contender);
    let course = Arc::new(Course {
        clock: EmulationClock::start(),
        server: at,
        nagle: scenario.tcp.nagle,
        measured_from: window.map_or(Time::ZERO, |(from, _)| from),
        stops: AtomicBool::new(false),
    });
    inside(tunnel.clients(), sysctl::set)?;
    // There are at most MOST_CLIENTS plans, which is less than u16::MAX, so each gets an address.
    let addresses = (1..=u16::MAX).map(|number| tunnel.client_address(number));
    let plans: Vec<_> = addresses.zip(plans).collect();
    let running = course.clone();
    let reports = inside(tunnel.clients(), move || start(plans, &running))?;
    let collected = collect(live, &course, window.map(|(_, end)| end), &reports);
    // Nothing else ends the threads, so they are stopped before an error of the clients is returned.
    service.stops.store(true, Ordering::Relaxed);
    course.stops.store(true, Ordering::Relaxed);
    let (reports, ended_at) = collected?;
    // The kernel forgets the counters with the namespaces, so they are read before the tunnel ends.
    let counters = [tunnel.clients(), tunnel.server()];
    let counters = counters.map(|side| inside(side, || Ok(Segments::here())));
    let [ours, theirs] = counters;
    let counters = [ours?, theirs?];
    let network = tunnel.stop()?.0;
    let mut result = RunResult {
        seed,
        exchanges: reports.iter().map(|report| report.completed).collect(),
        retransmissions: counters.iter().map(|counter| counter.retransmitted).sum(),
        spurious: counters.iter().map(|counter| counter.duplicate).sum(),
        responses_sent: service.answered.load(Ordering::Relaxed),
        drops: network.dropped,
        losses: network.lost,
        ..RunResult::default()
    };
    result.requests_sent = match scenario.workload.exchanges {
        Some(exchanges) => u64::from(exchanges) * reports.len() as u64,
        None => result.completed(),
    };
    if scenario.workload.exchanges.is_some() {
        let fct_s = |report: &ClientReport| Some((report.finished? - report.first_request?).as_secs_f64());
        result.fct_s = reports.iter().map(fct_s).collect();
    }
    completed(scenario, contender, window, ended_at, &mut result);
    // The timers are the kernel's, and nothing shows how late they fire.
    Ok((result, Health::of(Lateness::default(), network)))
}

/// Runs a job in a network namespace. Threads and sockets that it makes are in it, too.
fn inside<R: Send + 'static>(
    side: &NetworkNamespace,
    job: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> Result<R, LiveError> {
    side.run(job).and_then(|done| done).map_err(LiveError::io("run TCP in a network namespace"))
}

/// Starts the clients, each with a thread and an address of its own. Returns the receiver of their reports, each with
/// the client's index.
fn start(plans: Vec<(IpAddr, TcpPlan)>, course: &Arc<Course>) -> io::Result<Receiver<(usize, ClientReport)>> {
    let (sender, reports) = channel();
    for (place, (address, plan)) in plans.into_iter().enumerate() {
        let (course, sender) = (course.clone(), sender.clone());
        let work = move || {
            // Nobody waits for reports after an interruption.
            let _ = sender.send((place, course.run(address, &plan)));
        };
        thread::Builder::new().stack_size(STACK).spawn(work)?;
    }
    Ok(reports)
}

/// Waits for the reports of all clients, and stops the clients at `end`, if given. Returns the reports and the time of
/// the last report.
fn collect(
    live: &Live<'_>,
    course: &Course,
    end: Option<Time>,
    coming: &Receiver<(usize, ClientReport)>,
) -> Result<(Vec<ClientReport>, Time), LiveError> {
    let mut reports = vec![ClientReport::default(); live.scenario.clients.count as usize];
    loop {
        match coming.recv_timeout(PATIENCE) {
            Ok((place, report)) => reports[place] = report,
            // The last client has dropped its sender.
            Err(RecvTimeoutError::Disconnected) => return Ok((reports, course.clock.now())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = course.clock.now();
        if end.is_some_and(|end| now >= end) {
            course.stops.store(true, Ordering::Relaxed);
        }
        live.check(now, || reports.iter().map(|report| u64::from(report.completed)).sum())?;
    }
}
