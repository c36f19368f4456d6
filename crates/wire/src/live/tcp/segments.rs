//! The TCP counters of a network namespace.

use std::fs;

/// The counters of TCP in the network namespace of a thread (`/proc/net/snmp` and `/proc/net/netstat` of Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments {
    /// Segments sent again (`Tcp: RetransSegs`).
    pub(super) retransmitted: u64,
    /// Segments received whose sequence numbers had all come before (`TcpExt: DelayedACKLost`).
    pub(super) duplicate: u64,
}

impl Segments {
    /// Returns the counters of the calling thread's namespace; zeros where the system has none.
    pub(super) fn here() -> Self {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        Self {
            retransmitted: counter(&read("snmp"), "Tcp:", "RetransSegs"),
            duplicate: counter(&read("netstat"), "TcpExt:", "DelayedACKLost"),
        }
    }
}

/// Returns a counter of a file that has a line of names and a line of numbers for each group.
fn counter(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    // Kernels differ in the number and the order of counters, so the name decides.
    let place = names.split_whitespace().position(|it| it == name);
    place.and_then(|place| numbers.split_whitespace().nth(place)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_counter_is_found_below_its_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: A RetransSegs C\nTcp: -1 17 3\n";
        assert_eq!((counter(text, "Tcp:", "RetransSegs"), counter(text, "Tcp:", "B")), (17, 0));
        assert_eq!(counter("", "Tcp:", "A"), 0);
    }
}
