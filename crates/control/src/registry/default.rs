//! `default`: the retransmission timer of CoAP.
//!
//! **Source.** RFC 7252 §4.2, §4.8.
//!
//! **Idea.** The first timeout of every exchange is drawn from U(ACK_TIMEOUT, ACK_TIMEOUT·ACK_RANDOM_FACTOR). Every
//! retransmission doubles it. Nothing is learnt.
//!
//! **Differences from the source**
//! * One timeout is at most 60 s (`max_rto`). RFC 8085 §3.1.1 allows such a bound, and Raitahila 2019 measured with it. With
//!   the RFC's MAX_RETRANSMIT of 4 it is out of reach: the last timeout is 48 s at most.
//!
//! **Stacks.** Presets named after a stack have the timer that it ships. Stacks differ from the RFC in the factor of their
//! backoff, in their use of the random number, and in ticks. The other parameters are for them.

use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Draw, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    Ratio, division,
};

choice! {
    /// How a timeout uses the random number.
    pub enum Dither {
        /// One random number for all timeouts of an exchange, RFC 7252 §4.2.
        Once = "once",
        /// A new random number for every timeout.
        Each = "each",
        /// One random number for all timeouts of an exchange. It also decides how long after the first timeout the next
        /// tick comes.
        Phase = "phase",
    }
}

