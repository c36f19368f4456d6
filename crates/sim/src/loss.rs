//! Loss of packets that a link has carried.

use crate::luck::{Luck, Stream};
use crate::packet::Header;

/// A model of the loss of packets on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability.
    Random(f64),
    /// Each packet is lost with the probability of the chain's present state. The state changes between packets.
    Markov(Markov),
}

/// A Markov chain of two states, good and bad, that decides which packets are lost (Gilbert 1960, Elliott 1963). It
/// starts in its stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Markov {
    /// The probability of losing a packet in the good state.
    pub p_good: f64,
    /// The probability of losing a packet in the bad state.
    pub p_bad: f64,
    /// The probability, before each packet, that the good state turns bad.
    pub good_to_bad: f64,
    /// The probability, before each packet, that the bad state turns good.
    pub bad_to_good: f64,
}

impl Markov {
    /// Returns the chain that loses `mean` of all packets and stays in the bad state for `burst` packets on average.
    ///
    /// Returns `None` if no such chain exists. `mean` must lie from `p_good` to below `p_bad`. `burst` must be at least
    /// 1, and long enough that the good state also lasts at least one packet on average.
    pub fn with_mean(p_good: f64, p_bad: f64, mean: f64, burst: f64) -> Option<Self> {
        // The bad state ends after each packet with the same probability, so its mean length is 1 / bad_to_good.
        let bad_to_good = 1.0 / burst;
        // From mean = p_good + (p_bad − p_good) · bad_share, solved for the way into the bad state.
        let good_to_bad = bad_to_good * (mean - p_good) / (p_bad - mean);
        let chain = Self { p_good, p_bad, good_to_bad, bad_to_good };
        // Without the first test, `p_bad` < `mean` < `p_good` would pass: both differences above are negative then.
        (p_bad > mean && chain.is_valid()).then_some(chain)
    }

    /// Returns the share of packets that the chain loses in the long run.
    pub fn mean(&self) -> f64 {
        let bad = self.bad_share();
        self.p_good * (1.0 - bad) + self.p_bad * bad
    }

    fn bad_share(&self) -> f64 {
        let turns = self.good_to_bad + self.bad_to_good;
        // A chain that never changes its state has no unique stationary distribution: it stays in the good state.
        if turns > 0.0 { self.good_to_bad / turns } else { 0.0 }
    }

    fn is_valid(&self) -> bool {
        [self.p_good, self.p_bad, self.good_to_bad, self.bad_to_good].into_iter().all(is_probability)
    }
}

impl Loss {
    /// Returns the share of packets that are lost in the long run.
    pub fn mean(&self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Random(p) => *p,
            Self::Markov(chain) => chain.mean(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::None => true,
            Self::Random(p) => is_probability(*p),
            Self::Markov(chain) => chain.is_valid(),
        }
    }
}

pub(crate) fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

/// A probability in units of 2⁻⁶³, so that both 1 and 0 can be represented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(p: f64) -> Self {
        // A multiplication by a power of two is exact, and so the same on every machine. The cast saturates.
        #[allow(clippy::cast_sign_loss)]
        Self((p * (1u64 << 63) as f64) as u64)
    }

    pub(crate) fn happens(self, bits: u64) -> bool {
        // 63 bits are always below 2⁶³, the probability 1, and never below 0.
        bits >> 1 < self.0
    }
}

/// The loss of one hop, with its state and its streams of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Losses {
    None,
    Random {
        chance: Chance,
        luck: Stream,
    },
    Markov {
        good: ChannelState,
        bad: ChannelState,
        in_bad: bool,
        packets: u64,
        luck: Stream,
        turning: Stream,
    },
}

/// A state of a [`Markov`] chain: the probability of losing a packet, and the probability of leaving the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelState {
    loses: Chance,
    turns: Chance,
}

impl Losses {
    pub(crate) fn new(loss: Loss, luck: Luck, hop: &str) -> Self {
        let stream = luck.stream(&format!("{hop}/loss"));
        match loss {
            Loss::None => Self::None,
            Loss::Random(p) => Self::Random { chance: Chance::new(p), luck: stream },
            Loss::Markov(chain) => {
                let turning = luck.stream(&format!("{hop}/state"));
                let state = |p, turn| ChannelState { loses: Chance::new(p), turns: Chance::new(turn) };
                Self::Markov {
                    good: state(chain.p_good, chain.good_to_bad),
                    bad: state(chain.p_bad, chain.bad_to_good),
                    // The last part of the key keeps this draw apart from the draws of `lose`, which have 0 there.
                    in_bad: Chance::new(chain.bad_share()).happens(turning.bits(0, 0, 1)),
                    packets: 0,
                    luck: stream,
                    turning,
                }
            }
        }
    }

