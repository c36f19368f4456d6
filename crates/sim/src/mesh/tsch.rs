//! TSCH: the shared cell of each slotframe.

use super::Mesh;
use super::duty_cycle::{DutyCycle, TschConfig};
use super::event::MeshEvent;
use super::mac::QueueState;
use crate::{MediumContext, MediumEvents, Time};

impl Mesh {
    pub(super) fn tsch(&self) -> Option<TschConfig> {
        match self.config.mac.duty_cycle {
            DutyCycle::Tsch(config) => Some(config),
            DutyCycle::None(_) | DutyCycle::ContikiMac(_) => None,
        }
    }

    /// Schedules the first cell.
    pub(super) fn await_cell(&self, events: &mut MediumEvents<'_>) {
        if let Some(TschConfig { tx_offset, guard, .. }) = self.tsch() {
            // Receivers begin to listen a guard time before the first bit may come.
            events.push(Time::ZERO + (tx_offset - guard), MeshEvent::Cell.encode());
        }
    }

    /// Begins a cell: nodes with a frame will send it, and all others listen.
    pub(super) fn cell<T>(&mut self, moment: &mut MediumContext<'_, T>) {
        let Some(config) = self.tsch() else { return };
        for node in 0..self.macs.len() as u32 {
            if !self.air.is_on(node) {
                continue;
            }
            self.air.wake(moment.now, node);
            let mac = &mut self.macs[node as usize];
            // An attempt of the last cell is not over.
            if mac.active.is_some() || mac.acknowledging.is_some() {
                continue;
            }
            let mut ready = None;
            // Every queue that waits counts the cell, and the first that is ready sends.
            for (queue, number) in mac.queues.iter_mut().zip(0..) {
                if queue.state != QueueState::Busy || queue.frames.is_empty() {
                    continue;
                }
                if queue.cells > 0 {
                    queue.cells -= 1;
                } else if ready.is_none() {
                    ready = Some(number);
                }
            }
            mac.active = ready;
            if ready.is_some() {
                moment.events.push(moment.now + config.guard, MeshEvent::Send(node).encode());
            }
        }
        // A frame whose first bit has not come a guard time after it was due does not come.
        moment.events.push(moment.now + config.guard * 2, MeshEvent::CellIdle.encode());
        let frame = config.slot * u64::from(config.slotframe);
        moment.events.push(moment.now + frame, MeshEvent::Cell.encode());
    }

    /// Lets the nodes that have heard nothing in the cell switch off their radios.
    pub(super) fn cell_is_idle<T>(&mut self, moment: &mut MediumContext<'_, T>) {
        for node in 0..self.macs.len() as u32 {
            self.fall_asleep(moment.now, node);
        }
    }
}
