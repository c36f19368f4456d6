//! The keys of medium access, and what stacks make of them.

use coapace_sim::mesh::{Backoff, ChannelBusy, MacConfig};

use crate::schema::kind::Or;
use crate::schema::scalar::{Switch, Time, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;

keys! {
    /// Unslotted CSMA/CA, and what stacks make of it. The defaults shown are those of the preset `standard`; with another
    /// preset they are its own.
    for MacConfig = MacConfig::STANDARD, checked by exponents_fit {
        /// Clear channel assessment before a frame is sent.
        csma: Switch;
        /// Acknowledgements of frames. A frame without one is sent again.
        acknowledgements: Switch;
        /// The rule of backoffs: `units`, from 0 to 2^BE − 1 of them (IEEE 802.15.4); `ticks` of the clock, from 0 to
        /// (2^BE − 1)·`backoff_ticks` − 1 (Contiki 3.x, Contiki-NG); `linear`, none before the first attempt, then a unit
        /// and up to three more (Contiki 2.x).
        backoff: one_of();
        /// The unit of the backoff, or the tick.
        backoff_unit: Time;
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
        cca: Time;
        /// The time from a clear channel to the first bit of a frame.
        turnaround: Time;
        /// The time from a frame to its acknowledgement.
        ack_turnaround: Time;
        /// The time from a frame until its acknowledgement must have come whole.
        ack_wait: Time;
        /// The time from an attempt to the next.
        spacing: Time;
        /// Frames that a node has room for, in all of its queues.
        queue_frames: Whole(1, 60_000);
        /// Queues of a node, one for each neighbour that it has frames for; or one queue for all.
        neighbour_queues: Or("one", Whole(1, 15));
        /// Senders, those heard last, whose last frame a node recognises when it comes again.
        duplicates: Whole(0, 255);
    }
    presets {
        /// The source of the other keys' defaults: `standard` is IEEE 802.15.4-2015; `contiki-2`, `contiki-3` and `contiki-ng`
        /// are the drivers of these systems over a radio that is always on, `contiki-2.7` that of a Z1;
        /// `none` neither listens before it sends nor acknowledges.
        "standard" => MacConfig::STANDARD,
        "contiki-2" => MacConfig::CONTIKI_2,
        "contiki-2.7" => MacConfig::CONTIKI_2_7,
        "contiki-3" => MacConfig::CONTIKI_3,
        "contiki-ng" => MacConfig::CONTIKI_NG,
        "none" => MacConfig::NONE,
    }
}

words! {
    for Backoff { Units = "units", Ticks = "ticks", Linear = "linear", }
}

words! {
    for ChannelBusy { Drop = "drop", Attempt = "attempt", }
}

fn exponents_fit(mac: &MacConfig) -> Result<(), Misfit> {
    if mac.max_be < mac.min_be {
        return Err(Misfit::new("max_be", format!("must not be below `min_be`, which is {}", mac.min_be)));
    }
    Ok(())
}
