//! The emulation between two network namespaces, for IP packets of any kind.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use coapace_scenario::{Ip, Scenario};
use coapace_sim::Tap;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::EmulationError;
use super::counts::EmulationCounts;
use super::ip_packet::Ends;
use super::namespace::NetworkNamespace;
use super::passage::Passage;
use super::running::{EmulationResult, Running, SharedEmulation};
use super::steps::EmulationDirection;
use super::waiting::EventWaiter;

/// An emulation between two network namespaces that runs until it is stopped or dropped.
///
/// A packet from one namespace to an address of the other passes the network of the scenario. Every address of
/// [`clients_network`](Self::clients_network) belongs to the clients' side, and a program there may bind to any of them.
#[derive(Debug)]
pub struct Tunnel<T> {
    running: Running<T>,
    clients: NetworkNamespace,
    server: NetworkNamespace,
    is_v6: bool,
}

/// The two network devices, and the network between them.
pub(super) struct Carrier<T> {
    passage: Passage<IpAddr, T>,
    clients: SyncDevice,
    server: SyncDevice,
}

/// The name of the device in each namespace.
const DEVICE: &str = "coapace0";

/// The least MTU of IPv6 (RFC 8200 §5). A device with a smaller MTU gets no IPv6 from the system.
const LEAST_MTU_OF_V6: u32 = 1_280;

/// The number of packets that the system keeps for a device until the emulator reads them.
const QUEUE: u32 = 10_000;

/// The longest IP packet.
const LONGEST: usize = 65_535;

/// The maximum number of packets that are read from a device in a row, before packets that are due are sent.
const ROW: usize = 32;

const CLIENTS: u64 = 0;
const SERVER: u64 = 1;

impl<T: Tap + Send + 'static> Tunnel<T> {
    /// Makes the namespaces and starts to forward packets between them.
    pub(super) fn start(scenario: &Scenario, passage: Passage<IpAddr, T>) -> Result<Self, EmulationError> {
        let is_v6 = scenario.network.ip == Ip::V6;
        let mtu = if is_v6 { scenario.network.mtu.max(LEAST_MTU_OF_V6) } else { scenario.network.mtu };
        let (clients, client_device) = side(1, mtu, is_v6)?;
        let (server, server_device) = side(2, mtu, is_v6)?;
        // Only the devices move to the thread of the emulation. Programs are started through the namespaces.
        let carrier = Carrier { passage, clients: client_device, server: server_device };
        let running = Running::start(move |shared| carrier.run(shared))?;
        Ok(Self { running, clients, server, is_v6 })
    }
}

impl<T> Tunnel<T> {
    /// Returns the network of the clients' side, 10.1.0.0/16 or fd00:1::/64. All of its addresses are local in the
    /// clients' namespace.
    pub fn clients_network(&self) -> &'static str {
        if self.is_v6 { "fd00:1::/64" } else { "10.1.0.0/16" }
    }

    /// Returns the namespace of the clients.
    pub fn clients(&self) -> &NetworkNamespace {
        &self.clients
    }

    /// Returns the namespace of the server.
    pub fn server(&self) -> &NetworkNamespace {
        &self.server
    }

    /// Returns an address of the clients' side, by its number from 1, in the scenario's version of IP.
    pub fn client_address(&self, number: u16) -> IpAddr {
        address(1, number, self.is_v6)
    }

    /// Returns an address of the server's side, by its number from 1.
    pub fn server_address(&self, number: u16) -> IpAddr {
        address(2, number, self.is_v6)
    }

    /// Returns the running emulation, for its counters.
    pub fn running(&self) -> &Running<T> {
        &self.running
    }

    /// Ends the emulation; see [`Running::stop`]. The namespaces end, too, unless a program still runs in them.
    ///
    /// # Errors
    /// The errors of [`Running::stop`].
    pub fn stop(self) -> Result<(EmulationCounts, T), EmulationError> {
        // The devices go with the emulation, so their counters are read first.
        let unread = [&self.clients, &self.server].map(|side| side.run(unread).unwrap_or(0));
        let (counts, tap) = self.running.stop()?;
        Ok((EmulationCounts { overflowed: counts.overflowed + unread.iter().sum::<u64>(), ..counts }, tap))
    }
}

/// Returns the `number`th address of a side. The side is 1 for the clients and 2 for the server.
fn address(side: u8, number: u16, is_v6: bool) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    if is_v6 {
        Ipv6Addr::new(0xfd00, side.into(), 0, 0, 0, 0, 0, number).into()
    } else {
        Ipv4Addr::new(10, side, high, low).into()
    }
}

