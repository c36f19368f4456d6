//! The fate of every transmission: answered after a time, or lost.

use coapace_sim::Time;

use super::exchanges::{CapturedExchange, From};
use super::traffic::Traffic;

/// A transmission of a client and its fate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// The number of the exchange in [`Traffic::exchanges`].
    pub exchange: u32,
    /// The number of the copy, 0 for the first.
    pub copy: u8,
    /// The departure of the transmission.
    pub at: Time,
    /// Whether the transmission was answered or lost, if that is known.
    pub fate: Fate,
}

/// The fate of a transmission: answered, lost, or unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// The transmission was answered after this many seconds. The second value says how certain it is that the answer
    /// belongs to this copy.
    Answered(f64, Certainty),
    /// The transmission or its answer was lost.
    Lost,
    /// The fate is unknown: the capture ends too soon, or the server answers only one copy and has answered an earlier
    /// one.
    Unknown,
}

/// How certain it is which copy an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// There is only one copy, or a token, an option or a Message ID identifies the answered copy.
    Unambiguous,
    /// There are at least as many answers as copies, so they are paired in sequence.
    InOrder,
    /// There are fewer answers than copies. The answers are paired with the copies that give the round-trip times
    /// closest to other round-trip times around that time.
    Likely,
}

/// The transmissions of all clients, sorted by departure.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// Each transmission.
    pub all: Vec<Transmission>,
    /// Whether the server answers every copy that reaches it. If not, a copy without an answer may have arrived.
    pub answers_copies: bool,
    /// The round-trip times of exchanges with at least one answer for each copy, or with marked copies, by departure.
    pub around: Around,
    /// The number of answers beyond one for each copy: the network or the server duplicated them.
    pub duplicates: u64,
}

/// If at least this many exchanges have unanswered copies after the answered one, and no exchange has two answers,
/// servers count as answering only one copy.
const ENOUGH: usize = 20;

/// The round-trip time at some moment is the median of this many samples around it.
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
        // `ENOUGH` exchanges decide, so a long capture is not searched to its end.
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
        // `open_the_last` goes back from the end to the first old transmission, so the transmissions are sorted before.
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
            // Later copies may have arrived, because this server would not have answered them.
            fates[last + 1..].fill(Fate::Unknown);
        }
        fates
    }

    /// Changes the fate of the last transmissions from lost to unknown, because an answer might still have come. These
    /// are the transmissions within the 99 % quantile of round-trip times before the end of the capture.
    fn open_the_last(&mut self, traffic: &Traffic) {
        let mut rtts: Vec<f64> = self.round_trips().collect();
        rtts.sort_by(f64::total_cmp);
        let Some((_, end)) = traffic.span else { return };
        // Without any round trip every answer might still have come.
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

/// Returns the answered copies with their round-trip times in seconds; `None` if it is uncertain which copies were answered.
fn certain(exchange: &CapturedExchange) -> Option<Vec<(usize, f64)>> {
    let since = |copy: usize, at: Time| Some((copy, (at - exchange.copies.get(copy)?.at).as_secs_f64()));
    if exchange.answers.iter().all(|answer| answer.copy.is_some()) {
        let mut pairs: Vec<(usize, f64)> = Vec::new();
        for answer in &exchange.answers {
            let copy = usize::from(answer.copy?);
            // A second answer to a copy is a duplicate.
            if pairs.iter().all(|(other, _)| *other != copy) {
                pairs.extend(since(copy, answer.at));
            }
        }
        return Some(pairs);
    }
    // Nothing shows which copies got no answer.
    if exchange.answers.len() < exchange.copies.len() {
        return None;
    }
    // Further answers are duplicates. Each copy has to depart before its answer.
    let pairs = exchange.copies.iter().zip(&exchange.answers).enumerate();
    pairs.map(|(number, (copy, answer))| (copy.at <= answer.at).then(|| since(number, answer.at))?).collect()
}

/// Pairs answers with copies in sequence, so that the round-trip times are close to other round-trip times around that
/// time. Returns the answered copies with their round-trip times in seconds, the last one first.
fn likely(exchange: &CapturedExchange, around: &Around) -> Vec<(usize, f64)> {
    let (copies, answers) = (&exchange.copies, &exchange.answers);
    let expected: Vec<f64> = copies.iter().map(|copy| around.at(copy.at)).collect();
    // The least cost of the answers so far, if the last of them belongs to this copy; and the copy of the answer before.
    let mut costs: Vec<Vec<(f64, usize)>> = Vec::new();
    // Answers keep the order of their copies. So an answer belongs to a later copy than the answer before it. Answers beyond
    // the number of copies are duplicates.
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
            // A logarithm makes twice the usual time as unlikely as half of it.
            let own = if rtt > 0.0 { (rtt / expected[number]).ln().powi(2) } else { f64::INFINITY };
            (best.0 + own, best.1)
        });
        let row = row.collect();
        costs.push(row);
    }
    let by_cost = |row: &Vec<(f64, usize)>| {
        // The cost is infinite for an answer that comes before its copy.
        let finite = row.iter().enumerate().filter(|(_, (cost, _))| cost.is_finite());
        finite.min_by(|a, b| a.1.0.total_cmp(&b.1.0)).map(|(copy, _)| copy)
    };
    let mut pairs = Vec::new();
    let mut copy = costs.last().and_then(by_cost);
    // Backwards, because each cost remembers only the copy of the answer before.
    for (row, answer) in costs.iter().zip(answers).rev() {
        let Some(number) = copy else { break };
        pairs.push((number, (answer.at - copies[number].at).as_secs_f64()));
        copy = Some(row[number].1).filter(|&before| before != usize::MAX);
    }
    pairs
}

/// The round-trip times of exchanges with at least one answer for each copy, or with marked copies, sorted by
/// departure.
#[derive(Clone, Debug, Default)]
pub struct Around {
    samples: Vec<(Time, f64)>,
}

impl Around {
    /// Returns the median round-trip time of the transmissions nearest in time to `at`, in seconds; 2 s if there are
    /// none.
    pub fn at(&self, at: Time) -> f64 {
        let place = self.samples.partition_point(|sample| sample.0 < at);
        // At either end of the capture the window moves inwards and keeps its size.
        let start = place.saturating_sub(NEIGHBOURS / 2).min(self.samples.len().saturating_sub(NEIGHBOURS));
        let end = (start + NEIGHBOURS).min(self.samples.len());
        let mut near: Vec<f64> = self.samples[start..end].iter().map(|sample| sample.1).collect();
        near.sort_by(f64::total_cmp);
        // Without any sample, RFC 7252's ACK_TIMEOUT is assumed. Ratios to the result are taken, so it is above 0.
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
    fn equally_many_answers_and_copies_are_paired_in_order_of_time() {
        assert_eq!(certain(&exchange(&[0, 2_000], &[2_500, 4_500])), Some(vec![(0, 2.5), (1, 2.5)]));
        assert_eq!(certain(&exchange(&[0, 2_000], &[1_000, 1_500])), None, "an answer before the copy");
        assert_eq!(certain(&exchange(&[0, 2_000], &[2_500])), None);
        assert_eq!(certain(&exchange(&[0, 2_000], &[])), Some(vec![]), "both are lost");
    }

    #[test]
    fn one_answer_to_two_copies_is_paired_with_the_copy_whose_round_trip_is_typical() {
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
