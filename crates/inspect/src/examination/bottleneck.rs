//! The link in front of an examined stack: the link of the scenario `nb-iot`, as seen by one of a hundred hosts.
//!
//! The other hosts send and receive the same packets as the stack at the same times. So the downlink, which is the slower
//! direction, has a hundredth of its rate. Its queue is never full and nothing is lost: every copy of a message arrives, and
//! only the first one is useful.
//!
//! The time at which a packet passes depends only on earlier packets. So it is a function of the transcript, computed
//! with the emulator's network in simulated time.

use std::sync::LazyLock;
use std::time::Duration;

use coapace_run::accounting;
use coapace_scenario::{Scenario, ScenarioError};
use coapace_sim::{Mark, NodeId, Outgoing, Time, Transport};

use super::case::ExaminedSide;
use super::packet::Packet;
use coapace_wire::link::{Link, SERVER};

/// The number of hosts that share the link.
pub(crate) const HOSTS: u32 = 100;

/// The share of one host in the 30 kbit/s of the downlink, in bit/s.
const RATE: u32 = 30_000 / HOSTS;

static SCENARIO: LazyLock<Result<Scenario, ScenarioError>> = LazyLock::new(|| {
    // Jitter would let a packet overtake another one, whose passage would then depend on later packets.
    let settings = [
        ("network.down.radio.rate", format!("{RATE} bit/s")),
        ("network.up.backhaul.jitter", r#"["15 ms", "15 ms"]"#.to_owned()),
        ("network.down.backhaul.jitter", r#"["15 ms", "15 ms"]"#.to_owned()),
    ];
    Scenario::load("nb-iot", &settings.map(|(key, value)| (key.to_owned(), value)))
});

/// A packet of the stack, and the reply that the examiner sends as soon as it arrives.
#[derive(Debug)]
pub(crate) struct BottleneckEntry<'a> {
    /// The time at which the stack sent the packet, since the examination began.
    at: Duration,
    bytes: &'a [u8],
    /// The bytes of the reply; empty if there is none.
    reply: Vec<u8>,
}

impl<'a> BottleneckEntry<'a> {
    /// Returns a packet of the stack with its reply, which may be empty.
    pub(crate) fn new(packet: &'a Packet, reply: Vec<u8>) -> Self {
        Self { at: packet.at, bytes: &packet.bytes, reply }
    }
}

/// Returns the time at which the stack gets the reply to each packet; `None` for a packet without a reply. `side` is
/// the side of the stack. Packets are sorted by the time at which they were sent.
pub(crate) fn replies(side: ExaminedSide, entries: &[BottleneckEntry<'_>]) -> Vec<Option<Duration>> {
    let mut got = vec![None; entries.len()];
    let link = SCENARIO.as_ref().ok().and_then(|scenario| Link::new(scenario, 1, ()));
    let Some(mut link) = link else { return got };
    let client = link.add_client();
    let (stack, examiner) = if side == ExaminedSide::Client { (client, SERVER) } else { (SERVER, client) };
    for (place, entry) in (0u32..).zip(entries) {
        let at = Time::from_nanos(entry.at.as_nanos() as u64);
        // Replies that leave before this packet are sent first, as on a real link.
        pass(&mut link, at, (stack, examiner), entries, &mut got);
        link.advance(at);
        link.send(stack, outgoing(examiner, place), entry.bytes);
    }
    // Nothing is lost, so all replies that are still on their way arrive in the end.
    pass(&mut link, Time::MAX, (stack, examiner), entries, &mut got);
    got
}

/// Lets packets pass until a time. When a packet arrives at the examiner, its reply is sent; when the reply arrives at
/// the stack, its time is stored in `got`.
fn pass(
    link: &mut Link<()>,
    until: Time,
    (stack, examiner): (NodeId, NodeId),
    entries: &[BottleneckEntry<'_>],
    got: &mut [Option<Duration>],
) {
    while let Some(next) = link.next_event().filter(|next| *next <= until) {
        link.advance(next);
        let arrived: Vec<(NodeId, u32, Time)> =
            link.arrivals().map(|arrival| (arrival.to, arrival.mark.exchange, arrival.due)).collect();
        // The arrivals are copied before: sending a reply changes the link.
        link.clear();
        for (to, number, due) in arrived {
            let place = number as usize;
            if to == stack {
                got[place] = Some(Duration::from_nanos(due.as_nanos()));
            } else if let Some(entry) = entries.get(place).filter(|entry| !entry.reply.is_empty()) {
                link.send(examiner, outgoing(stack, number), &entry.reply);
            }
        }
    }
}

fn outgoing(to: NodeId, exchange: u32) -> Outgoing {
    Outgoing { to, mark: Mark { exchange, transmission: 0 }, transport: Transport::Udp }
}

/// Returns how long a datagram of this length occupies the downlink, in seconds.
pub(crate) fn occupied(datagram_bytes: usize) -> f64 {
    let bytes = SCENARIO
        .as_ref()
        .map_or(0, |scenario| accounting(scenario).wire_bytes(Transport::Udp, datagram_bytes));
    f64::from(bytes) * 8.0 / f64::from(RATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_s: u64) -> BottleneckEntry<'static> {
        BottleneckEntry { at: Duration::from_secs(at_s), bytes: &[0; 10], reply: vec![0; 65] }
    }

    #[test]
    fn an_answer_waits_in_the_emulated_downlink_for_earlier_answers() {
        let seconds = |entries: &[BottleneckEntry<'_>]| -> Vec<f64> {
            replies(ExaminedSide::Client, entries).into_iter().map(|at| at.unwrap().as_secs_f64()).collect()
        };
        // 93 bytes at 300 bit/s take 2.48 s; both delays are 0.6 s, and the backhaul adds 30 ms.
        assert!((occupied(65) - 2.48).abs() < 1e-9);
        let alone = seconds(&[entry(0)])[0];
        assert!((3.1..3.15).contains(&alone), "{alone}");
        let all = seconds(&[entry(0), entry(1), entry(20)]);
        assert!((all[0] - alone).abs() < 1e-9, "later packets change nothing");
        assert!((all[1] - all[0] - 2.48).abs() < 1e-6, "{all:?}");
        assert!((23.1..23.15).contains(&all[2]), "{all:?}");
    }

    #[test]
    fn notifications_of_a_server_take_the_downlink_and_acknowledgements_the_uplink() {
        let notification = BottleneckEntry { at: Duration::ZERO, bytes: &[0; 65], reply: vec![0; 4] };
        let silent = BottleneckEntry { at: Duration::ZERO, bytes: &[0; 65], reply: Vec::new() };
        let got = replies(ExaminedSide::Server, &[notification, silent]);
        assert!((3.1..3.15).contains(&got[0].unwrap().as_secs_f64()), "{got:?}");
        assert_eq!(got[1], None);
    }
}
