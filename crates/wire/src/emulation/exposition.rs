//! The counters of an emulation in the text format of Prometheus, version 0.0.4.

use std::fmt::{self, Display, Formatter, Write};

use super::counts::EmulationCounts;

/// The text of [`EmulationCounts::exposition`].
struct Exposition<'a>(&'a EmulationCounts);

impl EmulationCounts {
    /// Returns the counters in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        Exposition(self).to_string()
    }
}

impl Display for Exposition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let counts = self.0;
        family(
            f,
            "coap_emulator_packets_total",
            "counter",
            "Packets, by what happened to them in the network.",
        )?;
        for (event, count) in [
            ("entered", counts.entered),
            ("arrived", counts.arrived),
            ("dropped", counts.dropped),
            ("lost", counts.lost),
            ("marked", counts.marked),
        ] {
            writeln!(f, "coap_emulator_packets_total{{event=\"{event}\"}} {count}")?;
        }
        family(f, "coap_emulator_hop_bytes_total", "counter", "Bytes on the wire that each hop received.")?;
        for (hop, counters) in &counts.hops {
            writeln!(f, "coap_emulator_hop_bytes_total{{hop=\"{hop}\"}} {}", counters.bytes)?;
        }
        family(f, "coap_emulator_hop_dropped_total", "counter", "Packets that each hop had no room for.")?;
        for (hop, counters) in &counts.hops {
            writeln!(f, "coap_emulator_hop_dropped_total{{hop=\"{hop}\"}} {}", counters.dropped)?;
        }
        // A summary has its quantiles as labels, and beside them a sum and a count.
        family(
            f,
            "coap_emulator_lateness_seconds",
            "summary",
            "Time from the moment when a packet was due until it left.",
        )?;
        for share in [0.5, 0.9, 0.99, 0.999, 1.0] {
            let late = counts.lateness(share).as_secs_f64();
            writeln!(f, "coap_emulator_lateness_seconds{{quantile=\"{share}\"}} {late}")?;
        }
        writeln!(f, "coap_emulator_lateness_seconds_sum {}", counts.lateness.sum_us as f64 / 1e6)?;
        writeln!(f, "coap_emulator_lateness_seconds_count {}", counts.lateness.count)?;
        family(f, "coap_emulator_late_total", "counter", "Packets that left more than 5 ms late.")?;
        writeln!(f, "coap_emulator_late_total {}", counts.late)?;
        family(f, "coap_emulator_sources", "gauge", "Sources that have a place.")?;
        writeln!(f, "coap_emulator_sources {}", counts.sources)?;
        // One name with a label: an alert on its sum sees every kind of problem.
        family(f, "coap_emulator_problems_total", "counter", "Problems outside the network, by kind.")?;
        for (kind, count) in [
            ("source replaced", counts.replaced),
            ("source refused", counts.refused),
            ("no socket", counts.without_socket),
            ("longer than the mtu", counts.oversized),
            ("not carried", counts.ignored),
            ("lost before it was read", counts.overflowed),
            ("not sent", counts.unsent),
            ("nobody listens", counts.unreachable),
        ] {
            writeln!(f, "coap_emulator_problems_total{{kind=\"{kind}\"}} {count}")?;
        }
        Ok(())
    }
}

fn family(f: &mut impl Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")
}