parameters! {
    /// The retransmission timer of RFC 7252.
    pub struct DefaultTimer {
        /// ACK_TIMEOUT, RFC 7252 §4.8.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8; a value below 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Factor from one timeout to the next, RFC 7252 §4.2.
        backoff_factor: Ratio = Ratio::new(2, 1),
        /// Number of retransmissions that do not lengthen the timeout, Matter's MRP_BACKOFF_THRESHOLD.
        backoff_after: u8 = 0,
        /// Time added to every timeout, Matter's MRP_RETRY_INTERVAL_SENDER_BOOST; 1us adds nothing.
        boost: Duration = Duration::from_micros(1),
        /// Use of random numbers: one for all timeouts of an exchange (RFC 7252 §4.2), one for each timeout, or one for
        /// all timeouts and for the time from the first timeout to the next tick.
        dither: Dither = Dither::Once,
        /// A retransmission waits until the time since the first transmission is a multiple of this; 1us means no
        /// waiting.
        tick: Duration = Duration::from_micros(1),
        /// Whether a timeout begins at the tick at which its retransmission departs, and not at the end of the timeout
        /// before.
        restart: Switch = Switch::Off,
        /// Upper bound of one timeout; RFC 8085 §3.1.1 asks for 60 s at least.
        max_rto: Duration = Duration::from_secs(60),
        /// Whether the endpoint waits for an answer to the last retransmission, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// The parameters of RFC 7252 §4.8. With its MAX_RETRANSMIT of 4 no timeout reaches the upper bound.
        "rfc7252" => |_| Self::DEFAULT,
        /// Contiki's Erbium, the "default CoAP" of most results from Cooja: ACK_TIMEOUT 3 s, and an exchange is given
        /// up as its last retransmission departs, so an answer to that retransmission comes too late.
        "erbium" => |_| Self {
            ack_timeout: Duration::from_secs(3), final_wait: Switch::Off, ..Self::DEFAULT
        },
        /// libcoap 4.3.5, `src/coap_net.c`: RFC 7252. The random number has 8 bits.
        "libcoap-4" => |_| Self::DEFAULT,
        /// Californium 3.14, `ReliabilityLayer` without congestion control: RFC 7252, in whole milliseconds.
        "californium-3" => |_| Self::DEFAULT,
        /// aiocoap 0.4.17, `messagemanager.py`: RFC 7252.
        "aiocoap" => |_| Self::DEFAULT,
        /// OpenThread (main), `src/core/coap/coap.cpp`: RFC 7252.
        "openthread" => |_| Self::DEFAULT,
        /// node-coap 1.6.0, `lib/retry_send.ts`: RFC 7252. The request fails 247 s after its first transmission, which is
        /// not modelled.
        "node-coap" => |_| Self::DEFAULT,
        /// coap-rs 0.29.0, `src/client.rs`: RFC 7252.
        "coap-rs" => |_| Self::DEFAULT,
        /// Zephyr, `coap_client.c` since its pull request 106419 of March 2026: RFC 7252.
        "zephyr" => |_| Self::DEFAULT,
        /// Zephyr 3.5 to March 2026, `coap_client.c`: RFC 7252, but every 500 ms it checks which timeouts have passed.
        "zephyr-3" => |_| Self { tick: Duration::from_millis(500), ..Self::DEFAULT },
        /// RIOT 2026.10 (development), `gcoap.c`: RFC 7252, but with a new random number for each timeout.
        "riot" => |_| Self { dither: Dither::Each, ..Self::DEFAULT },
        /// Contiki-NG 5.0, `coap-transactions.c`: ACK_TIMEOUT 3 s, and no upper bound of timeouts.
        "contiki-ng" => |_| Self {
            ack_timeout: Duration::from_secs(3), max_rto: Duration::from_secs(72), ..Self::DEFAULT
        },
        /// Wakaama (main of 2025-11), `coap/transaction.c`: 2, 4, 8, 16 and 32 s. Unsafe as published: no dither.
        "wakaama" => |_| Self { ack_random_factor: Ratio::new(1, 1), ..Self::DEFAULT },
        /// go-coap 3.8.1 (since 3.6), `udp/client/conn.go`: RFC 7252, but a goroutine checks every 4 s which timeouts
        /// have passed, and the next timeout begins at that check: 2 to 7 s, 8, 12, 20 or 24, and 36 to 48 s.
        "go-coap" => |_| Self {
            dither: Dither::Phase, tick: Duration::from_secs(4), restart: Switch::On, ..Self::DEFAULT
        },
        /// go-coap 3.5.4, `udp/client/conn.go`: a goroutine checks every 4 s for which exchanges the n-th timeout of 2
        /// s has passed, so the first timeout is 2 to 6 s, and each of the others is 4 s. Unsafe as published: no
        /// backoff.
        "go-coap-3.5" => |_| Self {
            ack_random_factor: Ratio::new(1, 1), backoff_factor: Ratio::new(1, 1), dither: Dither::Phase,
            tick: Duration::from_secs(4), ..Self::DEFAULT
        },
        /// coap-rs 0.26, `src/client.rs`: every timeout is 2 s. Unsafe as published: no backoff, and no dither.
        "coap-rs-0.26" => |_| Self {
            ack_random_factor: Ratio::new(1, 1), backoff_factor: Ratio::new(1, 1), ..Self::DEFAULT
        },
        /// nRF Connect SDK, `overlay-nbiot.conf` of the LwM2M client (its pull request 2498): ACK_TIMEOUT 15 s for
        /// NB-IoT, and no upper bound of timeouts.
        "nrf-nbiot" => |_| Self {
            ack_timeout: Duration::from_secs(15), max_rto: Duration::from_secs(360), ..Self::DEFAULT
        },
        /// Matter 1.3, MRP of its SDK (`ReliableMessageMgr.cpp`): i·1.6^max(0, n − 1)·U(1, 1.25) after n retransmissions, where i
        /// is 1.1 times the active interval of 300 ms. To a peer with the idle interval of 500 ms, `ack_timeout` is 550 ms.
        "matter" => |_| Self {
            ack_timeout: Duration::from_millis(330), ack_random_factor: Ratio::new(5, 4),
            backoff_factor: Ratio::new(8, 5), backoff_after: 1, dither: Dither::Each, ..Self::DEFAULT
        },
        /// Matter 1.3 from one Thread device to another: like `matter`, with an interval of 2 s and a sender boost of 1.5 s.
        "matter-thread" => |_| Self {
            ack_timeout: Duration::from_millis(2_201), ack_random_factor: Ratio::new(5, 4),
            backoff_factor: Ratio::new(8, 5), backoff_after: 1, boost: Duration::from_millis(1_500),
            dither: Dither::Each, ..Self::DEFAULT
        },
    }
}

