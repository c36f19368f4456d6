//! The keys of medium access, and what stacks make of them.

use coapace_sim::Span;
use coapace_sim::mesh::{Awake, Backoff, ChannelBusy, ContikiMacConfig, DutyCycle, MacConfig, TschConfig};

use crate::schema::kind::Or;
use crate::schema::scalar::{SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::{tagged, word_or_table, words};

keys! {
    /// Unslotted CSMA/CA, and what stacks make of it. The defaults shown are those of the preset `standard`; with another
    /// preset they are its own.
    for MacConfig = MacConfig::STANDARD, checked by driver_is_possible {
        /// Clear channel assessment before a frame is sent.
        csma: SWITCH;
        /// Acknowledgements of frames. A frame without one is sent again.
        acknowledgements: SWITCH;
        /// The rule of backoffs: `units`, from 0 to 2^BE − 1 of them (IEEE 802.15.4); `ticks` of the clock, from 0 to
        /// (2^BE − 1)·`backoff_ticks` − 1 (Contiki 3.x, Contiki-NG); `linear`, none before the first attempt, then a unit
        /// and up to three more (Contiki 2.x).
        backoff: one_of();
        /// The unit of the backoff, or the tick.
        backoff_unit: TIME;
        /// Ticks in a unit, for `ticks`.
        backoff_ticks: Whole(1, 100_000);
        /// macMinBE.
        min_be: Whole(0, 16);
        /// macMaxBE.
        max_be: Whole(0, 16);
        /// macMaxCSMABackoffs: backoffs after a busy channel before the attempt is over.
        max_csma_backoffs: Whole(0, 255);
        /// macMaxFrameRetries: how often a frame is sent again without an acknowledgement.
        max_frame_retries: Whole(0, 254);
        /// The end of an attempt that found the channel busy too often: the frame is dropped, or the attempt counts like one
        /// without an acknowledgement.
        channel_busy: one_of();
        /// The duration of clear channel assessment.
        cca: TIME;
        /// The time from a clear channel to the first bit of a frame.
        turnaround: TIME;
        /// The time from a frame to its acknowledgement.
        ack_turnaround: TIME;
        /// The time from a frame until its acknowledgement must have come whole.
        ack_wait: TIME;
        /// The time from an attempt to the next.
        spacing: TIME;
        /// Frames that a node has room for, in all of its queues.
        queue_frames: Whole(1, 60_000);
        /// Queues of a node, one for each neighbour that it has frames for; or one queue for all.
        neighbour_queues: Or("one", Whole(1, 15));
        /// Senders, those heard last, whose last frame a node recognises when it comes again.
        duplicates: Whole(0, 255);
        /// One thread in a node: while it sends a frame and waits for the acknowledgement, it handles nothing else, and its radio
        /// keeps one frame of those that come (Contiki's nullrdc on a Cooja mote).
        one_thread: SWITCH;
        /// The times at which radios are on: always; ContikiMAC's wake-ups; or the cells of TSCH. The kind, or a table with
        /// parameters.
        duty_cycle: word_or_table();
    }
    presets {
        /// The source of the other keys' defaults: `standard` is IEEE 802.15.4-2015; `contiki-2`, `contiki-3` and `contiki-ng`
        /// are the drivers of these systems over a radio that is always on, `contiki-2.7` is Contiki 2.7 on a Z1, `z1` Contiki 3.x on a Z1; `contikimac` is
        /// Contiki 2.x over radios that sleep (Dunkels 2011), `tsch` IEEE 802.15.4 with the minimal schedule of RFC 8180;
        /// `none` neither listens before it sends nor acknowledges.
        "standard" => MacConfig::STANDARD,
        "contiki-2" => MacConfig::CONTIKI_2,
        "contiki-2.7" => MacConfig::CONTIKI_2_7,
        "contiki-3" => MacConfig::CONTIKI_3,
        "z1" => MacConfig::Z1,
        "contiki-ng" => MacConfig::CONTIKI_NG,
        "contikimac" => MacConfig::CONTIKIMAC,
        "tsch" => MacConfig::TSCH,
        "none" => MacConfig::NONE,
    }
}

tagged! {
    for DutyCycle {
        None(Awake) = "none",
        ContikiMac(ContikiMacConfig) = "contikimac",
        Tsch(TschConfig) = "tsch",
    }
}

keys! {
    /// Receivers wake up now and then, and senders repeat a frame until its receiver is awake (Dunkels 2011). A frame to all neighbours is
    /// repeated for a whole interval.
    for ContikiMacConfig = ContikiMacConfig::DUNKELS_2011, checked by wake_ups_are_apart {
        /// The time from one wake-up of a receiver to the next.
        wake_interval: TIME;
        /// The time that the radio is on for one of the two assessments of a wake-up.
        cca: TIME;
        /// The time between the two.
        cca_gap: TIME;
        /// The time from a frame to its repetition; its acknowledgement begins before.
        frame_gap: TIME;
        /// The time that a node which noticed a transmission waits for a frame.
        listen: TIME;
        /// Whether a sender remembers when its neighbours wake up, and begins shortly before.
        phase_lock: SWITCH;
    }
}

keys! {
    /// TSCH with one shared cell in a slotframe (RFC 8180): all frames are sent there, by slotted Aloha. `min_be` and `max_be` count cells.
    for TschConfig = TschConfig::RFC_8180, checked by slots_have_room {
        /// The length of a slot.
        slot: TIME;
        /// The slots of a slotframe.
        slotframe: Whole(1, 10_000);
        /// macTsTxOffset: the time from the beginning of a slot to its frame.
        tx_offset: TIME;
        /// The time that a receiver listens before and after the moment at which a frame should begin.
        guard: TIME;
    }
}

words! {
    for Backoff { Units = "units", Ticks = "ticks", Linear = "linear", }
}

words! {
    for ChannelBusy { Drop = "drop", Attempt = "attempt", }
}

fn driver_is_possible(mac: &MacConfig) -> Result<(), Misfit> {
    let problem = format!("must not be below `min_be`, which is {}", mac.min_be);
    Misfit::unless(mac.max_be >= mac.min_be, "max_be", problem)?;
    let is_awake = !(mac.one_thread && mac.duty_cycle.sleeps());
    Misfit::unless(
        is_awake,
        "one_thread",
        "is for radios that are always on, and these have a `duty_cycle`",
    )?;
    // A call takes an event for each tick.
    let ticks_slowly = !mac.one_thread || mac.backoff_unit >= Span::from_micros(100);
    Misfit::unless(ticks_slowly, "backoff_unit", "must be 100 us or more with `one_thread`, whose tick it is")
}

fn wake_ups_are_apart(config: &ContikiMacConfig) -> Result<(), Misfit> {
    let is_rare = config.wake_interval >= Span::from_millis(20) && config.wake_interval > config.listen;
    Misfit::unless(is_rare, "wake_interval", "must be 20 ms or more, and longer than `listen`")?;
    let problem = "must be longer than `frame_gap`, or both assessments fall into it";
    Misfit::unless(config.cca_gap > config.frame_gap, "cca_gap", problem)
}

fn slots_have_room(config: &TschConfig) -> Result<(), Misfit> {
    let TschConfig { slot, guard, tx_offset, .. } = *config;
    let problem = "must be 10 ms or more, so that the longest frame and its acknowledgement fit";
    Misfit::unless(slot >= Span::from_millis(10), "slot", problem)?;
    let fits = guard > Span::ZERO && guard < tx_offset && tx_offset <= Span::from_micros(2_120);
    Misfit::unless(fits, "guard", "must be more than 0 and less than `tx_offset`, which is 2120 us at most")
}

keys! {
    /// Radios are always on.
    for Awake {}
}
