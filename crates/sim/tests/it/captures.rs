//! Captures, read by tshark and block by block.

use std::process::Command;

use crate::hosts::thesis_in;
use coapace_sim::{Accounting, Loss, PacketCounters, Pcapng, Time};

/// Returns a capture of a run with losses and drops, and the counters of that run.
fn capture(accounting: Accounting) -> (Vec<u8>, PacketCounters) {
    let mut world = thesis_in(accounting, 1, 400, Loss::Random(0.1), 20, |network| {
        (Pcapng::new(Vec::new(), network.accounting(), 0..1, network.hop_names()), PacketCounters::new())
    });
    world.run(Time::from_secs(60));
    let (_, (pcapng, counters)) = world.into_parts();
    (pcapng.finish().unwrap(), counters)
}

#[test]
fn the_blocks_of_a_pcapng_file_are_contiguous_to_its_end() {
    for accounting in [Accounting::Ipv4, Accounting::Ipv6] {
        let (bytes, counters) = capture(accounting);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut interfaces, mut packets) = (0, 0, [0; 3]);
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            match word(at) {
                0x0a0d_0d0a => assert_eq!(at, 0),
                1 => interfaces += 1,
                6 => packets[word(at + 8) as usize] += 1,
                kind => panic!("unknown block {kind}"),
            }
            at += length;
        }
        assert_eq!(interfaces, 3);
        assert!(counters.dropped > 0 && counters.lost > 0);
        assert_eq!(packets, [counters.sent, counters.delivered, counters.dropped + counters.lost]);
    }
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_decodes_coap_in_captures_without_errors() {
    for (accounting, name) in [(Accounting::Ipv4, "ipv4"), (Accounting::Ipv6, "ipv6")] {
        let (bytes, counters) = capture(accounting);
        let path = std::env::temp_dir().join(format!("coapace-{}-{name}.pcapng", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let count = |filter: &str| {
            let checks = ["udp.check_checksum:TRUE", "ip.check_checksum:TRUE"];
            let output = Command::new("tshark")
                .args(["-o", checks[0], "-o", checks[1], "-Y", filter, "-r"])
                .arg(&path)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).lines().count() as u64
        };
        let all = counters.sent + counters.delivered + counters.dropped + counters.lost;
        assert_eq!(count("coap && frame.interface_name == \"sent\""), counters.sent);
        assert_eq!(count("coap && frame.interface_name == \"delivered\""), counters.delivered);
        assert_eq!(count("frame.comment contains \"lost on\""), counters.lost);
        assert_eq!(count("frame.comment contains \"dropped\""), counters.dropped);
        assert_eq!(count("udp.checksum.status == \"Good\""), all);
        assert_eq!(
            count("_ws.malformed || udp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\""),
            0
        );
        assert_eq!(count("coap.opt.uri_path == \"abcde\" && udp.dstport == 5683"), count("coap.code == 1"));
        std::fs::remove_file(path).unwrap();
    }
}
