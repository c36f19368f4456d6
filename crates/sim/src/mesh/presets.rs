//! Presets: the parameters of standards and stacks, from their sources.

use super::{Backoff, ChannelBusy, LowpanConfig, MacConfig, Propagation, RadioConfig};
use crate::Span;

impl MacConfig {
    /// IEEE 802.15.4-2015 at 2.4 GHz: macMinBE 3, macMaxBE 5, macMaxCSMABackoffs 4, macMaxFrameRetries 3, one queue. The wait
    /// for an acknowledgement is 54 symbols, like in ns-3's lr-wpan.
    pub const STANDARD: Self = Self {
        csma: true,
        acknowledgements: true,
        backoff: Backoff::Units { unit: Span::from_micros(320) },
        min_be: 3,
        max_be: 5,
        max_csma_backoffs: 4,
        max_frame_retries: 3,
        channel_busy: ChannelBusy::Drop,
        cca: Span::from_micros(128),
        turnaround: Span::from_micros(192),
        ack_turnaround: Span::from_micros(192),
        ack_wait: Span::from_micros(864),
        spacing: Span::from_micros(640),
        queue_frames: 16,
        neighbour_queues: None,
        duplicates: 16,
    };

    /// The driver of Contiki 2.x (core/net/mac/csma.c) over a CC2420 that is always on: the first attempt at once, then a linear
    /// backoff of 1/32 s, four attempts in all, two queues and eight buffers. The backoff is that of a channel check rate of
    /// 32 Hz; the default rate is 8 Hz.
    pub const CONTIKI_2: Self = Self {
        backoff: Backoff::Linear { unit: Span::from_micros(31_250) },
        min_be: 0,
        max_be: 0,
        max_csma_backoffs: 64,
        channel_busy: ChannelBusy::Attempt,
        spacing: Span::ZERO,
        queue_frames: 8,
        neighbour_queues: Some(2),
        ..Self::STANDARD
    };

    /// The driver of Contiki 3.x (core/net/mac/csma.c over nullrdc) on a Cooja mote: ticks of 1 ms, no backoff before the first
    /// attempt, eight attempts. The radio turns around in 2 ms and then assesses the channel. It acknowledges after 1 ms.
    pub const CONTIKI_3: Self = Self {
        backoff: Backoff::Ticks { tick: Span::from_millis(1), ticks: 1 },
        min_be: 0,
        max_be: 4,
        max_csma_backoffs: 5,
        max_frame_retries: 7,
        channel_busy: ChannelBusy::Attempt,
        cca: Span::from_millis(2),
        turnaround: Span::ZERO,
        ack_turnaround: Span::from_millis(1),
        ack_wait: Span::from_millis(2),
        spacing: Span::ZERO,
        queue_frames: 16,
        neighbour_queues: Some(2),
        ..Self::STANDARD
    };

    /// The driver of Contiki-NG (os/net/mac/csma/csma-output.c) on a Cooja mote: units of 6 ms, macMinBE 3, macMaxBE 5.
    pub const CONTIKI_NG: Self = Self {
        backoff: Backoff::Ticks { tick: Span::from_millis(1), ticks: 6 },
        min_be: 3,
        max_be: 5,
        queue_frames: 64,
        ..Self::CONTIKI_3
    };

    /// No carrier sense and no acknowledgements (Contiki's nullmac).
    pub const NONE: Self =
        Self { csma: false, acknowledgements: false, max_frame_retries: 0, ..Self::STANDARD };
}

impl RadioConfig {
    /// A unit disk of 10 m with interference to 20 m and no other loss, and the preamble of the standard.
    pub const UNIT_DISK: Self = Self {
        propagation: Propagation::UnitDisk {
            range_m: 10.0,
            interference_m: 20.0,
            sense_m: 10.0,
            edge_delivery: 1.0,
        },
        delivery: (1.0, 1.0),
        phy_header_bytes: 6,
        start_spread: Span::from_secs(1),
    };
}

impl LowpanConfig {
    /// Contiki 3.x: two datagrams at a time, each for 1.25 s (core/net/ipv6/sicslowpan.c).
    pub const CONTIKI_3: Self = Self {
        max_frame_bytes: 127,
        hop_limit: 64,
        reassembly_contexts: 2,
        reassembly_timeout: Span::from_millis(1_250),
    };
}
