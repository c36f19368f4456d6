//! The findings of a capture: exchanges, round-trip times, losses, needless copies.

use std::collections::BTreeMap;

use coapace_run::measured::quantile;
use serde::Serialize;

use super::capture::Ending;
use super::clock::ClockStep;
use super::datagram::Skipped;
use super::exchanges::From;
use super::fates::{Certainty, Fate, Fates};
use super::lives::Starts;
use super::measures::{TrafficMeasures, needless};
use super::statistics::wilson;
use super::timeouts::UsedTimeouts;
use super::traffic::{CaptureEnd, Traffic};
use super::workload::ObservedWorkload;

/// The reason for which datagrams of other protocols are left out.
pub const OTHERS: &str = "other protocols over UDP";

/// The findings of a capture about its traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The packets that were read and those that were not.
    pub reading: ReadCounts,
    /// The side where it was taken.
    pub side: CaptureEnd,
    /// The reason for the side.
    pub side_because: SideBecause,
    /// The clients: programs that ran one after the other at one address, towards one server.
    pub clients: usize,
    /// The new starts of clients.
    pub starts: Starts,
    /// The servers with an address and port of their own.
    pub servers: usize,
    /// Confirmable requests, without their copies.
    pub exchanges: usize,
    /// Exchanges that were answered.
    pub completed: usize,
    /// Exchanges that were given up.
    pub given_up: u64,
    /// Requests that are not confirmable, pings and confirmable messages of servers.
    pub others: usize,
    /// Transmissions of the exchanges.
    pub transmissions: usize,
    /// Retransmissions of the exchanges.
    pub retransmissions: usize,
    /// Retransmissions that were made although an earlier copy was answered, then or later. `None` on the server's side.
    pub needless: Option<u64>,
    /// Answers beyond one for each copy.
    pub duplicates: u64,
    /// Message IDs that came again too soon (RFC 7252 §4.4).
    pub reused_ids: u64,
    /// Round-trip times; the time of the server alone on its side.
    pub round_trips: Option<RoundTrips>,
    /// Losses.
    pub loss: Option<LossEstimate>,
    /// The timeouts of the clients.
    pub timeouts: Option<UsedTimeouts>,
}

/// The reason why a capture counts as taken on a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideBecause {
    /// The caller said so.
    Said,
    /// Copies and answers look like it.
    Looks,
    /// The traffic does not show it. The side of the client is assumed.
    Assumed,
}

/// The packets and messages that were read, and those that were not.
#[derive(Clone, Debug, Serialize)]
pub struct ReadCounts {
    /// All packets.
    pub packets: u64,
    /// CoAP messages.
    pub messages: u64,
    /// Encrypted datagrams (DTLS).
    pub dtls: u64,
    /// Datagrams at CoAP's port that are not messages.
    pub malformed: u64,
    /// Packets that are not CoAP or cannot be read, by the reason.
    pub skipped: BTreeMap<String, u64>,
    /// Datagrams that the capture shows a second time. Each counts once in everything else.
    pub again: u64,
    /// Messages that tshark read, because this program knows no reader for their link type or tunnel.
    pub by_tshark: u64,
    /// The steps of the clock. No time includes them.
    pub steps: Vec<ClockStep>,
    /// Messages that were open at a step, and copies of them behind it. They count in nothing else.
    pub torn: u64,
    /// Messages that no table had room for.
    pub left_out: u64,
    /// Answers and notifications without a request.
    pub unmatched: u64,
    /// The time from the first packet to the last, in seconds.
    pub seconds: f64,
    /// The fault at the end of the file, if there is one.
    pub damage: Option<String>,
    /// Whether a simulation wrote it.
    pub simulated: bool,
}

/// Round-trip times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrips {
    /// The number of times.
    pub count: usize,
    /// Times beyond doubt: the exchange has one copy, or its copies are marked.
    pub unambiguous: usize,
    /// Times of exchanges with at least as many answers as copies, paired in their order.
    pub in_order: usize,
    /// Times of exchanges with fewer answers than copies, paired so that they come closest to the times around.
    pub likely: usize,
    /// The shortest.
    pub min_s: f64,
    /// The 5 % quantile.
    pub p5_s: f64,
    /// The 25 % quantile.
    pub p25_s: f64,
    /// The median.
    pub p50_s: f64,
    /// The 75 % quantile.
    pub p75_s: f64,
    /// The 95 % quantile.
    pub p95_s: f64,
    /// The 99 % quantile.
    pub p99_s: f64,
    /// The longest.
    pub max_s: f64,
}

