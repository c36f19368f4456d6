//! N closed-loop clients with a socket each, in one thread.

use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::Result;
use crate::arguments::Arguments;
use crate::client::{Client, Tally};
use crate::cpu::Cpu;

/// Clients that begin within one millisecond, so that the start does not overflow the server's socket.
const STARTS_A_MILLISECOND: usize = 16;
/// The interval of the search for requests without a response.
const SWEEP: Duration = Duration::from_millis(20);

/// Runs the clients for `--settle`, and then for `--seconds`, which are measured.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (settle, seconds, timeout) =
        (arguments.seconds("settle")?, arguments.seconds("seconds")?, arguments.seconds("timeout")?);
    let mut clients = Clients::open(arguments)?;
    let server = Cpu::of(arguments.get("pid")?)?;

    let start = Instant::now();
    clients.run(start, start + settle, timeout)?;
    let (before, begun, used, own) =
        (clients.tally.clone(), Instant::now(), server.now()?, Cpu::own().now()?);
    clients.run(start, begun + seconds, timeout)?;
    let (used, own) = (server.now()?.saturating_sub(used), Cpu::own().now()?.saturating_sub(own));

    println!(
        "{} seconds={:.6} cpu={:.9} own_cpu={:.9}",
        clients.tally.since(&before).print(""),
        begun.elapsed().as_secs_f64(),
        used.as_secs_f64(),
        own.as_secs_f64(),
    );
    Ok(())
}

/// The clients, and the epoll instance that knows their sockets by index.
struct Clients {
    epoll: Epoll,
    each: Vec<Client>,
    begun: usize,
    tally: Tally,
    swept: Instant,
}

impl Clients {
    fn open(arguments: &Arguments) -> Result<Self> {
        let (address, server, exchange) = (arguments.address(0)?, arguments.server()?, arguments.exchange()?);
        let count: usize = arguments.get("clients")?;
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut clients = Vec::with_capacity(count);
        for index in 0..count {
            let client = Client::new(address, server, &exchange)?;
            epoll.add(client.socket(), event(index))?;
            clients.push(client);
        }
        Ok(Self { epoll, each: clients, begun: 0, tally: Tally::default(), swept: Instant::now() })
    }

    /// Runs until `end`; `start` is the time at which the first client began.
    fn run(&mut self, start: Instant, end: Instant, timeout: Duration) -> Result<()> {
        let mut events = [EpollEvent::empty(); 256];
        loop {
            let mut now = Instant::now();
            if now >= end {
                return Ok(());
            }
            let due = (now - start).as_millis() as usize * STARTS_A_MILLISECOND + STARTS_A_MILLISECOND;
            while self.begun < due.min(self.each.len()) {
                self.each[self.begun].begin(now);
                self.begun += 1;
            }
            let wait = if self.begun < self.each.len() { 1_u8 } else { 5 };
            let ready = match self.epoll.wait(&mut events, EpollTimeout::from(wait)) {
                Err(nix::Error::EINTR) => 0,
                result => result?,
            };
            now = Instant::now();
            for event in &events[..ready] {
                let index = event.data() as usize;
                if self.each[index].receive(&mut self.tally) {
                    self.next(index, now)?;
                }
            }
            if now - self.swept > SWEEP {
                self.swept = now;
                for index in 0..self.begun {
                    if self.each[index].expire(now, timeout, &mut self.tally) {
                        self.next(index, now)?;
                    }
                }
            }
        }
    }

    /// Sends the client's next request, from another port if this one has used all its Message IDs.
    fn next(&mut self, index: usize, now: Instant) -> Result<()> {
        let client = &mut self.each[index];
        if client.is_spent() {
            self.epoll.delete(client.socket())?;
            client.renew()?;
            self.epoll.add(client.socket(), event(index))?;
        }
        client.begin(now);
        Ok(())
    }
}

fn event(index: usize) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, index as u64)
}
