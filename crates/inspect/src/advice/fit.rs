//! The search for a path with which a simulation is most like a capture.

use coapace_run::contender::Contender;
use coapace_scenario::ScenarioError;
use coapace_sim::{Luck, Stream};

use super::fates::Fates;
use super::link::{BAD, EstimatedLink};
use super::measures::TrafficMeasures;
use super::scenario_file::ScenarioFile;
use super::simulated;

/// The seed of the simulations of a fit. Users hardly choose it for a ranking, so a fit is not tuned to the seeds of
/// rankings.
const SEED: u64 = 0x000a_d71c_e000;

/// The number of paths that are tried after the initial guesses.
pub const TRIES: u64 = 240;

/// The least number of exchanges in the simulation of a path. If one run has fewer, several runs are made.
const EXCHANGES: u32 = 2_000;

/// The maximum number of runs in the simulation of a path.
const MOST_RUNS: u32 = 8;

/// A path whose rate is this many times the highest rate in the capture behaves like a path with any higher rate.
const UNSEEN: f64 = 30.0;

/// The penalty for slow paths: the distance grows by this for each factor of e by which the rate of a path is below
/// [`UNSEEN`] times the highest rate in the capture.
const SLOWNESS: f64 = 0.03;

/// The result of a fit.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The fitted path.
    pub link: EstimatedLink,
    /// The measures of a simulation with this path.
    pub measures: TrafficMeasures,
    /// The distance of these measures from the capture's measures; about 1 if they differ only by chance.
    pub distance: f64,
}

/// The search for a path that fits the measures of a capture.
#[derive(Clone, Debug)]
pub struct Fit<'a> {
    /// The measures of the capture.
    pub measured: &'a TrafficMeasures,
    /// The mechanism of the capture's clients, or one that behaves like it.
    pub contender: &'a Contender,
    /// The scenario of the capture's clients, still without a path.
    pub file: ScenarioFile<'a>,
}