/// Losses.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LossEstimate {
    /// The share that was lost.
    pub share: f64,
    /// The lower end of its 95 % interval. The interval is wider if losses come in bursts.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The number of transmissions, or answers, that were counted.
    pub of: usize,
    /// The way in which losses were counted.
    pub method: LossMethod,
    /// The share at moments when round trips were short: at most their 30 % quantile.
    pub quiet: f64,
    /// The share at moments when round trips were long: at least their 70 % quantile. A share far above `quiet` is a sign of full
    /// queues.
    pub busy: f64,
    /// The correlation of the losses of successive transmissions; above 0.1 they come in bursts.
    pub burstiness: f64,
}

/// The way in which losses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossMethod {
    /// Round trips: every transmission without an answer of its own.
    RoundTrips,
    /// Round trips to a server that answers one copy only: copies before the answered one, and all copies of an exchange without
    /// an answer.
    UntilAnswered,
    /// Answers behind which a copy comes. Requests that are lost before the capture are not counted.
    Answers,
}

impl Findings {
    /// Returns the findings of traffic. `said` is the side that the caller knows.
    pub fn of(traffic: &Traffic, fates: &Fates, said: Option<CaptureEnd>) -> Self {
        let (side, side_because) = match (said, traffic.side()) {
            (Some(side), _) => (side, SideBecause::Said),
            (None, Some(side)) => (side, SideBecause::Looks),
            (None, None) => (CaptureEnd::Client, SideBecause::Assumed),
        };
        let exchanges = || traffic.of_clients().filter(|exchange| exchange.is_confirmable);
        let count = exchanges().count();
        let workload = ObservedWorkload::of(traffic);
        let transmissions: usize = exchanges().map(|exchange| exchange.copies.len()).sum();
        // Beside the server a capture has no round trips, so losses are counted from answers, and needless copies are unknown.
        let has_round_trips = side != CaptureEnd::Server;
        Self {
            reading: ReadCounts::of(traffic),
            side,
            side_because,
            clients: workload.as_ref().map_or(0, |workload| workload.clients as usize),
            starts: traffic.starts,
            servers: workload.as_ref().map_or(0, |workload| workload.servers as usize),
            exchanges: count,
            completed: exchanges().filter(|exchange| exchange.ended_at().is_some()).count(),
            given_up: workload.map_or(0, |workload| workload.given_up),
            others: traffic.exchanges.len() - count,
            transmissions,
            retransmissions: transmissions - count,
            needless: has_round_trips.then(|| needless(fates)),
            duplicates: fates.duplicates,
            reused_ids: traffic.counts.reused_ids,
            round_trips: RoundTrips::of(fates),
            loss: if has_round_trips {
                LossEstimate::of_round_trips(traffic, fates)
            } else {
                LossEstimate::of_answers(traffic)
            },
            timeouts: UsedTimeouts::of(traffic),
        }
    }
}

impl ReadCounts {
    fn of(traffic: &Traffic) -> Self {
        let counts = &traffic.counts;
        let name = |skipped: &Skipped| match skipped {
            Skipped::Link(link) => format!("of link type {link}, which is not read"),
            Skipped::Tunnel => "in tunnels, which are not read".to_owned(),
            Skipped::NotUdp => "not UDP".to_owned(),
            Skipped::Fragment => "further fragments of IP".to_owned(),
            Skipped::Repeated => "repeated or further radio frames".to_owned(),
            Skipped::Forwarded => "radio frames between two forwarders".to_owned(),
            Skipped::Malformed => "headers cut off or malformed".to_owned(),
        };
        let others = (counts.others > 0).then(|| (OTHERS.to_owned(), counts.others));
        Self {
            packets: counts.packets,
            messages: counts.messages,
            dtls: counts.dtls,
            malformed: counts.malformed,
            skipped: counts
                .skipped
                .iter()
                .map(|(reason, count)| (name(reason), *count))
                .chain(others)
                .collect(),
            again: counts.again,
            by_tshark: counts.by_tshark,
            steps: traffic.steps.clone(),
            torn: counts.torn,
            left_out: counts.left_out,
            unmatched: counts.unmatched,
            seconds: traffic.span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()),
            damage: match traffic.ending {
                Ending::Complete => None,
                Ending::CutOff => Some("the last packet is cut off".to_owned()),
                Ending::Garbage(bytes) => Some(format!("garbage behind {bytes} bytes, which is left out")),
                Ending::Stopped => Some("reading was stopped".to_owned()),
            },
            simulated: traffic.is_simulated,
        }
    }
}

