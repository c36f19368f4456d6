//! The keys of medium access, with presets for the stacks that implement it.

use coapace_sim::Span;
use coapace_sim::mesh::{Awake, Backoff, ChannelBusy, ContikiMacConfig, DutyCycle, MacConfig, TschConfig};

use crate::schema::kind::Or;
use crate::schema::scalar::{SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::{tagged, word_or_table, words};

keys! {
    /// Unslotted CSMA/CA, as several stacks implement it. The defaults shown belong to the preset `standard`; every preset has
    /// its own.
    for MacConfig = MacConfig::STANDARD, checked by driver_is_possible {
        /// Whether a node assesses the channel before it sends a frame (CSMA). If not, it sends the frame at once.
        csma: SWITCH;
        /// Whether frames to one node are acknowledged. A frame without an acknowledgement is sent again.
        acknowledgements: SWITCH;
        /// The rule by which backoffs are drawn. `units`: from 0 to 2^BE − 1 backoff units (IEEE 802.15.4). `ticks`:
        /// from 0 to (2^BE − 1)·`backoff_ticks` − 1 ticks of the clock (Contiki 3.x, Contiki-NG). `linear`: none before
        /// the first attempt, later one unit and up to three more (Contiki 2.x).
        backoff: one_of();
        /// The length of a backoff unit; with the rule `ticks`, the length of a tick of the clock.
        backoff_unit: TIME;
        /// For the rule `ticks`: the number of ticks in a backoff unit.
        backoff_ticks: Whole(1, 100_000);
        /// macMinBE: the backoff exponent BE of the first backoff.
        min_be: Whole(0, 16);
        /// macMaxBE: the largest backoff exponent BE.
        max_be: Whole(0, 16);
        /// macMaxCSMABackoffs: the most backoffs that follow a busy channel in one attempt. Then the attempt is over.
        max_csma_backoffs: Whole(0, 255);
        /// macMaxFrameRetries: the most times that a frame is sent again because its acknowledgement did not come.
        max_frame_retries: Whole(0, 254);
        /// What happens after an attempt that found the channel busy too often. `drop`: the frame is dropped.
        /// `attempt`: the attempt counts like one without an acknowledgement.
        channel_busy: one_of();
        /// The duration of clear channel assessment.
        cca: TIME;
        /// The time from a clear channel to the first bit of a frame.
        turnaround: TIME;
        /// The time from the end of a frame to the start of its acknowledgement.
        ack_turnaround: TIME;
        /// The time after the end of a frame within which its whole acknowledgement must arrive.
        ack_wait: TIME;
        /// The interframe space: the time from the end of an attempt to the next action of the node.
        spacing: TIME;
        /// The maximum number of frames that a node can hold, in all its queues together.
        queue_frames: Whole(1, 60_000);
        /// The maximum number of queues of a node, which has one for each neighbour that it has frames for. "one": a
        /// single queue for all.
        neighbour_queues: Or("one", Whole(1, 15));
        /// The number of senders of which a node remembers the last frame, so that it recognises a copy. The senders
        /// heard last are remembered.
        duplicates: Whole(0, 255);
        /// Whether a node has only one thread: while it sends a frame and waits for the acknowledgement, it handles
        /// nothing else, and its radio keeps only one of the frames that arrive (Contiki's nullrdc on a Cooja mote).
        one_thread: SWITCH;
        /// The times at which radios are on: always (`none`), at wake-ups (`contikimac`), or in the cells of TSCH
        /// (`tsch`). The name of the kind, or a table with the kind and its parameters.
        duty_cycle: word_or_table();
    }
    presets {
        /// The source of the other keys' defaults. `standard`: IEEE 802.15.4-2015. `contiki-2`, `contiki-3`,
        /// `contiki-ng`: the drivers of these systems over a radio that is always on. `contiki-2.7`: Contiki 2.7 on a
        /// Z1. `z1`: Contiki 3.x on a Z1. `contikimac`: Contiki 2.x over radios that sleep (Dunkels 2011). `tsch`: IEEE
        /// 802.15.4 with the minimal schedule of RFC 8180. `none`: no carrier sense and no acknowledgements.
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
    /// ContikiMAC (Dunkels 2011): a receiver wakes up at intervals, and a sender repeats a frame until its receiver is
    /// awake. A frame to all neighbours is repeated for a whole interval.
    for ContikiMacConfig = ContikiMacConfig::DUNKELS_2011, checked by wake_ups_are_apart {
        /// The time from one wake-up of a receiver to the next.
        wake_interval: TIME;
        /// The time that the radio is on for each of the two channel assessments of a wake-up.
        cca: TIME;
        /// The time between the two channel assessments of a wake-up.
        cca_gap: TIME;
        /// The time from one copy of a frame to the next. The acknowledgement must begin within it.
        frame_gap: TIME;
        /// The time for which a node that noticed a transmission listens for a frame.
        listen: TIME;
        /// Whether a sender remembers when its neighbours wake up, and begins to send shortly before.
        phase_lock: SWITCH;
    }
}

keys! {
    /// TSCH with one shared cell in each slotframe (RFC 8180). All nodes send all their frames in this cell, by slotted
    /// Aloha. `min_be` and `max_be` count cells.
    for TschConfig = TschConfig::RFC_8180, checked by slots_have_room {
        /// The length of a slot.
        slot: TIME;
        /// The number of slots in a slotframe.
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
    // 2120 us is macTsTxOffset for slots of 10 ms (IEEE 802.15.4-2015); a later frame would leave its acknowledgement no room.
    let fits = guard > Span::ZERO && guard < tx_offset && tx_offset <= Span::from_micros(2_120);
    Misfit::unless(fits, "guard", "must be more than 0 and less than `tx_offset`, which is 2120 us at most")
}

keys! {
    /// Radios are always on.
    for Awake {}
}
