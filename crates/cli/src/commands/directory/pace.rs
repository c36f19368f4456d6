//! The rates at which clients may write files: a total, and one for each client.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coapace_net::Rejection;

use super::writer::WritingClient;
use crate::arguments::SharedBound;

/// The bytes of a file that count as one write.
const UNIT: usize = 256 << 10;

/// The time over which unused writes accumulate: an idle client may later make the writes of this time at once.
const BURST: Duration = Duration::from_secs(1);

/// The maximum number of clients in the table. When it is full, the clients that have their whole allowance again are
/// removed.
const MAX_CLIENTS: usize = 4_096;

/// Limits the rate of writes of each client and of all together (the generic cell rate algorithm). For each it keeps
/// the moment until which the admitted writes use up the rate.
#[derive(Debug)]
pub(super) struct WritePace {
    rate: SharedBound,
    paid: Mutex<Paid>,
}

#[derive(Debug)]
struct Paid {
    all: Instant,
    by: HashMap<WritingClient, Instant>,
}

impl WritePace {
    /// Returns limits for these rates in writes a second: one for each client, and one for all clients together.
    pub(super) fn new(rate: SharedBound) -> Self {
        Self { rate, paid: Paid { all: Instant::now(), by: HashMap::new() }.into() }
    }

    /// Counts a write of `bytes` bytes against the rates of its client and of all clients. A refused write is not
    /// counted. A write that is larger than the rate is not refused for its size, but delays the client's next writes.
    ///
    /// # Errors
    /// 4.29 if the client is too fast, and 5.03 if all clients together are, both with Max-Age.
    pub(super) fn take(&self, now: Instant, writer: &WritingClient, bytes: usize) -> Result<(), Rejection> {
        let paid = &mut *self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let known = paid.by.get(writer).copied().unwrap_or(now);
        // Above 10⁹ writes a second the time is 0 ns, which limits nothing.
        let per_write = |rate: u64| Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX).max(1);
        let (of_client, of_all) = (per_write(self.rate.client), per_write(self.rate.total));
        if let Some(seconds) = wait(now, known, of_client) {
            let why = format!("a client may write {} times a second", self.rate.client);
            return Err(Rejection::too_many_requests(seconds).because(why));
        }
        // Clients that have paid need no entry. Looking for them costs a walk, so it is done only when the table is full.
        if paid.by.len() >= MAX_CLIENTS {
            paid.by.retain(|_, paid| *paid > now);
        }
        let full = (paid.by.len() >= MAX_CLIENTS && !paid.by.contains_key(writer)).then_some(1);
        if let Some(seconds) = wait(now, paid.all, of_all).or(full) {
            return Err(Rejection::unavailable(seconds).because("too many files are written now"));
        }
        // The units are paid after the check, so that a large file is late once and not refused for ever.
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
        // Time that nobody used does not accumulate beyond BURST, so a debt starts now at the earliest.
        paid.all = paid.all.max(now) + of_all * units;
        paid.by.insert(writer.clone(), known.max(now) + of_client * units);
        Ok(())
    }
}

/// Returns the whole seconds until another write is allowed; `None` if it is allowed now.
fn wait(now: Instant, paid: Instant, per_write: Duration) -> Option<u32> {
    let (debt, allowed) = (paid.saturating_duration_since(now) + per_write, BURST.max(per_write));
    let wait = debt.checked_sub(allowed).filter(|wait| !wait.is_zero())?;
    // Max-Age has whole seconds. Rounded down, the client would come too early.
    Some(u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(number: u32) -> WritingClient {
        WritingClient::Network(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn each_client_has_a_rate_of_writes_and_all_clients_share_another() {
        let pace = WritePace::new(SharedBound { total: 20, client: 8 });
        let begin = Instant::now();
        let burst =
            |writer: &WritingClient, now| (0..50).filter(|_| pace.take(now, writer, 9).is_ok()).count();
        assert_eq!([1, 2, 3].map(|number| burst(&client(number), begin)), [8, 8, 4]);
        let later = begin + Duration::from_secs(1);
        assert_eq!([1, 2, 3].map(|number| burst(&client(number), later)), [8, 8, 4]);
    }

    #[test]
    fn a_large_file_uses_up_many_writes_of_a_clients_rate() {
        let pace = WritePace::new(SharedBound { total: 100, client: 2 });
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        assert!(pace.take(at(0), &client(1), 8 * UNIT).is_ok());
        assert!(pace.take(at(3), &client(1), 1).is_err());
        assert!(pace.take(at(4), &client(1), 1).is_ok());
        assert!(pace.take(at(4), &client(2), 1).is_ok());
    }

    #[test]
    fn a_flood_of_clients_takes_bounded_memory_and_is_forgotten_later() {
        let pace = WritePace::new(SharedBound { total: 1_000_000, client: 1 });
        let begin = Instant::now();
        let taken = (0..10_000).filter(|&number| pace.take(begin, &client(number), 1).is_ok()).count();
        assert_eq!(taken, MAX_CLIENTS);
        assert!(pace.take(begin + Duration::from_secs(2), &client(9_999), 1).is_ok());
    }

    #[test]
    fn a_client_of_a_full_table_has_its_rate() {
        let pace = WritePace::new(SharedBound { total: 1_000_000, client: 2 });
        let begin = Instant::now();
        let burst = |number| [1, 2].map(|_| pace.take(begin, &client(number), 1).is_ok());
        let bursts = (0..10_000).map(burst).filter(|&burst| burst == [true; 2]).count();
        assert_eq!(bursts, MAX_CLIENTS);
    }
}