impl Fit<'_> {
    /// Simulates a path. Returns the path with its measures and its distance from the capture; `None` if it cannot be
    /// simulated.
    fn try_out(&self, link: EstimatedLink) -> Option<Fitted> {
        let scenario = self.file.scenario(&link).ok()?;
        let exchanges = self.file.workload.clients.saturating_mul(self.file.workload.exchanges).max(1);
        // Few exchanges measure with much noise, which the search would follow.
        let runs = EXCHANGES.div_ceil(exchanges).clamp(1, MOST_RUNS);
        let of_run = |run: u32| {
            let traffic = simulated::traffic(&scenario, self.contender, SEED + u64::from(run));
            TrafficMeasures::of(&traffic, &Fates::of(&traffic))
        };
        let measures = TrafficMeasures::mean(&(0..runs).map(of_run).collect::<Vec<_>>())?;
        // If the capture cannot show which of two rates is right, the higher one is better: it adds no queues.
        let slowness = (UNSEEN * self.measured.peak_bps / link.rate_bps).ln().max(0.0);
        let distance = self.measured.distance(&measures) + SLOWNESS * slowness;
        Some(Fitted { link, measures, distance })
    }

    /// Searches for the path that fits the capture best. Returns `None` if no path can be simulated. `progress`
    /// receives the number of tries so far, and stops the search by returning true.
    ///
    /// # Errors
    /// Returns the error of the scenario if a setting is invalid.
    pub fn search(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Option<Fitted>, ScenarioError> {
        let guesses = self.guesses();
        // A wrong setting fails here, and not as a path that seems impossible to simulate.
        if let Some(first) = guesses.first() {
            self.file.scenario(first)?;
        }
        let mut tried: Vec<Fitted> = guesses.into_iter().filter_map(|link| self.try_out(link)).collect();
        tried.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let mut candidates: Vec<Fitted> = Vec::new();
        for it in tried {
            // Candidates with one rate and one buffer would all end at one path.
            let is_like = |other: &Fitted| {
                (other.link.rate_bps, other.link.buffer_bytes) == (it.link.rate_bps, it.link.buffer_bytes)
            };
            if candidates.len() < 4 && !candidates.iter().any(is_like) {
                candidates.push(it);
            }
        }
        // Round trips do not show which way loses packets, so both extremes are tried, too.
        let one_way =
            candidates.iter().flat_map(|it| [0.0, 1.0].map(|up_share| EstimatedLink { up_share, ..it.link }));
        // Without losses both extremes are the path that was tried already.
        let one_way: Vec<_> = one_way.filter(|link| link.loss > 0.001).collect();
        candidates.extend(one_way.into_iter().filter_map(|link| self.try_out(link)));
        candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        candidates.truncate(4);
        let luck = Luck::new(SEED).stream("fit");
        for turn in 0..TRIES {
            if progress(turn) {
                break;
            }
            let count = candidates.len() as u64;
            // In the second half, all tries go to the best candidate.
            let place = if turn * 2 < TRIES { turn % count.max(1) } else { 0 };
            // From here on the first candidate is the best.
            if turn * 2 == TRIES {
                candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            }
            let Some(current) = candidates.get_mut(place as usize) else { return Ok(None) };
            // Steps become smaller, as the search comes closer.
            let scale = 1.0 - 0.85 * turn as f64 / TRIES as f64;
            let link = varied(current.link, luck, turn, scale);
            if let Some(tried) = self.try_out(link).filter(|tried| tried.distance < current.distance) {
                *current = tried;
            }
        }
        Ok(candidates.into_iter().min_by(|a, b| a.distance.total_cmp(&b.distance)))
    }

    /// Returns the paths from which the search starts, as the measures of the capture suggest them.
    fn guesses(&self) -> Vec<EstimatedLink> {
        let (measured, workload) = (self.measured, self.file.workload);
        let [least, .., most] = measured.rtt_s;
        let bytes = f64::from(workload.packet_bytes[0] + workload.packet_bytes[1]);
        // 100 bit/s is the lowest rate of a path (`EstimatedLink::clamped`).
        let peak = measured.peak_bps.max(100.0);
        let mut guesses = Vec::new();
        // The path has carried answers at the peak, so its rate is that or higher.
        for factor in [1.0, 1.5, 4.0, 20.0] {
            let rate_bps = peak * factor;
            let sending = bytes * 8.0 / rate_bps;
            // The shortest round trip hardly waited: it is the delay and the time to send both packets.
            let delay_s = (least - sending).max(least * 0.05);
            // Without a queue, only jitter spreads round trips. With one it is a part of the spread.
            let spread = (measured.rtt_s[3] - least).max(0.0);
            for jitter_s in [spread.min(0.2 * least) * 2.0, 0.02 * least] {
                // The longest round trips waited behind one full buffer, or behind one each way.
                let waiting = ((most - least) * rate_bps / 8.0).max(4.0 * bytes);
                let has_drops = measured.busy_loss > measured.quiet_loss + 0.02;
                let mut kinds = vec![(None, measured.loss)];
                for waiting in [waiting, waiting / 2.0] {
                    // If buffers are always full, the quiet loss is theirs, wholly or in part, and not the path's.
                    let losses = [1.0, 0.25, 0.0].map(|part| part * measured.quiet_loss);
                    let differ = losses.into_iter().filter(|loss| *loss == 0.0 || *loss > 0.002);
                    kinds.extend(differ.map(|loss| (Some(waiting), loss)));
                }
                for (buffer_bytes, loss) in kinds {
                    let burst_packets = (measured.burstiness > 0.12).then(|| self.burst(loss));
                    // Far above the peak no queue grows, so a buffer is tried there only if losses look like drops.
                    if buffer_bytes.is_none() || has_drops || factor <= 1.5 {
                        guesses.push(EstimatedLink {
                            rate_bps,
                            buffer_bytes,
                            delay_s,
                            jitter_s,
                            loss,
                            up_share: 0.5,
                            burst_packets,
                        });
                    }
                }
            }
        }
        guesses.into_iter().map(EstimatedLink::clamped).collect()
    }

    /// Returns the mean length of a burst in packets that gives the measured correlation of losses, if the share `loss`
    /// of packets is lost. Losses of a two-state chain are correlated by (b − p) / (1 − p) · r. Here p is the share of
    /// losses, b the share in the bad state, and r = 1 − b / (m · (b − p)) for bursts of m packets.
    fn burst(&self, loss: f64) -> f64 {
        // The bad state has to lose more than the average, or the formula divides by 0.
        let loss = loss.min(BAD - 0.1);
        let r = (self.measured.burstiness * (1.0 - loss) / (BAD - loss)).clamp(0.0, 0.99);
        BAD / ((BAD - loss) * (1.0 - r))
    }
}

/// Returns the path with one to three of its numbers changed at random.
fn varied(link: EstimatedLink, luck: Stream, turn: u64, scale: f64) -> EstimatedLink {
    let mut varied = link;
    let changes = 1 + luck.below(3, turn, 0, 0);
    for change in 1..=changes {
        // The sum of three uniform numbers is nearly normal.
        let normal: f64 = (0..3).map(|part| luck.unit(turn, change, 10 + part) * 2.0 - 1.0).sum();
        let step = normal * scale;
        match luck.below(8, turn, change, 1) {
            0 => varied.rate_bps *= (0.35 * step).exp(),
            1 => {
                // A buffer without a limit stays so: a finite one that is never full would behave alike.
                varied.buffer_bytes = varied.buffer_bytes.map(|bytes| bytes * (0.5 * step).exp());
            }
            2 => varied.delay_s *= (0.06 * step).exp(),
            // Steps are factors, so jitter of 0 would stay 0.
            3 => varied.jitter_s = (varied.jitter_s * (0.4 * step).exp()).max(link.delay_s * 1e-3),
            // Only answers are lost, both alike, or only requests: round trips do not show finer shares.
            4 => varied.up_share = luck.below(3, turn, change, 2) as f64 / 2.0,
            // The added term lets a loss of 0 grow.
            5 => varied.loss = varied.loss * (0.2 * step).exp() + 0.003 * step,
            6 => {
                // The time to send a full buffer does not change.
                varied.rate_bps *= (0.35 * step).exp();
                varied.buffer_bytes = varied.buffer_bytes.map(|bytes| bytes * (0.35 * step).exp());
            }
            _ => varied.burst_packets = varied.burst_packets.map(|packets| packets * (0.4 * step).exp()),
        }
    }
    varied.clamped()
}
