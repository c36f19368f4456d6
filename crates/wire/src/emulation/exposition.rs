//! The counters of an emulation in the text format of Prometheus, version 0.0.4.

use std::fmt::{self, Display, Formatter, Write};

use super::figures::Figures;

/// The text of [`Figures::exposition`].
struct Exposition<'a>(&'a Figures);

impl Figures {
    /// Returns the counters in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        Exposition(self).to_string()
    }
}

impl Display for Exposition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let figures = self.0;
        family(
            f,
            "coap_emulator_packets_total",
            "counter",
            "Packets, by what happened to them in the network.",
        )?;
        for (event, count) in [
            ("entered", figures.entered),
            ("arrived", figures.arrived),
            ("dropped", figures.dropped),
            ("lost", figures.lost),
            ("marked", figures.marked),
        ] {
            writeln!(f, "coap_emulator_packets_total{{event=\"{event}\"}} {count}")?;
        }
        family(f, "coap_emulator_hop_bytes_total", "counter", "Bytes on the wire that each hop received.")?;
        for (hop, counters) in &figures.hops {
            writeln!(f, "coap_emulator_hop_bytes_total{{hop=\"{hop}\"}} {}", counters.bytes)?;
        }
        family(f, "coap_emulator_hop_dropped_total", "counter", "Packets that each hop had no room for.")?;
        for (hop, counters) in &figures.hops {
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
            let late = figures.lateness(share).as_secs_f64();
            writeln!(f, "coap_emulator_lateness_seconds{{quantile=\"{share}\"}} {late}")?;
        }
        writeln!(f, "coap_emulator_lateness_seconds_sum {}", figures.lateness.sum_us as f64 / 1e6)?;
        writeln!(f, "coap_emulator_lateness_seconds_count {}", figures.lateness.count)?;
        family(f, "coap_emulator_late_total", "counter", "Packets that left more than 5 ms late.")?;
        writeln!(f, "coap_emulator_late_total {}", figures.late)?;
        family(f, "coap_emulator_sources", "gauge", "Sources that have a place.")?;
        writeln!(f, "coap_emulator_sources {}", figures.sources)?;
        // One name with a label: an alert on its sum sees every kind of problem.
        family(f, "coap_emulator_problems_total", "counter", "Problems outside the network, by kind.")?;
        for (kind, count) in [
            ("source replaced", figures.replaced),
            ("source refused", figures.refused),
            ("no socket", figures.without_socket),
            ("longer than the mtu", figures.oversized),
            ("not carried", figures.ignored),
            ("lost before it was read", figures.overflowed),
            ("not sent", figures.unsent),
            ("nobody listens", figures.unreachable),
        ] {
            writeln!(f, "coap_emulator_problems_total{{kind=\"{kind}\"}} {count}")?;
        }
        Ok(())
    }
}

fn family(f: &mut impl Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")
}
