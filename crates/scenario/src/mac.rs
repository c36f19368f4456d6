//! The keys of medium access, and what stacks make of them.

use coapace_sim::Span;
use coapace_sim::mesh::{Backoff as SimBackoff, ChannelBusy as SimChannelBusy, MacConfig};

use crate::schema::document::{Item, Value};
use crate::schema::kind::Or;
use crate::schema::scalar::{Switch, Time, Whole, Words, one_of};
use crate::schema::table::{Misfit, filled, keys};
use crate::schema::words::words;

keys! {
    /// Unslotted CSMA/CA, and what stacks make of it. The defaults shown are those of the preset `standard`; with another
    /// preset they are its own.
    pub struct Mac completed by preset_fills, checked by exponents_fit {
        /// Whose defaults the other keys have: `standard` is IEEE 802.15.4-2015; `contiki-2`, `contiki-3` and `contiki-ng`
        /// are the drivers of these systems over a radio that is always on; `none` neither listens before it sends nor
        /// acknowledges.
        preset: Preset, one_of() => Preset::Standard;
        /// Whether the channel is assessed before a frame is sent.
        csma: bool, Switch => MacConfig::STANDARD.csma;
        /// Whether frames are acknowledged, and sent again if they are not.
        acknowledgements: bool, Switch => MacConfig::STANDARD.acknowledgements;
        /// How backoffs are drawn: `units`, from 0 to 2^BE − 1 of them (IEEE 802.15.4); `ticks` of the clock, from 0 to
        /// (2^BE − 1)·`backoff_ticks` − 1 (Contiki 3.x, Contiki-NG); `linear`, none before the first attempt, then a unit
        /// and up to three more (Contiki 2.x).
        backoff: Backoff, one_of() => backoff(MacConfig::STANDARD).0;
        /// The unit of the backoff, or the tick.
        backoff_unit: Span, Time => backoff(MacConfig::STANDARD).1;
        /// Ticks in a unit, for `ticks`.
        backoff_ticks: u32, Whole(1, 100_000) => backoff(MacConfig::STANDARD).2;
        /// macMinBE.
        min_be: u8, Whole(0, 16) => MacConfig::STANDARD.min_be;
        /// macMaxBE.
        max_be: u8, Whole(0, 16) => MacConfig::STANDARD.max_be;
        /// macMaxCSMABackoffs: backoffs after a busy channel before the attempt is over.
        max_csma_backoffs: u8, Whole(0, 255) => MacConfig::STANDARD.max_csma_backoffs;
        /// macMaxFrameRetries: how often a frame is sent again without an acknowledgement.
        max_frame_retries: u8, Whole(0, 254) => MacConfig::STANDARD.max_frame_retries;
        /// What follows when the channel was busy too often: the frame is dropped, or it counts as an attempt without an
        /// acknowledgement.
        channel_busy: ChannelBusy, one_of() => ChannelBusy::Drop;
        /// How long the channel is assessed.
        cca: Span, Time => MacConfig::STANDARD.cca;
        /// From a clear channel to the first bit of a frame.
        turnaround: Span, Time => MacConfig::STANDARD.turnaround;
        /// From a frame to its acknowledgement.
        ack_turnaround: Span, Time => MacConfig::STANDARD.ack_turnaround;
        /// From a frame until its acknowledgement must have come whole.
        ack_wait: Span, Time => MacConfig::STANDARD.ack_wait;
        /// From an attempt to the next.
        spacing: Span, Time => MacConfig::STANDARD.spacing;
        /// Frames that a node has room for, in all of its queues.
        queue_frames: u16, Whole(1, 60_000) => MacConfig::STANDARD.queue_frames;
        /// Queues of a node, one for each neighbour that it has frames for; or one queue for all.
        neighbour_queues: Option<u8>, Or("one", Whole(1, 15)) => MacConfig::STANDARD.neighbour_queues;
        /// Of how many senders, those heard last, a node recognises the last frame when it comes again.
        duplicates: u8, Whole(0, 255) => MacConfig::STANDARD.duplicates;
    }
}

words! {
    /// Whose medium access it is.
    pub enum Preset {
        /// IEEE 802.15.4-2015.
        Standard = "standard",
        /// Contiki 2.x.
        Contiki2 = "contiki-2",
        /// Contiki 3.x.
        Contiki3 = "contiki-3",
        /// Contiki-NG.
        ContikiNg = "contiki-ng",
        /// None at all.
        None = "none",
    }
}

