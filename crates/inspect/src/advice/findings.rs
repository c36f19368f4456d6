//! The findings of a capture: exchanges, round-trip times, losses, spurious retransmissions.

use std::collections::BTreeMap;

use coapace_run::measured::quantile;
use serde::Serialize;

use super::capture::Ending;
use super::clock::ClockStep;
use super::datagram::Skipped;
use super::exchanges::From;
use super::fates::{Certainty, Fate, Fates, Transmission};
use super::lives::Starts;
use super::measures::{TrafficMeasures, spurious};
use super::statistics::wilson;
use super::timeouts::UsedTimeouts;
use super::traffic::{CaptureEnd, Traffic};
use super::workload::ObservedWorkload;

/// The reason in [`ReadCounts::skipped`] for datagrams of other protocols, which are left out.
pub const OTHERS: &str = "other protocols over UDP";

/// The findings about the traffic in a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The numbers of packets that were read, and of packets that were left out.
    pub reading: ReadCounts,
    /// Where the capture was taken: beside the clients, beside the server, or between them.
    pub side: CaptureEnd,
    /// How `side` was determined.
    pub side_because: SideBecause,
    /// The number of clients. Programs that ran one after the other at one address, and used one server, count as one
    /// client.
    pub clients: usize,
    /// The restarts of clients.
    pub starts: Starts,
    /// The number of servers, counted by address and port.
    pub servers: usize,
    /// The number of confirmable requests, without retransmissions.
    pub exchanges: usize,
    /// The number of exchanges that were answered.
    pub completed: usize,
    /// The number of exchanges that were given up.
    pub given_up: u64,
    /// The number of non-confirmable requests, pings and confirmable messages of servers.
    pub others: usize,
    /// The number of transmissions of the exchanges, retransmissions included.
    pub transmissions: usize,
    /// The number of retransmissions of the exchanges.
    pub retransmissions: usize,
    /// The number of spurious retransmissions: an earlier copy was answered, then or later. `None` if the capture was
    /// taken beside the server, where this is not visible.
    pub spurious: Option<u64>,
    /// The number of answers beyond one for each copy: the network or the server duplicated them.
    pub duplicates: u64,
    /// The number of Message IDs that were reused too soon (RFC 7252 §4.4).
    pub reused_ids: u64,
    /// The round-trip times. If the capture was taken beside the server, only the times that the server took. `None` if
    /// nothing was answered.
    pub round_trips: Option<RoundTrips>,
    /// The estimated losses; `None` if it is unknown for all transmissions whether they were lost.
    pub loss: Option<LossEstimate>,
    /// The timeouts of the clients; `None` without a retransmission.
    pub timeouts: Option<UsedTimeouts>,
}

/// How the side of a capture was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideBecause {
    /// The caller specified the side.
    Said,
    /// Copies and answers indicate the side.
    Looks,
    /// The traffic does not show the side; the side of the client is assumed.
    Assumed,
}

/// The numbers of packets and messages that were read, and of packets that were left out, by reason.
#[derive(Clone, Debug, Serialize)]
pub struct ReadCounts {
    /// All packets.
    pub packets: u64,
    /// CoAP messages.
    pub messages: u64,
    /// Encrypted datagrams (DTLS).
    pub dtls: u64,
    /// Datagrams at CoAP's port that cannot be read as CoAP messages.
    pub malformed: u64,
    /// Packets that are not CoAP or cannot be read, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Datagrams that the capture contains a second time. All findings leave them out.
    pub again: u64,
    /// Messages read by tshark, because this program cannot read their link type or tunnel.
    pub by_tshark: u64,
    /// The steps of the clock, which are removed from all times.
    pub steps: Vec<ClockStep>,
    /// Messages that were unanswered at a step of the clock, and their copies after the step. All findings leave them
    /// out.
    pub torn: u64,
    /// Messages left out because a table was full.
    pub left_out: u64,
    /// Answers and notifications without a request in the capture.
    pub unmatched: u64,
    /// The time from the first packet to the last, in seconds.
    pub seconds: f64,
    /// The reason why the file was not read to its end, in words; `None` if it was.
    pub damage: Option<String>,
    /// Whether a simulation wrote the capture.
    pub simulated: bool,
}

/// A distribution of round-trip times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrips {
    /// The number of round-trip times in the distribution.
    pub count: usize,
    /// The number of unambiguous round-trip times: the exchange has one copy, or its copies are marked.
    pub unambiguous: usize,
    /// The number of round-trip times from exchanges with at least as many answers as copies, which are paired in
    /// sequence.
    pub in_order: usize,
    /// The number of round-trip times from exchanges with fewer answers than copies. Answers and copies are paired so
    /// that these times are closest to other round-trip times around the same moment.
    pub likely: usize,
    /// The shortest round-trip time.
    pub min_s: f64,
    /// The 5 % quantile of round-trip times.
    pub p5_s: f64,
    /// The 25 % quantile of round-trip times.
    pub p25_s: f64,
    /// The median round-trip time.
    pub p50_s: f64,
    /// The 75 % quantile of round-trip times.
    pub p75_s: f64,
    /// The 95 % quantile of round-trip times.
    pub p95_s: f64,
    /// The 99 % quantile of round-trip times.
    pub p99_s: f64,
    /// The longest round-trip time.
    pub max_s: f64,
}

