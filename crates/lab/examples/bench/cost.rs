//! Measures the speed of the simulator on this machine, and how its cost grows with the number of clients.

use std::fs;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use coapace_control::{Controller, Cue, Draw, Duration, Instant as CoreInstant, Outcome, REGISTRY, Sample};
use coapace_scenario::{Scenario, ScenarioError};

use coapace_run::contender::Contender;
use coapace_run::{Observe, run};

/// The cost of a simulation with some number of clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Requests sent, retransmissions included. The number of responses is the same.
    pub(super) requests: u64,
    /// Exchanges completed.
    pub(super) exchanges: u64,
    /// Events handled.
    pub(super) events: u64,
    /// CPU time, in seconds.
    pub(super) cpu_s: f64,
    /// Growth of this process's peak memory over the run, in bytes for each client; `None` if the system does not report it.
    pub(super) bytes_per_client: Option<f64>,
}

impl Cost {
    /// Returns the CPU time for each event, in nanoseconds.
    pub(super) fn ns_per_event(&self) -> f64 {
        self.cpu_s * 1e9 / self.events.max(1) as f64
    }
}

/// The duration of calls of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// The name of the mechanism.
    pub(super) mechanism: &'static str,
    /// The median times of `on_start`, `on_retransmit` and `on_end`, in nanoseconds.
    pub(super) ns: [f64; 3],
}

/// Measures the calls of every mechanism, chosen at run time, in an exchange with one retransmission.
pub(super) fn controller_calls() -> impl Iterator<Item = Calls> {
    const ROUNDS: usize = 200;
    const CALLS: u32 = 1_000;
    REGISTRY.iter().map(|entry| {
        let mechanism = black_box(entry.mechanism);
        let mut times = [const { Vec::new() }; 3];
        let mut state = mechanism.state();
        let cue = |ms: u64| Cue {
            now: CoreInstant::from_millis(ms),
            draw: Draw::from_bits((ms as u32).wrapping_mul(0x9e37_79b9)),
            outstanding: 1,
        };
        let mut open = Vec::with_capacity(CALLS as usize);
        for round in 0..ROUNDS as u64 {
            let ms = round * 10_000;
            // A call is too short for the clock, so a thousand calls are timed together.
            let mut time = |place: usize, calls: &mut dyn FnMut()| {
                let start = Instant::now();
                calls();
                times[place].push(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
            };
            time(0, &mut || {
                open.extend((0..CALLS).map(|_| mechanism.on_start(&mut state, black_box(cue(ms))).0));
            });
            time(1, &mut || {
                for exchange in &mut open {
                    black_box(mechanism.on_retransmit(&mut state, exchange, black_box(cue(ms + 3_000))));
                }
            });
            let sample =
                Sample::unmarked(Duration::from_millis(3_400 + round), Duration::from_millis(400 + round), 1);
            time(2, &mut || {
                for exchange in open.drain(..) {
                    let outcome = black_box(Outcome::Acked(sample));
                    mechanism.on_end(&mut state, exchange, outcome, cue(ms + 3_400));
                }
            });
        }
        let ns = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        });
        Calls { mechanism: entry.name, ns }
    })
}

/// Simulates the bottleneck of Raitahila 2019 with unlimited buffers, under `default`. The rate of the link grows with the
/// number of clients, and for 400 clients equals the rate in the thesis. So the load of each client does not depend on their
/// number.
///
/// # Errors
/// Returns an error for a number of clients outside of 1 to 1,000,000.
pub(super) fn simulate(clients: u32) -> Result<Cost, ScenarioError> {
    let scaled = |rate: u64| format!("{} bit/s", (rate * u64::from(clients)).div_ceil(400));
    let settings = [
        ("clients", clients.to_string()),
        ("buffer", "unlimited".to_owned()),
        ("network.up.radio.rate", scaled(60_000)),
        ("network.down.radio.rate", scaled(30_000)),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let scenario = Scenario::load("nb-iot", &settings)?;
    let contender = Contender::all().swap_remove(0);

    let (before, cpu_before) = (status_bytes("VmRSS:"), cpu_seconds());
    // This sets the peak of the memory back to the present value. Where it is not allowed, the peak is the one of the process so
    // far.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let result = run(&scenario, &contender, 1, Observe::Totals);
    let cpu_s = cpu_seconds() - cpu_before;
    let peak = status_bytes("VmHWM:");
    Ok(Cost {
        requests: result.requests_sent,
        exchanges: result.completed(),
        events: result.events,
        cpu_s,
        bytes_per_client: before
            .zip(peak)
            .map(|(before, peak)| peak.saturating_sub(before) as f64 / f64::from(clients)),
    })
}

/// Returns the CPU time of this thread so far, in seconds, from the kernel's accounting; without such accounting, wall-clock
/// time.
fn cpu_seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // The first field is the time on the CPU in nanoseconds (Documentation/scheduler/sched-stats.rst).
    let accounted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = accounted.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Returns a number of bytes from this process's status file (Linux).
fn status_bytes(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