words! {
    /// How backoffs are drawn.
    pub enum Backoff {
        /// Whole units.
        Units = "units",
        /// Ticks of a clock.
        Ticks = "ticks",
        /// Longer with every attempt.
        Linear = "linear",
    }
}

words! {
    /// What follows when the channel was busy too often.
    pub enum ChannelBusy {
        /// The frame is dropped.
        Drop = "drop",
        /// It counts as sent without an acknowledgement.
        Attempt = "attempt",
    }
}

impl Preset {
    /// What it stands for.
    pub const fn config(self) -> MacConfig {
        match self {
            Self::Standard => MacConfig::STANDARD,
            Self::Contiki2 => MacConfig::CONTIKI_2,
            Self::Contiki3 => MacConfig::CONTIKI_3,
            Self::ContikiNg => MacConfig::CONTIKI_NG,
            Self::None => MacConfig::NONE,
        }
    }
}

impl Mac {
    /// A preset as it is.
    fn of(preset: Preset) -> Self {
        let config = preset.config();
        let (kind, unit, ticks) = backoff(config);
        Self {
            preset,
            csma: config.csma,
            acknowledgements: config.acknowledgements,
            backoff: kind,
            backoff_unit: unit,
            backoff_ticks: ticks,
            min_be: config.min_be,
            max_be: config.max_be,
            max_csma_backoffs: config.max_csma_backoffs,
            max_frame_retries: config.max_frame_retries,
            channel_busy: match config.channel_busy {
                SimChannelBusy::Drop => ChannelBusy::Drop,
                SimChannelBusy::Attempt => ChannelBusy::Attempt,
            },
            cca: config.cca,
            turnaround: config.turnaround,
            ack_turnaround: config.ack_turnaround,
            ack_wait: config.ack_wait,
            spacing: config.spacing,
            queue_frames: config.queue_frames,
            neighbour_queues: config.neighbour_queues,
            duplicates: config.duplicates,
        }
    }

    /// Returns the configuration of the simulator.
    pub fn config(&self) -> MacConfig {
        let unit = self.backoff_unit;
        MacConfig {
            csma: self.csma,
            acknowledgements: self.acknowledgements,
            backoff: match self.backoff {
                Backoff::Units => SimBackoff::Units { unit },
                Backoff::Ticks => SimBackoff::Ticks { tick: unit, ticks: self.backoff_ticks },
                Backoff::Linear => SimBackoff::Linear { unit },
            },
            min_be: self.min_be,
            max_be: self.max_be,
            max_csma_backoffs: self.max_csma_backoffs,
            max_frame_retries: self.max_frame_retries,
            channel_busy: match self.channel_busy {
                ChannelBusy::Drop => SimChannelBusy::Drop,
                ChannelBusy::Attempt => SimChannelBusy::Attempt,
            },
            cca: self.cca,
            turnaround: self.turnaround,
            ack_turnaround: self.ack_turnaround,
            ack_wait: self.ack_wait,
            spacing: self.spacing,
            queue_frames: self.queue_frames,
            neighbour_queues: self.neighbour_queues,
            duplicates: self.duplicates,
        }
    }
}

fn exponents_fit(mac: &Mac) -> Result<(), Misfit> {
    if mac.max_be < mac.min_be {
        return Err(Misfit::new("max_be", format!("must not be below `min_be`, which is {}", mac.min_be)));
    }
    Ok(())
}

/// What the preset says stands where the file says nothing.
fn preset_fills(mac: &Item) -> Item {
    let preset = match mac.get("preset").map(|item| &item.value) {
        Some(Value::Text(word)) => Preset::ALL.iter().find(|(_, known)| known == word),
        _ => Preset::ALL.first(),
    };
    // An unknown word is refused when it is read.
    preset.map_or_else(|| mac.clone(), |&(preset, _)| filled(mac, &Mac::of(preset)))
}

/// Kind, unit and ticks of a backoff.
fn backoff(config: MacConfig) -> (Backoff, Span, u32) {
    match config.backoff {
        SimBackoff::Units { unit } => (Backoff::Units, unit, 1),
        SimBackoff::Ticks { tick, ticks } => (Backoff::Ticks, tick, ticks),
        SimBackoff::Linear { unit } => (Backoff::Linear, unit, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_comes_back_as_the_simulator_has_it() {
        for (preset, word) in Preset::ALL {
            assert_eq!(Mac::of(*preset).config(), preset.config(), "{word}");
        }
    }
}