    /// Returns whether this packet is lost. Call it once for each packet, in the sequence in which the hop carried them.
    pub(crate) fn lose(&mut self, packet: &Header) -> bool {
        let (a, b, c) = packet.key();
        match self {
            Self::None => false,
            Self::Random { chance, luck } => chance.happens(luck.bits(a, b, c)),
            Self::Markov { good, bad, in_bad, packets, luck, turning } => {
                // The state belongs to the hop, so its draws are keyed by the number of packets, not by the packet.
                let turns = if *in_bad { bad.turns } else { good.turns };
                *in_bad ^= turns.happens(turning.bits(*packets, 0, 0));
                *packets += 1;
                let state = if *in_bad { bad } else { good };
                state.loses.happens(luck.bits(a, b, c))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, NodeId, Transport};

    fn packet(n: u32) -> Header {
        let mark = Mark { exchange: n / 10, transmission: 0 };
        Header::new(NodeId(n % 10 + 1), NodeId(0), mark, Transport::Udp, 0, 0)
    }

    /// Returns for each of a million packets whether it was lost.
    fn fates(loss: Loss) -> Vec<bool> {
        let mut losses = Losses::new(loss, Luck::new(7), "up");
        (0..1_000_000).map(|n| losses.lose(&packet(n))).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    #[test]
    fn a_loss_rate_of_0_never_loses_and_a_loss_rate_of_1_always_loses() {
        assert!(!fates(Loss::Random(0.0)).contains(&true));
        assert!(!fates(Loss::Random(1.0)).contains(&false));
    }

    #[test]
    fn a_loss_rate_of_two_percent_loses_two_percent() {
        // The standard deviation of the share is 0.00014.
        assert!((share(&fates(Loss::Random(0.02))) - 0.02).abs() < 0.0007);
    }

    #[test]
    fn the_published_gilbert_elliott_chains_lose_ten_and_eighteen_percent() {
        // Raitahila 2019: 0 % / 50 % and 2 % / 80 %.
        for (p_good, p_bad, mean) in [(0.0, 0.5, 0.10), (0.02, 0.8, 0.18)] {
            let chain = Markov::with_mean(p_good, p_bad, mean, 4.0).unwrap();
            assert!((chain.mean() - mean).abs() < 1e-12);
            let lost = share(&fates(Loss::Markov(chain)));
            assert!((lost - mean).abs() < 0.005, "{lost} instead of {mean}");
        }
    }

    #[test]
    fn the_bad_state_of_burst_losses_lasts_the_configured_number_of_packets() {
        // With 0 % and 100 % the losses show the state.
        let chain = Markov::with_mean(0.0, 1.0, 0.2, 4.0).unwrap();
        let fates = fates(Loss::Markov(chain));
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        assert!((lost / bursts - 4.0).abs() < 0.1, "{}", lost / bursts);
    }

    #[test]
    fn a_gilbert_elliott_chain_starts_in_its_stationary_distribution() {
        let chain = Markov::with_mean(0.0, 1.0, 0.2, 1_000.0).unwrap();
        let lost = (0..10_000)
            .filter(|&seed| Losses::new(Loss::Markov(chain), Luck::new(seed), "up").lose(&packet(0)))
            .count();
        // 2,000 ± 40.
        assert!((1_800..2_200).contains(&lost), "{lost}");
    }

    #[test]
    fn a_gilbert_elliott_chain_with_impossible_parameters_is_refused() {
        assert_eq!(Markov::with_mean(0.0, 0.5, 0.5, 4.0), None);
        assert_eq!(Markov::with_mean(0.1, 0.5, 0.05, 4.0), None);
        assert_eq!(Markov::with_mean(0.0, 0.5, 0.4, 1.0), None);
        assert_eq!(Markov::with_mean(0.0, 0.5, f64::NAN, 4.0), None);
    }
}