impl RoundTrips {
    /// Returns the distribution of round-trip times; `None` if there are none.
    pub fn of(fates: &Fates) -> Option<Self> {
        let mut times: Vec<f64> = fates.round_trips().collect();
        times.sort_by(f64::total_cmp);
        let count = |meant: Certainty| {
            let is_meant = |fate: Fate| matches!(fate, Fate::Answered(_, certainty) if certainty == meant);
            fates.all.iter().filter(|it| is_meant(it.fate)).count()
        };
        let at = |share| quantile(&times, share);
        Some(Self {
            count: times.len(),
            unambiguous: count(Certainty::Unambiguous),
            in_order: count(Certainty::InOrder),
            likely: count(Certainty::Likely),
            min_s: at(0.0)?,
            p5_s: at(0.05)?,
            p25_s: at(0.25)?,
            p50_s: at(0.5)?,
            p75_s: at(0.75)?,
            p95_s: at(0.95)?,
            p99_s: at(0.99)?,
            max_s: at(1.0)?,
        })
    }
}

impl LossEstimate {
    fn of_round_trips(traffic: &Traffic, fates: &Fates) -> Option<Self> {
        let TrafficMeasures { loss, quiet_loss, busy_loss, burstiness, known, .. } =
            TrafficMeasures::of(traffic, fates);
        let method = if fates.answers_copies { LossMethod::RoundTrips } else { LossMethod::UntilAnswered };
        Self::counted(loss, known, method, [quiet_loss, busy_loss, burstiness])
    }

    fn of_answers(traffic: &Traffic) -> Option<Self> {
        let (mut answers, mut lost) = (0usize, 0usize);
        for exchange in traffic.exchanges.iter().filter(|exchange| exchange.from == From::Client) {
            let Some(final_copy) = exchange.copies.last() else { continue };
            answers += exchange.answers.len();
            lost += exchange.answers.iter().filter(|answer| answer.at < final_copy.at).count();
        }
        let share = lost as f64 / answers.max(1) as f64;
        Self::counted(share, answers, LossMethod::Answers, [share, share, 0.0])
    }

    fn counted(
        share: f64,
        of: usize,
        method: LossMethod,
        [quiet, busy, burstiness]: [f64; 3],
    ) -> Option<Self> {
        if of == 0 {
            return None;
        }
        // Correlated losses carry as much information as fewer independent ones.
        let correlation = burstiness.clamp(0.0, 0.95);
        let independent = of as f64 * (1.0 - correlation) / (1.0 + correlation);
        let (low, high) = wilson(share * independent, independent);
        Some(Self { share, low, high, of, method, quiet, busy, burstiness })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::super::capture::tests::pcap;
    use super::super::headers::tests::ip;
    use super::super::link::EstimatedLink;
    use super::super::replay::Replay;
    use super::super::scenario_file::ScenarioFile;
    use super::super::traffic::{self, Reading};
    use super::*;

    proptest! {
        #[test]
        fn no_order_of_messages_makes_it_panic(
            messages in prop::collection::vec((0..9_000_000u64, any::<bool>(), 0..4u8, 0..70u8, 0..3u8, 0..3u8), 0..60),
            is_sorted in any::<bool>(),
        ) {
            let mut messages = messages;
            if is_sorted {
                messages.sort_unstable();
            }
            let ends = ["10.0.0.1:40000", "10.0.0.2:5683"];
            let packets: Vec<(u64, Vec<u8>)> = messages
                .iter()
                .map(|&(us, is_client, kind, code, id, token)| {
                    // An empty message has no token.
                    let bytes: &[u8] = &[0x41 | kind << 4, code, 0, id, token];
                    let empty: &[u8] = &[0x40 | kind << 4, 0, 0, id];
                    let [from, to] = if is_client { ends } else { [ends[1], ends[0]] };
                    (us * 100, ip(from, to, if code == 0 { empty } else { bytes }))
                })
                .collect();
            let packets: Vec<(u64, &[u8])> = packets.iter().map(|(us, bytes)| (*us, &bytes[..])).collect();
            let file = pcap(101, &packets);
            let traffic = traffic::read(&*file, &Reading::default(), None, &mut || ControlFlow::Continue(())).unwrap();
            let fates = Fates::of(&traffic);
            let findings = Findings::of(&traffic, &fates, None);
            prop_assert!(serde_json::to_string(&findings).is_ok());
            prop_assert!(findings.transmissions >= findings.exchanges);
            let loss = findings.loss.map_or(0.0, |loss| loss.share);
            prop_assert!((0.0..=1.0).contains(&loss));
            let replayed = Replay::new(&traffic, &fates, loss).one("cocoa", &"cocoa".parse().unwrap());
            prop_assert_eq!(replayed.exchanges as usize, findings.exchanges);
            if let Some(workload) = ObservedWorkload::of(&traffic) {
                let file = ScenarioFile { workload: &workload, capture: "x", settings: &[] };
                let (rate_bps, delay_s, up_share) = (1e4, 0.1, 0.5);
                let link = EstimatedLink { rate_bps, buffer_bytes: None, delay_s, jitter_s: 0.0, loss, up_share, burst_packets: None };
                prop_assert!(file.text(&link.clamped(), &[]).is_ok());
            }
        }
    }
}
