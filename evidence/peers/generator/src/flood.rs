//! A flood of malformed datagrams, and one closed-loop client in its midst.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::Result;
use crate::arguments::Arguments;
use crate::client::{Client, Tally};
use crate::cpu::Cpu;
use crate::message::malformed;

/// The number of sockets, each with its own address, that send the flood.
const SOURCES: u32 = 64;
/// Datagrams sent between two checks of the client, so that a flood behind its rate does not starve the client in this
/// process.
const BURST: u64 = 16;

/// Runs the client alone for `--seconds`, and then with `--datagrams` at `--rate` a second.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (server, exchange) = (arguments.server()?, arguments.exchange()?);
    let (seconds, timeout) = (arguments.seconds("seconds")?, arguments.seconds("timeout")?);
    let cpu = Cpu::of(arguments.get("pid")?)?;
    let mut client = Client::new(arguments.address(0)?, server, &exchange)?;
    let mut flood = Flood::open(arguments)?;

    client.begin(Instant::now());
    let quiet = closed_loop(&mut client, timeout, |begun| Ok(begun.elapsed() < seconds))?;
    let used = cpu.now()?;
    let flooded = closed_loop(&mut client, timeout, |begun| flood.advance(begun))?;
    let used = cpu.now()?.saturating_sub(used);

    println!(
        "{} quiet_seconds={:.6} {} seconds={:.6} sent={} cpu={:.9}",
        quiet.0.print("quiet_"),
        quiet.1.as_secs_f64(),
        flooded.0.print(""),
        flooded.1.as_secs_f64(),
        flood.sent,
        used.as_secs_f64(),
    );
    Ok(())
}

/// Runs the client together with another activity, until that returns that it is over.
fn closed_loop(
    client: &mut Client,
    timeout: Duration,
    mut beside: impl FnMut(Instant) -> Result<bool>,
) -> Result<(Tally, Duration)> {
    let (mut tally, begun) = (Tally::default(), Instant::now());
    while beside(begun)? {
        let now = Instant::now();
        if client.receive(&mut tally) || client.expire(now, timeout, &mut tally) {
            if client.is_spent() {
                client.renew()?;
            }
            client.begin(now);
        }
    }
    Ok((tally, begun.elapsed()))
}

/// The datagrams to send, and how many are sent already.
struct Flood {
    server: SocketAddr,
    sockets: Vec<UdpSocket>,
    datagrams: Vec<Vec<u8>>,
    /// Datagrams a second.
    rate: u64,
    count: u64,
    sent: u64,
}

impl Flood {
    fn open(arguments: &Arguments) -> Result<Self> {
        let sockets = (1..=SOURCES).map(|index| {
            let socket = UdpSocket::bind((arguments.address(index)?, 0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        Ok(Self {
            server: arguments.server()?,
            sockets: sockets.collect::<Result<_>>()?,
            datagrams: malformed(),
            rate: arguments.get("rate")?,
            count: arguments.get("datagrams")?,
            sent: 0,
        })
    }

    /// Sends the datagrams that are due since `begun`. Returns whether there are more to send.
    fn advance(&mut self, begun: Instant) -> Result<bool> {
        let due = begun.elapsed().as_micros() as u64 * self.rate / 1_000_000;
        for _ in self.sent..due.min(self.sent + BURST).min(self.count) {
            let kinds = self.datagrams.len() as u64;
            let datagram = &mut self.datagrams[(self.sent % kinds) as usize];
            // Each has its own Message ID, so a server's memory of one does not answer another.
            if let Some(bytes) = datagram.get_mut(2..4) {
                bytes.copy_from_slice(&(self.sent as u16).to_be_bytes());
            }
            let socket = &self.sockets[(self.sent / kinds % u64::from(SOURCES)) as usize];
            socket.send_to(datagram, self.server)?;
            self.sent += 1;
        }
        Ok(self.sent < self.count)
    }
}
