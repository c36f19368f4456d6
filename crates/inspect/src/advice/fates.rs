//! The fate of every transmission: answered after a time, or lost.

use coapace_sim::Time;

use super::exchanges::{CapturedExchange, From};
use super::traffic::Traffic;

/// A transmission of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// The number of the exchange in [`Traffic::exchanges`].
    pub exchange: u32,
    /// The number of the copy, 0 for the first.
    pub copy: u8,
    /// The time of its departure.
    pub at: Time,
    /// Its fate: answered, lost, or unknown.
    pub fate: Fate,
}

/// The fate of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It was answered after this many seconds.
    Answered(f64, Certainty),
    /// It, or its answer, was lost.
    Lost,
    /// The capture does not show it: it ends too soon, or the server answers one copy only.
    Unknown,
}

/// The reason why an answer is assigned to one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// There is one copy, or a token, an option or a Message ID shows it.
    Unambiguous,
    /// There are at least as many answers as copies, so they are paired in their order.
    InOrder,
    /// There are fewer answers than copies. This pairing comes closest to the round-trip times around that moment.
    Likely,
}

/// The transmissions of all clients in the order of their departure.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// Each transmission.
    pub all: Vec<Transmission>,
    /// Whether the server answers every copy that reaches it. If not, a copy without an answer may have arrived.
    pub answers_copies: bool,
    /// The round-trip times that are beyond doubt, by their moments.
    pub around: Around,
    /// Answers beyond one for each copy. The network or the server duplicated them.
    pub duplicates: u64,
}

/// A server counts as answering one copy only after this many exchanges with unanswered copies behind the answered one.
const ENOUGH: usize = 20;

/// The number of samples around a moment whose median is its round-trip time.
const NEIGHBOURS: usize = 9;

impl Fates {
    /// Finds the fates of the transmissions of clients.
    pub fn of(traffic: &Traffic) -> Self {
        let own = || (0u32..).zip(&traffic.exchanges).filter(|(_, exchange)| exchange.from == From::Client);
        let mut samples: Vec<(Time, f64)> = Vec::new();
        for (_, exchange) in own() {
            let pairs = certain(exchange).into_iter().flatten();
            samples.extend(pairs.map(|(copy, rtt)| (exchange.copies[copy].at, rtt)));
        }
        samples.sort_by_key(|sample| sample.0);
        let around = Around { samples };
        // A server that answers one copy only leaves the copies behind the answered one without an answer.
        let mut several = own().map(|(_, it)| it).filter(|it| it.copies.len() > 1);
        let answered_twice = several.clone().any(|it| it.answers.len() > 1);
        let is_behind = |it: &&CapturedExchange| {
            it.answers.len() == 1
                && likely(it, &around).first().is_some_and(|(copy, _)| copy + 1 < it.copies.len())
        };
        let answers_copies =
            answered_twice || several.by_ref().filter(is_behind).take(ENOUGH).count() < ENOUGH;
        let mut fates = Self { all: Vec::new(), answers_copies, around: Around::default(), duplicates: 0 };
        for (number, exchange) in own() {
            fates.duplicates += exchange.answers.len().saturating_sub(exchange.copies.len()) as u64;
            let of_copies = fates.of_exchange(exchange, &around);
            for ((copy, fate), number_of_copy) in exchange.copies.iter().zip(of_copies).zip(0u8..) {
                fates.all.push(Transmission { exchange: number, copy: number_of_copy, at: copy.at, fate });
            }
        }
        fates.all.sort_by_key(|transmission| transmission.at);
        fates.around = around;
        fates.open_the_last(traffic);
        fates
    }

    fn of_exchange(&self, exchange: &CapturedExchange, around: &Around) -> Vec<Fate> {
        let mut fates = vec![Fate::Lost; exchange.copies.len()];
        let (pairs, certainty) = match certain(exchange) {
            Some(pairs) if exchange.copies.len() == 1 => (pairs, Certainty::Unambiguous),
            Some(pairs) if exchange.answers.iter().all(|answer| answer.copy.is_some()) => {
                (pairs, Certainty::Unambiguous)
            }
            Some(pairs) => (pairs, Certainty::InOrder),
            None => (likely(exchange, around), Certainty::Likely),
        };
        let last = pairs.iter().map(|(copy, _)| *copy).max();
        for (copy, rtt) in pairs {
            fates[copy] = Fate::Answered(rtt, certainty);
        }
        if let Some(last) = last.filter(|_| !self.answers_copies) {
            fates[last + 1..].fill(Fate::Unknown);
        }
        fates
    }

    /// Makes a loss unknown if the capture ends within the 99 % quantile of round-trip times: an answer might still have come.
    fn open_the_last(&mut self, traffic: &Traffic) {
        let mut rtts: Vec<f64> = self.round_trips().collect();
        rtts.sort_by(f64::total_cmp);
        let Some((_, end)) = traffic.span else { return };
        let longest = coapace_run::measured::quantile(&rtts, 0.99).unwrap_or(f64::INFINITY);
        for transmission in self.all.iter_mut().rev() {
            if (end - transmission.at).as_secs_f64() > longest {
                break;
            }
            if transmission.fate == Fate::Lost {
                transmission.fate = Fate::Unknown;
            }
        }
    }

    /// Returns the round-trip times of all transmissions that were answered, in seconds.
    pub fn round_trips(&self) -> impl Iterator<Item = f64> {
        self.all.iter().filter_map(|transmission| match transmission.fate {
            Fate::Answered(rtt, _) => Some(rtt),
            _ => None,
        })
    }
}