/// Makes the network namespace and the TUN device of a side: 1 for the clients, 2 for the server.
fn side(number: u8, mtu: u32, needs_v6: bool) -> Result<(NetworkNamespace, SyncDevice), EmulationError> {
    let refused = |what| move |error| EmulationError::System(what, error);
    let side = NetworkNamespace::new().map_err(EmulationError::Privileges)?;
    // A TUN device belongs to the namespace of the thread that makes it, so the thread of the namespace opens it.
    let open = move || {
        let device = DeviceBuilder::new().name(DEVICE).build_sync()?;
        device.set_nonblocking(true)?;
        io::Result::Ok(device)
    };
    let device = side.run(open).and_then(|device| device).map_err(refused("TUN device (/dev/net/tun)"))?;
    let (v4, v6) = (address(number, 1, false), address(number, 1, true));
    // A side has no default route, so that queries for a name server do not load the link.
    let other = 3 - number;
    side.configure(format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {QUEUE}\n\
         address add {v4}/32 dev {DEVICE}\n\
         link set {DEVICE} up\n\
         route add local 10.{number}.0.0/16 dev lo\n\
         route add 10.{other}.0.0/16 dev {DEVICE} src {v4}\n"
    ))
    .map_err(refused("addresses"))?;
    // A system without IPv6 can emulate IPv4, so these lines come apart. Without `nodad` the address would not be usable until
    // duplicate address detection is over (RFC 4862 §5.4).
    let configured = side.configure(format!(
        "address add {v6}/128 dev {DEVICE} nodad\n\
         route add local fd00:{number}::/64 dev lo\n\
         route add fd00:{other}::/64 dev {DEVICE} src {v6}\n"
    ));
    if needs_v6 {
        configured.map_err(refused("addresses of IPv6"))?;
    }
    Ok((side, device))
}

/// Returns how many packets the device in the calling thread's namespace dropped, because the emulator did not read
/// them in time.
fn unread() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    // Eight columns about received packets come first. The columns about sent packets begin with bytes, packets, errs, drop.
    line.and_then(|line| line.split_whitespace().nth(8 + 3)?.parse().ok()).unwrap_or(0)
}

impl<T: Tap> Carrier<T> {
    /// Forwards packets until the emulation is stopped.
    fn run(mut self, shared: &SharedEmulation) -> EmulationResult<T> {
        let timer = |error| EmulationError::System("timer", error);
        let mut waiting = EventWaiter::new().map_err(timer)?;
        waiting.add(&self.clients, CLIENTS).map_err(timer)?;
        waiting.add(&self.server, SERVER).map_err(timer)?;
        let mut buffer = vec![0; LONGEST];
        let mut ready = Vec::new();
        while !shared.stops() {
            let Self { passage, clients, server } = &mut self;
            passage.depart(|way, _, _, packet| {
                let device = if way == EmulationDirection::Up { &*server } else { &*clients };
                device.send(packet).map(drop)
            });
            passage.publish(shared);
            waiting.wait(passage.idle(), &mut ready).map_err(timer)?;
            for &number in &ready {
                self.read(
                    if number == CLIENTS { EmulationDirection::Up } else { EmulationDirection::Down },
                    &mut buffer,
                );
            }
        }
        Ok(self.passage.finish())
    }

    /// Reads up to `ROW` packets that one side has sent, and lets them enter the network.
    fn read(&mut self, way: EmulationDirection, buffer: &mut [u8]) {
        let Self { passage, clients, server } = self;
        let device = if way == EmulationDirection::Up { &*clients } else { &*server };
        for _ in 0..ROW {
            // Any error means that there is nothing to read.
            let Ok(length) = device.recv(buffer) else { return };
            let packet = &buffer[..length];
            let Some(Ends { from, to }) = Ends::read(packet) else {
                passage.counts.ignored += 1;
                continue;
            };
            let (client, at) = (if way == EmulationDirection::Up { from } else { to }, passage.now());
            // The address alone is the key: all ports of a host share its place and its random numbers.
            let known = passage.sources.find(client, at);
            let place = known.or_else(|| {
                let place = passage.admit(client, at)?;
                passage.settle(place);
                Some(place.number())
            });
            if let Some(place) = place {
                // A packet has at most LONGEST bytes, so its length fits.
                passage.enter(at, way, place, packet, length as u32);
            }
        }
    }
}