/// A tick or a boost of 1 µs has no effect, so that firmware without them links no code for them.
const NOTHING: Duration = Duration::from_micros(1);

/// The number of bits below a microsecond in the arithmetic of backoffs whose factor is not 2. The times in this
/// arithmetic are below 2³⁵ µs (9 h).
const BITS: u32 = 12;
const LONGEST_UNITS: u64 = 1 << (35 + BITS);

/// State of [`DefaultTimer`] for one exchange: its draw. Each timeout is computed from the draw, so rounding errors do not
/// add up.
#[derive(Clone, Copy, Debug)]
pub struct DefaultExchange {
    draw: Draw,
    retransmits: u8,
}

impl DefaultTimer {
    fn timeout(&self, exchange: DefaultExchange) -> Duration {
        if self.tick <= NOTHING {
            return self.without_ticks(exchange.draw, exchange.retransmits);
        }
        // The departures of all transmissions so far follow from the draw alone, so nothing is kept for them.
        let (mut elapsed, mut departed, mut timeout) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let phase = match self.dither {
            Dither::Phase => {
                self.without_ticks(exchange.draw, 0) + exchange.draw.between(Duration::ZERO, self.tick)
            }
            Dither::Once | Dither::Each => Duration::ZERO,
        };
        for retransmits in 0..=exchange.retransmits {
            // The sum is without ticks, so their delays do not add up, unless a timeout begins where the last one really ended.
            if self.restart.is_on() {
                elapsed = departed;
            }
            elapsed += self.without_ticks(exchange.draw, retransmits);
            // A stack sends one copy in a tick at most, however many timeouts have passed.
            let earliest = if retransmits == 0 { Duration::ZERO } else { departed + self.tick };
            let next = self.at_tick(elapsed, phase).max(earliest);
            (timeout, departed) = (next - departed, next);
        }
        timeout
    }

    /// Returns the earliest tick that is not before `elapsed`. Both times count from the first transmission. The first
    /// tick is at `phase`.
    fn at_tick(&self, elapsed: Duration, phase: Duration) -> Duration {
        // Before `phase` the difference is zero, so the first tick is `phase`.
        let (tick, late) = (self.tick.as_micros(), (elapsed - phase).as_micros());
        let whole = division::by(late, tick);
        let ticks = whole + u64::from(late > whole.saturating_mul(tick));
        phase + Duration::from_micros(ticks.saturating_mul(tick))
    }

    /// Returns the timeout after this many retransmissions, before it is rounded to ticks.
    fn without_ticks(&self, draw: Draw, retransmits: u8) -> Duration {
        let times = retransmits.saturating_sub(self.backoff_after);
        // Doubling is exact in whole microseconds. Other factors keep twelve bits below one.
        let dithered = if self.backoff_factor == Ratio::new(2, 1) {
            // From the 32nd doubling on the factor stays at 2³² − 1, which makes more than an hour even of 1 µs.
            let doubled = 1u32.checked_shl(times.into()).unwrap_or(u32::MAX);
            draw.dither(self.ack_timeout.times(doubled), self.ack_random_factor)
        } else {
            let mut units = self.ack_timeout.times(1 << BITS).as_micros().min(LONGEST_UNITS - 1);
            for _ in 0..times {
                units = self.backoff_factor.of_u48(units).min(LONGEST_UNITS - 1);
            }
            units += draw.of_u64(self.ack_random_factor.above_one().of_u48(units));
            Duration::from_micros((units + (1 << (BITS - 1))) >> BITS)
        };
        let boosted = if self.boost <= NOTHING { dithered } else { dithered + self.boost };
        boosted.min(self.max_rto)
    }
}

impl Controller for DefaultTimer {
    type State = ();
    type Exchange = DefaultExchange;

    fn state(&self) {}

    fn on_start(&self, (): &mut (), cue: Cue) -> (DefaultExchange, Duration) {
        let exchange = DefaultExchange { draw: cue.draw, retransmits: 0 };
        (exchange, self.timeout(exchange))
    }

