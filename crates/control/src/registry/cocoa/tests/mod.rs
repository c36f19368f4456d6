//! Tests of CoCoA and its relatives.

mod draft;
mod variants;

use super::COCOA as COCOA_ENTRY;
use super::*;
use crate::estimator::Learning;
use crate::stamp::Stamp;
use crate::testing::{acked, at, exchange, timeouts};
use crate::{Answer, Controller, Cue, Draw, Entry, Mechanism, Outcome, Sample};

const COCOA: Cocoa = Cocoa::DEFAULT;

fn with_rto(us: u64) -> CocoaState {
    let mut state = COCOA.state();
    state.strong.update(Duration::from_secs(1), Learning::RFC6298);
    state.rto = Duration::from_micros(us).into();
    state
}

fn aged(mechanism: Cocoa, rto_ms: u64, idle_s: u64) -> u64 {
    let state = &mut with_rto(rto_ms * 1_000);
    let _ = mechanism.on_start(state, at(idle_s * 1_000));
    mechanism.gauges(state).rto.as_micros() / 1_000
}

/// Returns the mechanism of an entry, with a preset unless that is empty.
fn cocoa(entry: Entry, preset: &str) -> Cocoa {
    let Mechanism::Cocoa(mut mechanism) = entry.mechanism else { panic!("{} is another", entry.name) };
    if !preset.is_empty() {
        mechanism.set("preset", preset).unwrap();
    }
    mechanism
}

/// Returns the RTO in microseconds after each of some exchanges of (milliseconds, retransmissions), one right after the other.
fn after<const N: usize>(mechanism: Cocoa, samples: [(u64, u8); N]) -> [u64; N] {
    let state = &mut mechanism.state();
    samples.map(|(rtt, retransmits)| {
        state.renewed = Stamp::default(); // no ageing between them
        exchange(&mechanism, state, rtt, retransmits)
    })
}