/// Returns the answered copies with their round-trip times in seconds; `None` if it is in doubt which copies were answered.
fn certain(exchange: &CapturedExchange) -> Option<Vec<(usize, f64)>> {
    let since = |copy: usize, at: Time| Some((copy, (at - exchange.copies.get(copy)?.at).as_secs_f64()));
    if exchange.answers.iter().all(|answer| answer.copy.is_some()) {
        let mut pairs: Vec<(usize, f64)> = Vec::new();
        for answer in &exchange.answers {
            let copy = usize::from(answer.copy?);
            if pairs.iter().all(|(other, _)| *other != copy) {
                pairs.extend(since(copy, answer.at));
            }
        }
        return Some(pairs);
    }
    if exchange.answers.len() < exchange.copies.len() {
        return None;
    }
    // Further answers are duplicates. Each copy has to depart before its answer.
    let pairs = exchange.copies.iter().zip(&exchange.answers).enumerate();
    pairs.map(|(number, (copy, answer))| (copy.at <= answer.at).then(|| since(number, answer.at))?).collect()
}

/// Pairs answers with copies in their order, so that the round-trip times come close to those around.
fn likely(exchange: &CapturedExchange, around: &Around) -> Vec<(usize, f64)> {
    let (copies, answers) = (&exchange.copies, &exchange.answers);
    let expected: Vec<f64> = copies.iter().map(|copy| around.at(copy.at)).collect();
    // The least cost of the answers so far, if the last of them belongs to this copy; and the copy of the answer before.
    let mut costs: Vec<Vec<(f64, usize)>> = Vec::new();
    for answer in answers.iter().take(copies.len()) {
        let mut best = (if costs.is_empty() { 0.0 } else { f64::INFINITY }, usize::MAX);
        let row = copies.iter().enumerate().map(|(number, copy)| {
            if let Some(before) = number.checked_sub(1)
                && let Some(last) = costs.last()
                && last[before].0 < best.0
            {
                best = (last[before].0, before);
            }
            let rtt = (answer.at - copy.at).as_secs_f64();
            let own = if rtt > 0.0 { (rtt / expected[number]).ln().powi(2) } else { f64::INFINITY };
            (best.0 + own, best.1)
        });
        let row = row.collect();
        costs.push(row);
    }
    let by_cost = |row: &Vec<(f64, usize)>| {
        let finite = row.iter().enumerate().filter(|(_, (cost, _))| cost.is_finite());
        finite.min_by(|a, b| a.1.0.total_cmp(&b.1.0)).map(|(copy, _)| copy)
    };
    let mut pairs = Vec::new();
    let mut copy = costs.last().and_then(by_cost);
    for (row, answer) in costs.iter().zip(answers).rev() {
        let Some(number) = copy else { break };
        pairs.push((number, (answer.at - copies[number].at).as_secs_f64()));
        copy = Some(row[number].1).filter(|&before| before != usize::MAX);
    }
    pairs
}

/// Round-trip times by their moments.
#[derive(Clone, Debug, Default)]
pub struct Around {
    samples: Vec<(Time, f64)>,
}

impl Around {
    /// Returns the median of the round-trip times of the transmissions that departed next to this moment, in seconds.
    pub fn at(&self, at: Time) -> f64 {
        let place = self.samples.partition_point(|sample| sample.0 < at);
        let start = place.saturating_sub(NEIGHBOURS / 2).min(self.samples.len().saturating_sub(NEIGHBOURS));
        let end = (start + NEIGHBOURS).min(self.samples.len());
        let mut near: Vec<f64> = self.samples[start..end].iter().map(|sample| sample.1).collect();
        near.sort_by(f64::total_cmp);
        // Without any sample, RFC 7252's ACK_TIMEOUT is assumed.
        near.get(near.len() / 2).copied().unwrap_or(2.0).max(1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(copies: &[u64], answers: &[u64]) -> CapturedExchange {
        CapturedExchange::plain(
            copies.iter().map(|&ms| Time::from_nanos(ms * 1_000_000)),
            answers.iter().map(|&ms| Time::from_nanos(ms * 1_000_000)),
        )
    }

    fn around(rtt: f64) -> Around {
        Around { samples: vec![(Time::ZERO, rtt)] }
    }

    #[test]
    fn as_many_answers_as_copies_are_paired_in_their_order() {
        assert_eq!(certain(&exchange(&[0, 2_000], &[2_500, 4_500])), Some(vec![(0, 2.5), (1, 2.5)]));
        assert_eq!(certain(&exchange(&[0, 2_000], &[1_000, 1_500])), None, "an answer before the copy");
        assert_eq!(certain(&exchange(&[0, 2_000], &[2_500])), None);
        assert_eq!(certain(&exchange(&[0, 2_000], &[])), Some(vec![]), "both are lost");
    }

    #[test]
    fn one_answer_to_two_copies_belongs_to_the_one_whose_time_is_usual() {
        let both = exchange(&[0, 2_000], &[2_500]);
        assert_eq!(likely(&both, &around(0.4)), [(1, 0.5)]);
        assert_eq!(likely(&both, &around(2.4)), [(0, 2.5)]);
        let three = exchange(&[0, 2_000, 6_000], &[2_400, 6_300]);
        assert_eq!(
            likely(&three, &around(0.4)),
            [(2, 0.3), (1, 0.4)].map(|(copy, rtt): (usize, f64)| (copy, rtt))
        );
    }
}
