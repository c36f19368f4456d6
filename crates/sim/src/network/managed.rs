//! Packets in a hop with queue management: their events, and the records for taps.

use super::{NetworkEvent, record_of};
use crate::hop::ActiveHop;
use crate::packet::Header;
use crate::queue::{Departure, PacketFate};
use crate::{Event, HopId, MediumContext, Record, Tap};

/// Lets a packet enter the hop. `record` is the record of its arrival.
#[cold]
pub(super) fn enter<T: Tap>(
    active: &mut ActiveHop,
    moment: &mut MediumContext<'_, T>,
    hop: HopId,
    mut packet: Header,
    bytes: &[u8],
    record: &Record<'_>,
) {
    let (now, accounting) = (moment.now, active.accounting);
    let Some(managed) = &mut active.managed else { return };
    let arrived = managed.arrive(now, &mut packet, bytes, record.wire_bytes);
    // The queue may have marked the packet, so the record has its ECN field from after that.
    let record = Record { queue_bytes: managed.bytes(), ecn: packet.ecn(), ..*record };
    let event = match arrived {
        PacketFate::Full => Event::Dropped,
        PacketFate::Discarded => Event::Discarded,
        PacketFate::Queued | PacketFate::Marked => Event::Queued,
    };
    moment.tap.record(&Record { event, ..record });
    if arrived == PacketFate::Marked {
        moment.tap.record(&Record { event: Event::Marked, ..record });
    }
    // FQ-CoDel lets the packet in and drops one of the longest flow instead, which may be another.
    while let Some((header, bytes, place)) = managed.overflow() {
        let dropped = record_of(accounting, now, Event::Dropped, &header, &bytes);
        moment.tap.record(&Record { hop: Some(hop), queue_bytes: managed.bytes(), ..dropped });
        managed.give_back(place, bytes);
    }
    // An idle link begins at once. Otherwise the end of the present transmission begins the next one.
    if !managed.is_sending() {
        begin(active, moment, hop);
    }
}

/// Begins the next transmission of the hop, if a packet waits.
pub(super) fn begin<T: Tap>(active: &mut ActiveHop, moment: &mut MediumContext<'_, T>, hop: HopId) {
    let (now, accounting) = (moment.now, active.accounting);
    let Some(managed) = &mut active.managed else { return };
    let departure = managed.depart(now);
    while let Some((header, bytes, place)) = managed.take_discarded() {
        let discarded = record_of(accounting, now, Event::Discarded, &header, &bytes);
        moment.tap.record(&Record { hop: Some(hop), queue_bytes: managed.bytes(), ..discarded });
        managed.give_back(place, bytes);
    }
    let Some(Departure { mut header, bytes, place, wait, is_marked, finish }) = departure else { return };
    let begun = record_of(accounting, now, Event::Begun, &header, &bytes);
    let begun = Record { hop: Some(hop), queue_bytes: managed.bytes(), wait, ..begun };
    if is_marked {
        moment.tap.record(&Record { event: Event::Marked, ..begun });
    }
    moment.tap.record(&begun);
    header.due = finish + active.delay;
    // Only the first packet of a hop has an event.
    if active.fifo.len() == 0 {
        moment.events.push(header.due, NetworkEvent::Head(hop).encode());
    }
    active.fifo.push(&header, &bytes);
    managed.give_back(place, bytes);
    moment.events.push(finish, NetworkEvent::Free(hop).encode());
}