    fn on_retransmit(&self, (): &mut (), exchange: &mut DefaultExchange, cue: Cue) -> Duration {
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        if self.dither == Dither::Each {
            exchange.draw = cue.draw;
        }
        self.timeout(*exchange)
    }

    fn on_end(&self, (): &mut (), _: DefaultExchange, _: Outcome, _: Cue) {}

    fn max_span(&self, retransmits: u8) -> Duration {
        // A retransmission departs a tick late at most, and the next one a tick after it at least. Where timeouts restart, each of
        // them ends a tick late at most.
        let tick = if self.tick <= NOTHING { Duration::ZERO } else { self.tick };
        let late = if self.restart.is_on() { tick } else { Duration::ZERO };
        let mut span = tick;
        for before in 0..retransmits {
            span += self.without_ticks(Draw::from_bits(u32::MAX), before).max(tick) + late;
        }
        span
    }

    fn limits(&self, (): &()) -> Limits {
        // No round-trip time is ever measured, so the gap is the 3 s of RFC 7641 §4.5.1 at least. The endpoint enforces
        // PROBING_RATE (RFC 7252 §4.7), which is stricter: at 1 byte/s the shortest message takes 4 s.
        let limits = Limits::with_gauges(self.gauges(&()), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    #[inline(always)]
    fn gauges(&self, (): &()) -> Gauges {
        Gauges { rto: self.ack_timeout, ..Gauges::default() }
    }
}

/// The registry entry `default`.
pub(crate) const DEFAULT: Entry = Entry {
    name: "default",
    summary: "fixed timeout drawn from 2-3 s, doubled at every retransmission, nothing learnt",
    source: "RFC 7252 §4.2, §4.8",
    origin: Origin::Published,
    notes: Notes {
        status: "RFC 7252, a Proposed Standard. Every implementation of CoAP has it.",
        use_when: "Round trips are well below 2 s, messages are rare, and neither RAM nor code can be \
            spent. It keeps nothing of a destination.",
        avoid_when: "Round trips come near 2 s or beyond, as over NB-IoT, or many devices answer to \
            one event.",
        hazards: "It learns nothing. Where the round-trip time exceeds the timeout it retransmits every \
            message needlessly, and goes on doing so. With many clients and long queues that is congestion \
            collapse.",
    },
    mechanism: Mechanism::Default(DefaultTimer::DEFAULT),
};

// Nothing is kept between exchanges.
const _: () = assert!(size_of::<<DefaultTimer as Controller>::State>() == 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn an_exchange_of_default_takes_at_most_93_s() {
        let draw = Draw::from_bits(u32::MAX);
        let (mut exchange, mut wait) = DefaultTimer::DEFAULT.on_start(&mut (), Cue { draw, ..at(0) });
        for _ in 0..4 {
            wait += DefaultTimer::DEFAULT.on_retransmit(&mut (), &mut exchange, at(0));
        }
        assert_eq!(wait, Duration::from_secs(93)); // MAX_TRANSMIT_WAIT, RFC 7252 §4.8.2
    }

    #[test]
    fn default_spaces_unanswered_non_confirmable_messages_by_3_s_or_ack_timeout() {
        assert_eq!(DefaultTimer::DEFAULT.limits(&()).non_gap, Duration::from_secs(3));
        let slow = DefaultTimer { ack_timeout: Duration::from_secs(5), ..DefaultTimer::DEFAULT };
        assert_eq!(slow.limits(&()).non_gap, Duration::from_secs(5));
    }

    #[test]
    fn the_longest_span_of_default_is_max_transmit_span() {
        assert_eq!(DefaultTimer::DEFAULT.max_span(4), Duration::from_secs(45)); // RFC 7252 §4.8.2
    }

    /// Returns the five timeouts of an exchange with a preset, in milliseconds. The draws are in units of 2⁻⁸: 128 is a half.
    fn milliseconds(preset: &str, draws: [u8; 5]) -> [u64; 5] {
        let mut timer = DefaultTimer::DEFAULT;
        timer.set("preset", preset).unwrap();
        let cue = |draw: u8| Cue { draw: Draw::from_bits(u32::from(draw) << 24), ..at(0) };
        let (mut exchange, first) = timer.on_start(&mut (), cue(draws[0]));
        let [_, rest @ ..] = draws;
        let [a, b, c, d] = rest.map(|draw| timer.on_retransmit(&mut (), &mut exchange, cue(draw)));
        [first, a, b, c, d].map(|timeout| timeout.as_micros() / 1_000)
    }

    #[test]
    fn stacks_that_keep_to_the_rfc_are_the_default() {
        for preset in
            ["libcoap-4", "californium-3", "aiocoap", "openthread", "node-coap", "coap-rs", "zephyr"]
        {
            assert_eq!(
                milliseconds(preset, [128, 1, 2, 3, 4]),
                [2_500, 5_000, 10_000, 20_000, 40_000],
                "{preset}"
            );
        }
    }

    #[test]
    fn zephyr_waits_for_the_next_half_second_since_the_first_transmission() {
        // Timeouts of 2.25, 4.5, 9 s... pass 2.25, 6.75, 15.75, 33.75 and 69.75 s after it.
        assert_eq!(milliseconds("zephyr-3", [64; 5]), [2_500, 4_500, 9_000, 18_000, 36_000]);
        assert_eq!(milliseconds("zephyr-3", [16; 5]), [2_500, 4_000, 8_000, 16_500, 33_000]);
        assert_eq!(milliseconds("zephyr-3", [0; 5]), [2_000, 4_000, 8_000, 16_000, 32_000]);
    }

    #[test]
    fn go_coap_looks_every_four_seconds() {
        assert_eq!(milliseconds("go-coap-3.5", [0; 5]), [2_000, 4_000, 4_000, 4_000, 4_000]);
        assert_eq!(milliseconds("go-coap-3.5", [192, 0, 0, 0, 0]), [5_000, 4_000, 4_000, 4_000, 4_000]);
    }

    #[test]
    fn go_coap_since_3_6_begins_a_timeout_at_a_tick() {
        // Timeouts of 2, 4, 8, 16 and 32 s, which are whole ticks, and of 2.75, 5.5, 11, 22 and 44 s.
        assert_eq!(milliseconds("go-coap", [0; 5]), [2_000, 4_000, 8_000, 16_000, 32_000]);
        assert_eq!(milliseconds("go-coap", [192, 0, 0, 0, 0]), [5_750, 8_000, 12_000, 24_000, 44_000]);
    }

    #[test]
    fn riot_draws_every_timeout_and_wakaama_and_coap_rs_none() {
        assert_eq!(milliseconds("riot", [0, 128, 0, 128, 0]), [2_000, 5_000, 8_000, 20_000, 32_000]);
        assert_eq!(milliseconds("wakaama", [77; 5]), [2_000, 4_000, 8_000, 16_000, 32_000]);
        assert_eq!(milliseconds("coap-rs-0.26", [77; 5]), [2_000; 5]);
    }

    #[test]
    fn matter_has_one_more_timeout_before_it_backs_off() {
        assert_eq!(milliseconds("matter", [0; 5]), [330, 330, 528, 844, 1_351]);
        assert_eq!(milliseconds("matter-thread", [128, 0, 0, 0, 0]), [3_976, 3_701, 5_021, 7_134, 10_515]);
    }

    #[test]
    fn the_last_timeouts_of_nrf_connect_and_contiki_ng_are_beyond_a_minute() {
        assert_eq!(milliseconds("nrf-nbiot", [0; 5])[4], 240_000);
        assert_eq!(milliseconds("contiki-ng", [255; 5])[4], 71_906);
    }

    #[test]
    fn the_upper_bound_of_timeouts_holds_for_any_number_of_retransmissions() {
        let (mut exchange, _) = DefaultTimer::DEFAULT.on_start(&mut (), at(0));
        for _ in 0..300 {
            DefaultTimer::DEFAULT.on_retransmit(&mut (), &mut exchange, at(0));
        }
        assert_eq!(DefaultTimer::DEFAULT.timeout(exchange), Duration::from_secs(60));
    }
}
