//! Runs cases without sockets and without waiting, against scripted stacks.

use std::time::Duration;

use coap_numbers::option;
use coapace_proto::{Code, Kind, Message, Options};

use super::case::{Case, DatagramSchedule, DueDatagram, ExaminationTarget};
use super::finding::{Finding, Severity};
use super::packet::{Packet, PacketDirection, empty, message};
use super::transcript::Transcript;

/// The datagrams that a scripted stack will send, with their times in milliseconds.
pub(crate) type ScriptedDatagrams = Vec<(u64, Vec<u8>)>;

/// Runs a case against a scripted stack, and judges it. Returns the findings.
pub(crate) fn rehearse(
    case: &Case,
    target: &ExaminationTarget,
    peer: impl FnMut(u64, Option<&[u8]>, &mut ScriptedDatagrams),
) -> Vec<Finding> {
    case.findings(target, &played(case, target, peer))
}

/// Runs a case against the scripted stack `peer`, and returns the packets. `peer` is called with the time in
/// milliseconds, at first without a datagram, and then with every datagram of the examiner. It adds the datagrams that
/// it will send to its last argument.
pub(crate) fn played(
    case: &Case,
    target: &ExaminationTarget,
    mut peer: impl FnMut(u64, Option<&[u8]>, &mut ScriptedDatagrams),
) -> Transcript {
    let address = "192.0.2.1:5683".parse().unwrap();
    let (mut transcript, mut pending, mut number) = (Transcript::default(), ScriptedDatagrams::new(), 0);
    let mut outbox = DatagramSchedule::default();
    peer(0, None, &mut pending);
    (case.begin)(target, &mut outbox);
    let end = case.lasts(target.is_quick);
    loop {
        let theirs = pending.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let ours = outbox.due.iter().enumerate().min_by_key(|(_, due)| due.at);
        let theirs = theirs.map(|(place, (at, _))| (place, Duration::from_millis(*at)));
        let ours = ours.map(|(place, due)| (place, due.at));
        let Some(now) = theirs.into_iter().chain(ours).map(|(_, at)| at).min() else {
            // Time passes until the case has seen enough.
            transcript.until = end;
            break;
        };
        transcript.until = now;
        // The driver does not ask before the first packet either.
        if now > end || !transcript.packets.is_empty() && (case.is_enough)(target, &transcript) {
            break;
        }
        outbox.now = now;
        number += 1;
        let add = |direction, bytes| Packet { number, at: now, lane: 0, peer: address, direction, bytes };
        match (ours, theirs) {
            // If both are due, the examiner goes first, so that every rehearsal has one order.
            (Some((place, at)), _) if at == now => {
                let DueDatagram { bytes, .. } = outbox.due.remove(place);
                peer(now.as_millis() as u64, Some(&bytes), &mut pending);
                assert!(transcript.add(add(PacketDirection::Sent, bytes)));
            }
            (_, Some((place, _))) => {
                let (_, bytes) = pending.remove(place);
                let packet = add(PacketDirection::Received, bytes);
                assert!(transcript.add(packet.clone()));
                (case.react)(target, &transcript, &packet, &mut outbox);
            }
            _ => unreachable!("one of both is next"),
        }
    }
    transcript
}

/// Returns the worst severity of the findings.
pub(crate) fn worst(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
}

/// Returns a scripted client that makes `count` confirmable requests one after the other. `timeout_ms` returns the
/// timeout of an exchange and copy, both counted from 0. `break_it` receives each message of the examiner; if it
/// returns true, the client does not react as usual.
pub(crate) fn client(
    count: u16,
    timeout_ms: impl Fn(u16, u32) -> u64,
    mut break_it: impl FnMut(u64, &Message<'_>, &mut ScriptedDatagrams) -> bool,
) -> impl FnMut(u64, Option<&[u8]>, &mut ScriptedDatagrams) {
    let mut exchange = 0;
    let begin = move |exchange: u16, now: u64, pending: &mut ScriptedDatagrams| {
        let mut at = now;
        for copy in 0..5 {
            pending.push((at, request(exchange)));
            at += timeout_ms(exchange, copy);
        }
    };
    move |now, bytes, pending| {
        let Some(bytes) = bytes else { return begin(0, now, pending) };
        let Ok(received) = Message::parse(bytes) else {
            // A confirmable message with a format error is rejected (RFC 7252 §4.2).
            if bytes.len() >= 4 && bytes[0] >> 4 == 4 {
                pending.push((now, empty(Kind::Reset, u16::from_be_bytes([bytes[2], bytes[3]]))));
            }
            return;
        };
        if break_it(now, &received, pending) {
            return;
        }
        if received.code.is_response()
            && received.first_unrecognised(&[option::BLOCK1, option::BLOCK2]).is_some()
        {
            // A rejected confirmable response gets a Reset. A rejected acknowledgement is ignored (RFC 7252 §5.4.1, §4.2).
            if received.kind == Kind::Confirmable {
                pending.push((now, empty(Kind::Reset, received.message_id)));
            }
            return;
        }
        let own = request(exchange);
        let own = Message::parse(&own).unwrap();
        let is_mine = received.message_id == own.message_id;
        let is_answer = received.code.is_response() && received.token == own.token;
        let is_old = received.code.is_response() && received.token.first() == Some(&0xee);
        match received.kind {
            Kind::Acknowledgement | Kind::Reset if !is_mine => {}
            Kind::Acknowledgement if received.code.is_response() && !is_answer => {}
            Kind::Confirmable if is_answer || is_old => {
                pending.push((now, empty(Kind::Acknowledgement, received.message_id)));
            }
            Kind::Confirmable => pending.push((now, empty(Kind::Reset, received.message_id))),
            _ => {}
        }
        let is_over = is_answer && (received.kind != Kind::Acknowledgement || is_mine)
            || received.kind == Kind::Reset && is_mine;
        if is_over || received.kind == Kind::Acknowledgement && is_mine && received.code == Code::EMPTY {
            pending.retain(|(_, bytes)| !bytes.starts_with(&request(exchange)));
        }
        if is_over && exchange + 1 < count {
            exchange += 1;
            begin(exchange, now, pending);
        }
    }
}

/// Returns the request of the scripted client in an exchange.
pub(crate) fn request(exchange: u16) -> Vec<u8> {
    // The multiplication scatters the tokens.
    let [high, low] = exchange.wrapping_mul(40_503).to_be_bytes();
    let token = [0xee, high, low, high ^ low.rotate_left(3)];
    message(Kind::Confirmable, Code::GET, 1_000 + exchange, &token, &Options::new().uri_path("examined"), &[])
}

/// Returns false: the `break_it` of a conforming [`client`].
pub(crate) fn sound(_: u64, _: &Message<'_>, _: &mut ScriptedDatagrams) -> bool {
    false
}
