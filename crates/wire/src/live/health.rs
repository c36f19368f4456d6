//! The health of live runs: how late the timers of hosts and the packets of the network were.

use crate::Lateness;
use crate::emulation::EmulationCounts;

/// The health of live runs: how late the timers of hosts fired, and how late packets left the network. The machine was
/// overloaded if more than one timer in a hundred fired more than 10 ms late, or more than one packet in a hundred left
/// more than 5 ms late.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The lateness of the timers of hosts.
    pub hosts: Lateness,
    /// The number of packets that left the network.
    pub departures: u64,
    /// The number of packets that left the network more than 5 ms late.
    pub late_departures: u64,
    /// A line for each problem of the network, and one for the time that another stack's clients took between
    /// requests.
    pub complaints: Vec<String>,
}

impl Health {
    /// Returns the health of a run, from the lateness of its hosts and the counters of its network.
    pub(super) fn of(hosts: Lateness, mut network: EmulationCounts) -> Self {
        let (departures, late_departures) = (network.lateness.count, network.late);
        // Late departures are judged over all runs.
        network.late = 0;
        Self { hosts, departures, late_departures, complaints: network.complaints() }
    }

    /// Adds the health of another run. Each of its complaints begins with `name`.
    pub fn add(&mut self, name: &str, other: &Self) {
        self.hosts.merge(other.hosts);
        self.departures += other.departures;
        self.late_departures += other.late_departures;
        self.complaints.extend(other.complaints.iter().map(|line| format!("{name}: {line}")));
    }

    /// Returns lines about the health that a reader of the results has to know; none without runs.
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.departures > 0 {
            let late = self.late_departures as f64 / self.departures as f64 * 100.0;
            // Over TCP the kernel has the timers.
            let hosts = if self.hosts.calls > 0 { format!("{}; ", self.hosts) } else { String::new() };
            let packets = self.departures;
            lines.push(format!("live: {hosts}{packets} packets, {late:.2} % left more than 5 ms late"));
        }
        if self.hosts.is_overloaded() || self.late_departures * 100 > self.departures {
            lines.push(
                "overload: these live results do not describe the scenario; use fewer --live-jobs or a faster machine"
                    .to_owned(),
            );
        }
        lines.extend(self.complaints.iter().cloned());
        lines
    }
}
