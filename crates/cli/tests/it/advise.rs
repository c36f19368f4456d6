//! `coapace advise`.

use crate::common::{Scratch, coapace, command, finish};

/// Captures a run of 5 clients with losses, which keep their state.
fn captured(scratch: &Scratch) -> String {
    captured_of(scratch, "continuous")
}

/// Captures one of a kind of workload.
fn captured_of(scratch: &Scratch, kind: &str) -> String {
    let file = scratch.file(&format!("{kind}.pcapng"));
    let kind = format!("workload.kind={kind}");
    let set =
        ["--set", "clients=5", "--set", "errors=high", "--set", "workload.exchanges=20", "--set", &kind];
    let run = ["run", "nb-iot", "-m", "default", "--seeds", "1", "--quiet", "--pcap", &file];
    coapace(&[&run[..], &set].concat()).success();
    file
}

#[test]
fn advise_turns_a_capture_into_findings_replays_and_a_scenario_for_rank() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let scenario = scratch.file("mine.toml");
    let set = ["--scenario", &scenario, "--set", "workload.kind=random"];
    let printed =
        coapace(&[&["advise", &capture, "-m", "cocoa", "-m", "default"][..], &set].concat()).success();
    for part in ["100 of 5 clients", "beside the clients", "nearest mechanism: default", "cocoa", "Assumed:"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let text = std::fs::read_to_string(&scenario).expect("it is written");
    assert!(text.contains("kind = \"random\"") && text.contains("# Assumed:"), "{text}");
    let rank = ["rank", &scenario, "-m", "default", "-m", "cocoa", "--seeds", "2", "--quiet"];
    assert!(coapace(&rank).success().contains("cocoa"));
}

/// Returns a pcap file of this link type with packets at these microseconds.
fn pcap(link: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link]
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    for (us, bytes) in packets {
        let [s, us] = [us / 1_000_000, us % 1_000_000].map(|time| u32::try_from(time).expect("32 bits"));
        let length = u32::try_from(bytes.len()).expect("32 bits");
        file.extend([s, us, length, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(bytes);
    }
    file
}

/// Returns an IPv4 packet with a confirmable GET of this Message ID to this port.
fn request(id: u8, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, id, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40];
    packet.extend(port.to_be_bytes());
    packet.extend([0, 12, 0, 0, 0x40, 1, 0, id]);
    packet
}

#[test]
fn duplicates_in_a_capture_and_steps_of_its_clock_are_reported() {
    let scratch = Scratch::new();
    let file = scratch.file("twice.pcap");
    let packets = (0..60u8).flat_map(|id| {
        let us = 1_700_000_000_000_000 + u64::from(id) * 3_000_000 - if id < 30 { 0 } else { 95_000_000 };
        [(us, request(id, 5683)), (us + 45, request(id, 5683))]
    });
    std::fs::write(&file, pcap(101, &packets.collect::<Vec<_>>())).expect("it is written");
    let printed = coapace(&["advise", &file, "-m", "default"]).success();
    assert!(printed.contains("60 seen a second time"), "{printed}");
    assert!(
        printed.contains("left out of all times: a step of the clock back by 92.0 s after 87.0 s\n"),
        "{printed}"
    );
    assert!(printed.contains(" 0 retransmissions"), "{printed}");
}

#[test]
fn an_unsupported_link_type_is_named_with_a_remedy() {
    let scratch = Scratch::new();
    let file = scratch.file("user.pcap");
    std::fs::write(&file, pcap(147, &[(1, request(1, 5683)), (2, request(2, 5683))])).expect("it is written");
    let printed = coapace(&["advise", &file]);
    let printed = printed.failure(1);
    assert!(printed.contains("2 of link type 147, which is not read; "), "{printed}");
    assert!(printed.contains("tshark finds no CoAP") || printed.contains("install tshark"), "{printed}");
    assert!(!printed.contains("--port"), "{printed}");
    let ppp =
        (1..6u8).map(|id| (u64::from(id) * 1_000_000, [vec![0xff, 3, 0, 0x21], request(id, 5683)].concat()));
    std::fs::write(&file, pcap(9, &ppp.collect::<Vec<_>>())).expect("it is written");
    // Without tshark on the path.
    let mut alone = command();
    let printed = finish(alone.env("PATH", "").args(["advise", &file]), "");
    assert!(
        printed.failure(1).contains("5 of link type 9, which is not read; install tshark"),
        "{printed:?}"
    );
    if std::process::Command::new("tshark").arg("--version").output().is_ok() {
        let printed = coapace(&["advise", &file, "-m", "default"]).success();
        assert!(
            printed.contains("tshark read 5 datagrams") && printed.contains("5 of 1 clients"),
            "{printed}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn advise_prints_its_findings_even_if_it_cannot_write_the_scenario() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let printed = coapace(&["advise", &capture, "-q", "-m", "default", "--scenario", "/dev/full"]);
    assert!(printed.failure(1).starts_with("cannot write /dev/full: "), "{printed:?}");
    assert!(printed.stdout.contains("100 of 5 clients"), "{printed:?}");
    let same = scratch.file("./continuous.pcapng");
    let printed = coapace(&["advise", &capture, "--scenario", &same]);
    assert_eq!(printed.failure(2), "CAPTURE and --scenario need different files");
}

#[test]
fn advise_reports_restarts_of_clients_and_models_them_as_batches() {
    let scratch = Scratch::new();
    for (kind, printed) in [("random", "5 clients restarted"), ("continuous", "no client restarted")] {
        let capture = captured_of(&scratch, kind);
        let scenario = scratch.file(&format!("{kind}.toml"));
        let out = coapace(&["advise", &capture, "-m", "default", "--scenario", &scenario]).success();
        assert!(out.contains(printed) && out.contains("of 5 clients"), "{out}");
        let text = std::fs::read_to_string(&scenario).expect("it is written");
        assert!(text.contains(&format!("kind = \"{kind}\"")), "{text}");
    }
}

#[test]
fn advise_prints_one_json_object_or_one_csv_row_for_each_mechanism() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let json = coapace(&["advise", &capture, "--format", "json"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("an object");
    assert_eq!(json["findings"]["exchanges"], 100, "{json}");
    assert!(json["replays"].as_array().is_some_and(|all| all.len() > 5), "{json}");
    let csv = coapace(&["advise", &capture, "--format", "csv", "-m", "cocoa"]).success();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("mechanism,exchanges,") && lines[1].starts_with("cocoa,100,"), "{csv}");
}

#[test]
fn advise_reports_an_unusable_capture_in_one_line() {
    let scratch = Scratch::new();
    let text = scratch.file("text.pcap");
    std::fs::write(&text, "no capture at all, but longer than a header").expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("neither pcap nor pcapng"));
    std::fs::write(&text, "").expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("empty"));
    let missing = scratch.file("missing.pcap");
    assert!(coapace(&["advise", &missing]).failure(1).contains("cannot read"));
    std::fs::write(&text, pcap(101, &[])).expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("capture while CoAP clients send requests"));
    std::fs::write(&text, pcap(101, &[(1, request(9, 53))])).expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("--port"));
    let capture = captured(&scratch);
    let scenario = scratch.file("mine.toml");
    let wrong = ["advise", &capture, "--scenario", &scenario, "--set", "network.up.rate=3"];
    assert!(coapace(&wrong).failure(2).contains("network.up.rate"), "a setting");
    let server = ["advise", &capture, "--scenario", &scenario, "--side", "server"];
    assert!(coapace(&server).failure(1).contains("--side client"));
    assert!(coapace(&["advise", &capture, "-m", "nobody"]).failure(2).contains("nobody"));
}
