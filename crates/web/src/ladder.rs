//! The messages of exchanges, with the times at which they leave one host and reach the other.

use std::collections::{BTreeMap, BTreeSet};

use coap_numbers::code;
use coapace_run::contender::Contender;
use coapace_run::{Observe, run_tapped};
use coapace_scenario::Scenario;
use coapace_sim::{Event, Record, Tap, Time, Transport};
use serde::Serialize;

/// The maximum number of clients whose exchanges are kept. The next constants are the most exchanges of each client,
/// and the most messages of an exchange.
const CLIENTS: usize = 4;
const EXCHANGES: usize = 40;
const MESSAGES: usize = 64;

/// Some exchanges of a run, sorted by client. Empty over TCP, because segments hide the messages.
#[derive(Default, Serialize)]
pub(crate) struct Ladder {
    exchanges: Vec<LadderExchange>,
}

/// The messages of an exchange, sorted by their departure.
#[derive(Serialize)]
struct LadderExchange {
    /// The number of the client, from 1.
    client: usize,
    /// The number of the exchange at its client, from 1.
    exchange: u32,
    messages: Vec<LadderMessage>,
}

/// A message that one host sent to the other.
#[derive(Serialize)]
struct LadderMessage {
    /// True if the host that began the exchange sent the message.
    goes_out: bool,
    /// The number of the transmission within the exchange, 0 for the first.
    copy: u8,
    /// The type and the code, such as `CON GET`.
    label: String,
    bytes: u32,
    /// The time of departure, in seconds since the start of the run.
    sent_s: f64,
    /// The time at which the message was delivered or lost; `None` if the run ended first.
    end_s: Option<f64>,
    /// How the message ended: `delivered`, `lost`, `dropped` or `discarded`; empty while it is in flight.
    fate: &'static str,
}

/// The key of an exchange: the node that began it, the other node, and the number of the exchange.
type Key = (u32, u32, u32);

/// A tap that collects the messages of exchanges, for a ladder.
#[derive(Default)]
struct Watch {
    exchanges: BTreeMap<Key, Vec<LadderMessage>>,
    counts: BTreeMap<u32, usize>,
    /// Exchanges of recorded clients that are not kept, because the client has too many. Without this list, an answer
    /// in such an exchange would seem to begin a new one.
    left_out: BTreeSet<Key>,
}

impl Ladder {
    pub(crate) fn of(scenario: &Scenario, mechanism: &str, seed: u32) -> Result<Self, String> {
        let contender = Contender::fitting(mechanism, scenario)?;
        let (_, watch) = run_tapped(scenario, &contender, seed.into(), Observe::Totals, Watch::default());
        let mut ladder = Self::default();
        let mut clients: Vec<u32> = Vec::new();
        for ((from, _, exchange), messages) in watch.exchanges {
            // The map is sorted by the host that began, so the exchanges of a client follow each other.
            if clients.last() != Some(&from) {
                clients.push(from);
            }
            ladder.exchanges.push(LadderExchange { client: clients.len(), exchange: exchange + 1, messages });
        }
        Ok(ladder)
    }
}

impl Watch {
    /// Returns the messages of a packet's exchange, and whether the packet goes out from the host that began it; `None`
    /// if the exchange is not kept.
    fn messages(&mut self, record: &Record<'_>) -> Option<(bool, &mut Vec<LadderMessage>)> {
        let (from, to, exchange) = (record.from.0, record.to.0, record.mark.exchange);
        let (out, back) = ((from, to, exchange), (to, from, exchange));
        // An answer has the exchange of its request, with the hosts swapped. So it is looked for before a new exchange is begun.
        if self.exchanges.contains_key(&back) {
            return Some((false, self.exchanges.get_mut(&back)?));
        }
        if self.left_out.contains(&out) || self.left_out.contains(&back) {
            return None;
        }
        if !self.exchanges.contains_key(&out) {
            // Only a departure begins an exchange: an arrival without one belongs to an exchange that is not kept.
            let is_full = self.counts.len() >= CLIENTS && !self.counts.contains_key(&from);
            if record.event != Event::Sent || is_full {
                return None;
            }
            let count = self.counts.entry(from).or_default();
            *count += 1;
            if *count > EXCHANGES {
                self.left_out.insert(out);
                return None;
            }
        }
        Some((true, self.exchanges.entry(out).or_default()))
    }
}

impl Tap for Watch {
    fn record(&mut self, record: &Record<'_>) {
        let is_end =
            matches!(record.event, Event::Delivered | Event::Lost | Event::Dropped | Event::Discarded);
        // Other events, such as entering a queue, happen on the way.
        if record.transport != Transport::Udp || !(is_end || record.event == Event::Sent) {
            return;
        }
        let Some((goes_out, messages)) = self.messages(record) else { return };
        let copy = record.mark.transmission;
        if !is_end {
            // The page draws every message, so a long exchange is cut off.
            if messages.len() < MESSAGES {
                let (label, bytes) = (label(record.bytes), record.wire_bytes);
                let sent_s = seconds(record.time);
                let fate = "";
                messages.push(LadderMessage { goes_out, copy, label, bytes, sent_s, end_s: None, fate });
            }
            return;
        }
        // An acknowledgement and the response after it may have the same mark, so the label distinguishes them.
        let label = label(record.bytes);
        let is_it = |it: &&mut LadderMessage| {
            it.end_s.is_none() && (it.goes_out, it.copy) == (goes_out, copy) && it.label == label
        };
        if let Some(message) = messages.iter_mut().find(is_it) {
            message.end_s = Some(seconds(record.time));
            message.fate = record.event.name();
        }
    }
}

fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

/// Returns the type and the code of a message (RFC 7252 §3), such as `ACK 2.05`.
fn label(bytes: &[u8]) -> String {
    let [first, number, ..] = bytes else { return String::new() };
    // Two bits are below 4, so the index is valid.
    let kind = ["CON", "NON", "ACK", "RST"][usize::from(first >> 4 & 3)];
    let name = match *number {
        code::EMPTY => return kind.to_owned(),
        code::GET => "GET".to_owned(),
        code::POST => "POST".to_owned(),
        code::PUT => "PUT".to_owned(),
        other => code::to_dotted(other),
    };
    format!("{kind} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_a_drawn_exchange_is_shown_as_delivered_or_lost() {
        let settings = [("clients", "5"), ("errors", "high"), ("workload.exchanges", "20")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("nb-iot", &settings).unwrap();
        let Ladder { exchanges } = Ladder::of(&scenario, "default", 1).unwrap();
        assert_eq!(exchanges.iter().map(|it| it.client).max(), Some(CLIENTS));
        assert_eq!(exchanges.len(), CLIENTS * 20);
        let first = &exchanges[0].messages[0];
        assert!(first.goes_out && first.label == "CON GET" && first.copy == 0, "{}", first.label);
        let all = || exchanges.iter().flat_map(|it| &it.messages);
        assert!(all().any(|it| it.fate == "lost") && all().any(|it| it.copy > 0));
        assert!(all().any(|it| !it.goes_out && it.label == "ACK 2.05" && it.fate == "delivered"));
        assert!(all().all(|it| it.end_s.is_none_or(|end| end >= it.sent_s)));
        assert!(Ladder::of(&scenario, "tcp", 1).unwrap().exchanges.is_empty());
    }
}