/// An estimate of losses.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LossEstimate {
    /// The share of transmissions or answers that was lost.
    pub share: f64,
    /// The lower end of the 95 % interval of `share`. The interval is wider if losses come in bursts.
    pub low: f64,
    /// The upper end of the 95 % interval of `share`.
    pub high: f64,
    /// The number of transmissions, or of answers, of which `share` is a part.
    pub of: usize,
    /// How losses were counted.
    pub method: LossMethod,
    /// The share of transmissions lost while round trips were short: at most their 30 % quantile.
    pub quiet: f64,
    /// The share of transmissions lost while round trips were long: at least their 70 % quantile. A share far above
    /// `quiet` is a sign of full queues.
    pub busy: f64,
    /// The correlation of the losses of successive transmissions. Above 0.1, losses come in bursts.
    pub burstiness: f64,
}

/// How losses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossMethod {
    /// Every transmission without its own answer counts as lost.
    RoundTrips,
    /// The server answers only one copy. The copies before the answered one count as lost, and all copies of an
    /// exchange without an answer.
    UntilAnswered,
    /// An answer counts as lost if another copy of the request follows it. Requests lost before the capture point are
    /// not counted.
    Answers,
}

impl Findings {
    /// Returns the findings about traffic. `said` is the side specified by the caller.
    pub fn of(traffic: &Traffic, fates: &Fates, said: Option<CaptureEnd>) -> Self {
        let (side, side_because) = match (said, traffic.side()) {
            (Some(side), _) => (side, SideBecause::Said),
            (None, Some(side)) => (side, SideBecause::Looks),
            (None, None) => (CaptureEnd::Client, SideBecause::Assumed),
        };
        let exchanges = || traffic.of_clients().filter(|exchange| exchange.is_confirmable);
        let count = exchanges().count();
        // There is none if the capture has no confirmable request.
        let workload = ObservedWorkload::of(traffic);
        let transmissions: usize = exchanges().map(|exchange| exchange.copies.len()).sum();
        // Beside the server a capture has no round trips, so losses are counted from answers, and spurious copies are unknown.
        let has_round_trips = side != CaptureEnd::Server;
        // Retransmissions are counted in confirmable exchanges only, and the spurious ones are among them.
        let is_confirmable = |it: &&Transmission| {
            traffic.exchanges.get(it.exchange as usize).is_some_and(|exchange| exchange.is_confirmable)
        };
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
            spurious: has_round_trips.then(|| spurious(fates.all.iter().filter(is_confirmable))),
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
        // Each text continues a number, as in "5 of link type 147, which is not read".
        let name = |skipped: &Skipped| match skipped {
            Skipped::Link(link) => format!("of link type {link}, which is not read"),
            Skipped::Tunnel => "in tunnels, which are not read".to_owned(),
            Skipped::NotUdp => "not UDP".to_owned(),
            Skipped::Fragment => "further fragments of IP".to_owned(),
            Skipped::Repeated => "repeated radio frames, or later fragments of datagrams".to_owned(),
            Skipped::Forwarded => "radio frames between two forwarders".to_owned(),
            Skipped::Malformed => "with truncated or malformed headers".to_owned(),
            Skipped::Interface => "of unknown interfaces".to_owned(),
            Skipped::Timeless => "without a time".to_owned(),
        };
        // Ports and bytes show these, and not headers, so they are counted elsewhere.
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
                Ending::Garbage(bytes) => {
                    Some(format!("the bytes after the first {bytes} are not packets, and are left out"))
                }
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
            // A client sends no more copies once it has an answer, so an answer before the last copy was lost.
            lost += exchange.answers.iter().filter(|answer| answer.at < final_copy.at).count();
        }
        let share = lost as f64 / answers.max(1) as f64;
        // Without round trips there are no quiet and busy moments to compare.
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
        // Correlated losses carry as much information as fewer independent ones. A correlation of 1 would leave none.
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
        fn no_sequence_of_captured_messages_causes_a_panic(
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

    #[test]
    fn copies_of_non_confirmable_requests_are_not_spurious_retransmissions() {
        let [client, server] = ["10.0.0.1:40000", "10.0.0.2:5683"];
        let ask = |us: u64, first: u8| (us, ip(client, server, &[first, 1, 0, 7, 5]));
        let answer = |us: u64, first: u8| (us, ip(server, client, &[first, 0x45, 0, 7, 5]));
        let non = [ask(0, 0x51), answer(100, 0x51), ask(2_000_000, 0x51), answer(2_000_100, 0x51)];
        let con = [ask(300_000_000, 0x41), answer(300_000_100, 0x61)];
        let packets: Vec<(u64, &[u8])> =
            non.iter().chain(&con).map(|(us, bytes)| (*us, &bytes[..])).collect();
        let file = pcap(101, &packets);
        let traffic =
            traffic::read(&*file, &Reading::default(), None, &mut || ControlFlow::Continue(())).unwrap();
        let findings = Findings::of(&traffic, &Fates::of(&traffic), Some(CaptureEnd::Client));
        assert_eq!((findings.exchanges, findings.retransmissions, findings.spurious), (1, 0, Some(0)));
    }
}
