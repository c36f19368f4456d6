//! The node: an endpoint, driven by the network and the clock.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use coapace_control::{Draw, Instant};
use coapace_proto::{Config, Setup, Step};

use crate::clock::Clock;
use crate::control::Control;
use crate::network::Network;

/// An endpoint whose peers are named by their IPv4 address and port.
pub(crate) type Endpoint = coapace_proto::Endpoint<Control, SocketAddrV4>;
/// What an endpoint tells the application.
pub(crate) type Event<'a> = coapace_proto::Event<'a, SocketAddrV4>;

/// What a node does with its endpoint.
pub(crate) trait Application {
    /// Reacts to an event.
    fn handle(&mut self, now: Instant, endpoint: &mut Endpoint, event: Event<'_>);

    /// Asks the endpoint for what is to be done now. Returns when to be called again even if there is no event before.
    fn advance(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next;
}

/// What an application waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next event, or this moment.
    Wait(Option<Instant>),
    /// Nothing: it is done.
    End,
}

/// Returns the parameters of a mote. Each table has room for few entries, which bounds the heap.
pub(crate) fn config() -> Config {
    Config {
        max_exchanges: 4,
        max_peers: 8,
        max_observers: 4,
        max_listeners: 4,
        max_replies: 4,
        max_deduplicated: 16,
        ..Config::default()
    }
}

/// Runs an application until its end.
pub(crate) fn run(
    application: &mut impl Application,
    setup: Setup<Control>,
    seed: u64,
    network: &mut Network,
    clock: &mut Clock,
) {
    let mut endpoint = Endpoint::new(Arc::new(setup), seed);
    let mut outgoing = Vec::new();
    loop {
        network.poll(clock.now());
        while let Some((from, datagram)) = network.receive() {
            let now = clock.now();
            if let Some(event) = endpoint.handle_datagram(now, from, datagram) {
                application.handle(now, &mut endpoint, event);
            }
        }
        endpoint.handle_timeout(clock.now());
        let next = loop {
            let now = clock.now();
            while let Some(event) = endpoint.poll_event() {
                application.handle(now, &mut endpoint, event);
            }
            let next = application.advance(now, &mut endpoint);
            // A departure may end an exchange without success, so events are asked for again.
            if !transmit(now, seed, &mut endpoint, network, &mut outgoing) {
                break next;
            }
        };
        network.flush(clock.now());
        match next {
            Next::End => return,
            Next::Wait(until) => {
                let wakeups = [until, endpoint.poll_timeout(), network.poll_timeout(clock.now())];
                clock.sleep_until(wakeups.into_iter().flatten().min());
            }
        }
    }
}

/// Hands the network what the endpoint has to send. Returns whether that was anything.
fn transmit(
    now: Instant,
    seed: u64,
    endpoint: &mut Endpoint,
    network: &mut Network,
    datagram: &mut Vec<u8>,
) -> bool {
    let mut any = false;
    while network.can_send() {
        datagram.clear();
        let Some(transmit) = endpoint.poll_transmit(now, |step| draw(seed, step), datagram) else { break };
        network.send(transmit.to, datagram);
        any = true;
    }
    any
}

/// Returns the random number of a transmission: SplitMix64 (Steele et al. 2014) of seed and step. A product takes the seed
/// from the hardware, so that no two motes dither alike.
fn draw(seed: u64, step: Step) -> Draw {
    let key = u64::from(step.exchange) << 8 | u64::from(step.transmission);
    let mut bits = seed.wrapping_add((key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Draw::from_bits((bits ^ bits >> 31) as u32)
}
