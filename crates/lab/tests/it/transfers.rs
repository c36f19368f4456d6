//! Tests of transfers: each body arrives as it was sent, in both directions, over UDP and TCP, on links and in a mesh.

use coapace_lab::results::Metric;
use coapace_run::contender::Contender;
use coapace_run::measured::{RunResult, Series, TransferResult};
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

fn measured(scenario: &str, mechanism: &str, set: &[(&str, &str)]) -> RunResult {
    let settings: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::load(scenario, &settings).unwrap();
    let contender = Contender::parse(mechanism).unwrap();
    contender.fits(&scenario).unwrap();
    run(&scenario, &contender, 1, Observe::Totals)
}

/// Transfers a little more than 20 KiB over LTE-M, three times, and returns the result.
fn small(mechanism: &str, set: &[(&str, &str)]) -> TransferResult {
    let few = [("bytes", "20_500"), ("workload.transfers.firmware.count", "3")];
    let run = measured("fota-lte-m", mechanism, &[&few, set].concat());
    let [own] = run.transfers.as_slice() else { panic!("{run:?}") };
    own.clone()
}

#[test]
fn downloaded_and_uploaded_bodies_arrive_intact_with_and_without_losses() {
    for direction in ["down", "up"] {
        for loss in ["0 %", "10 %"] {
            for (block, bulk) in [("64", "none"), ("1024", "none"), ("64", "tide"), ("1024", "newreno")] {
                let set = [("direction", direction), ("loss", loss), ("block", block), ("bulk", bulk)];
                // The client compares the body that it fetched, and the server the body that it received.
                let own = small("cocoa", &set);
                assert_eq!((own.completed_s.len(), own.failed), (3, 0), "{set:?}");
                assert_eq!(own.arrived_bytes, 3 * 20_500, "{set:?}");
                assert!(own.blocks_twice <= own.blocks_again, "{set:?}: {own:?}");
                assert!(own.blocks_again > 0 || loss == "0 %", "{set:?}: {own:?}");
                if bulk == "none" {
                    // The client has no block twice unless it asked too early. The server has those whose answers were lost.
                    let is_twice = loss != "0 %" && direction == "up";
                    let counts = (own.blocks_again > 0, own.blocks_twice > 0);
                    assert_eq!(counts, (loss != "0 %", is_twice), "{set:?}: {own:?}");
                }
            }
        }
    }
}

#[test]
fn a_transfer_of_one_block_at_a_time_takes_a_round_trip_for_each() {
    // 21 blocks; each takes the path and its own time on the link.
    let own = small("default", &[("bulk", "none")]);
    let (_, first) = own.completed_s[0];
    let block = 0.1 + 1_090.0 * 8.0 / 300e3 + 50.0 * 8.0 / 375e3;
    assert!((first / (20.0 * block + 0.11) - 1.0).abs() < 0.05, "{first}");
    assert_eq!(own.capacity_bps, Some(300_000));
    let share = own.link_share().unwrap();
    assert!((share - 20_500.0 * 8.0 / 300e3 / first).abs() < 0.01, "{share}");
}

#[test]
fn five_hundred_bodies_arrive_intact_despite_losses_and_reordering() {
    for bulk in ["tide", "newreno", "rfc9177"] {
        let held_back = "{ probability = '10 %', delay = '80 ms' }";
        let set = [
            ("bulk", bulk),
            ("bytes", "9_000"),
            ("block", "256"),
            ("loss", "10 %"),
            ("network.down.radio.reordering", held_back),
            ("network.up.radio.reordering", held_back),
            ("workload.transfers.firmware.count", "500"),
        ];
        for how in [&[("direction", "down")][..], &[("direction", "up"), ("protocol", "q-block")]] {
            let own = &measured("fota-lte-m", "default", &[&set, how].concat()).transfers[0];
            assert_eq!((own.completed_s.len(), own.failed), (500, 0), "{bulk} {how:?}");
            assert_eq!(own.arrived_bytes, 500 * 9_000, "{bulk} {how:?}");
            // Only the timeouts of `rfc9177` find losses, and they are long.
            let is_waiting = bulk == "rfc9177";
            assert!(
                own.blocks_twice > 0 || is_waiting,
                "{bulk} {how:?}: a block held back is taken for lost"
            );
        }
    }
}

#[test]
fn uploads_with_q_block_send_several_blocks_at_once() {
    for bulk in ["tide", "newreno"] {
        let of = |protocol, loss| {
            let set = [("protocol", protocol), ("loss", loss), ("bulk", bulk)];
            small("default", &[&set, &[("direction", "up"), ("bytes", "200_000")][..]].concat())
        };
        let one = of("block", "0 %");
        let share = |own: &TransferResult| own.link_share().unwrap();
        for (loss, least) in [("0 %", 0.65), ("10 %", if bulk == "tide" { 0.45 } else { 0.1 })] {
            let own = of("q-block", loss);
            assert_eq!((own.completed_s.len(), own.failed), (3, 0), "{bulk} {loss}: {own:?}");
            assert_eq!(own.arrived_bytes, 600_000, "{bulk} {loss}");
            assert!(share(&own) > least, "{bulk} {loss}: {own:?}");
            assert!(loss != "0 %" || share(&own) > 2.5 * share(&one), "{bulk}: {own:?} {one:?}");
        }
    }
}

#[test]
fn transfers_of_several_blocks_at_once_fill_the_link_even_with_losses() {
    let of = |set: &[(&str, &str)]| small("default", &[&[("bytes", "200_000")], set].concat());
    for bulk in ["tide", "newreno"] {
        let (clear, one) = (of(&[("bulk", bulk)]), of(&[("bulk", "none")]));
        let share = |own: &TransferResult| own.link_share().unwrap();
        assert_eq!((clear.completed_s.len(), clear.failed), (3, 0), "{bulk}: {clear:?}");
        assert!(share(&clear) > 0.7 && share(&clear) > 2.5 * share(&one), "{bulk}: {clear:?} {one:?}");
    }
    let lossy = of(&[("loss", "10 %")]);
    assert_eq!((lossy.completed_s.len(), lossy.failed), (3, 0), "{lossy:?}");
    assert!(lossy.link_share().unwrap() > 0.55, "{lossy:?}");
    assert!(lossy.blocks_twice * 4 < lossy.blocks_again, "{lossy:?}");
}

#[test]
fn untuned_tide_fills_every_link_and_no_transfer_fails() {
    // The blocks, the bytes of a packet with a block, and the rate of the link. A satellite takes longer at first: the window has to grow
    // over seconds.
    for (name, blocks, packet, rate, factors) in [
        ("fota-nb-iot", 256.0, 1_074.0, 30e3, [1.3, 1.6, 2.0]),
        ("fota-lte-m", 512.0, 1_074.0, 300e3, [1.3, 1.6, 2.2]),
        ("fota-satellite", 1_024.0, 1_074.0, 1e6, [1.8, 2.1, 3.0]),
    ] {
        let alone_s = blocks * packet * 8.0 / rate;
        for (loss, factor) in ["0 %", "10 %", "20 %"].into_iter().zip(factors) {
            let run = measured(name, "default", &[("loss", loss)]);
            let own = &run.transfers[0];
            assert_eq!((own.completed_s.len(), own.failed), (1, 0), "{name} {loss}: {own:?}");
            let (_, took_s) = own.completed_s[0];
            assert!((1.0..factor).contains(&(took_s / alone_s)), "{name} {loss}: {took_s} of {alone_s}");
        }
    }
}

/// Runs this list of endless transfers for 100 s on the link of `scenario`, with ten clients beside them that ask.
fn beside(scenario: &str, transfers: &str, clients: &str) -> RunResult {
    let set = [
        ("clients", clients),
        ("workload.exchanges", "none"),
        ("workload.duration", "100 s"),
        ("workload.warm_up", "20 s"),
        ("workload.transfers", transfers),
    ];
    measured(scenario, "default", &set)
}

/// Returns a transfer that goes on until the run ends.
fn endless(name: &str, how: &str) -> String {
    format!("{{ name = '{name}', clients = 1, bytes = 16_000_000, count = 'none', {how} }}")
}

#[test]
fn exchanges_beside_tide_are_no_slower_and_no_fewer_than_beside_tcp() {
    for scenario in ["fota-nb-iot", "fota-lte-m", "fota-satellite"] {
        let [tide, tcp] = ["bulk = 'tide'", "protocol = 'tcp'"]
            .map(|how| beside(scenario, &format!("[{}]", endless("image", how)), "11"));
        let wait = |run: &RunResult| Metric::ExchangeTimeP90.of_run(run).unwrap();
        assert!(wait(&tide) <= wait(&tcp), "{scenario}: {} {}", wait(&tide), wait(&tcp));
        let rates = (tide.throughput, tcp.throughput);
        assert!(rates.0 >= rates.1 && tide.given_up <= tcp.given_up, "{scenario}: {rates:?}");
    }
}

#[test]
fn two_tide_transfers_share_equally_and_one_beside_tcp_gets_a_share() {
    let pair = |one: &str, other: &str| {
        let transfers = format!("[{}, {}]", endless("one", one), endless("other", other));
        let run = beside("fota-lte-m", &transfers, "2");
        let [one, other] = run.transfers.as_slice() else { panic!("{run:?}") };
        one.link_share().unwrap() / other.link_share().unwrap()
    };
    let late = "start = '5 s'";
    let alike = pair("bulk = 'tide'", &format!("bulk = 'tide', {late}"));
    assert!((0.75..1.33).contains(&alike), "{alike}");
    let beside_tcp = pair("bulk = 'tide'", &format!("protocol = 'tcp', {late}"));
    assert!((0.5..1.5).contains(&beside_tcp), "{beside_tcp}");
}

/// Returns the clients, the completed transfers and the goodput of each population.
fn populations(run: &RunResult) -> Vec<(u32, u64, f64)> {
    let own = run.populations.iter().map(|own| (own.clients, own.transfers.unwrap_or_default()));
    own.map(|(clients, own)| (clients, own.completed, own.goodput_bps)).collect()
}

#[test]
fn the_mechanisms_of_a_mix_share_the_transfers_and_each_has_counts() {
    let set = [("clients", "5"), ("transfers", "3"), ("bytes", "20_500"), ("loss", "5 %")];
    let set = [&set[..], &[("workload.transfers.firmware.count", "2"), ("workload.exchanges", "4")]].concat();
    let run = measured("fota-lte-m", "tide+newreno", &set);
    let [(of_tide, done, goodput), (of_newreno, others_done, others_goodput)] = populations(&run)[..] else {
        panic!("{run:?}")
    };
    assert_eq!(
        (of_tide, done, of_newreno, others_done),
        (2, 4, 1, 2),
        "the first and the third, and the second"
    );
    assert_eq!(run.exchanges.iter().sum::<u32>(), 8, "two clients ask");
    assert_eq!(run.populations.iter().map(|own| own.exchanges).sum::<u64>(), 8);
    assert!(run.populations.iter().all(|own| own.throughput == 0.0), "{run:?}");
    assert!(Metric::ExchangeTime.of_run(&run).is_some());
    let again: u64 = run.populations.iter().map(|own| own.transfers.unwrap().blocks_again).sum();
    assert_eq!(again, run.transfers[0].blocks_again);
    // A client takes part from the beginning to the end of its two transfers.
    let took_s = |place: usize| run.transfers[0].completed_s[place].0;
    let rate = |end_s: f64| 2.0 * 20_500.0 * 8.0 / end_s;
    let all = goodput + others_goodput;
    assert!(all > 3.0 * rate(took_s(5)) && all < 3.0 * rate(took_s(1)), "{all} {run:?}");

    // The rates of two clients with the same mechanism and of two with others differ, so each has the mechanism of its part.
    let rates =
        |label| populations(&measured("fota-lte-m", label, &set)).iter().map(|own| own.2).sum::<f64>();
    assert!(rates("tide+rfc9177") < rates("tide+tide"), "{} {}", rates("tide+rfc9177"), rates("tide+tide"));
}

#[test]
fn a_mix_does_not_change_transfers_over_tcp_and_single_exchange_mechanisms_keep_the_bulk_mechanism() {
    let transfers = "[{ name = 'a', clients = 1, bytes = 50_000 }, { name = 'b', clients = 1, bytes = 50_000, protocol = 'tcp' }, \
                     { name = 'c', clients = 1, bytes = 50_000, bulk = 'newreno' }]";
    let of = |label| {
        populations(&measured("fota-lte-m", label, &[("clients", "3"), ("workload.transfers", transfers)]))
    };
    let counts = |label| of(label).iter().map(|own| (own.0, own.1)).collect::<Vec<_>>();
    assert_eq!(counts("tide+rfc9177"), [(1, 1), (1, 1)]);
    assert_eq!(of("tide+default"), of("tide+newreno"), "the transfer names newreno");
    assert_eq!(counts("cocoa+default"), [(1, 1), (1, 1)], "all clients transfer");
}

#[test]
fn a_failed_transfer_does_not_count_as_goodput() {
    let set = [("clients", "2"), ("transfers", "2"), ("loss", "50 %"), ("bulk", "none")];
    let run = measured("fota-lte-m", "cocoa+default", &set);
    assert!(run.transfers[0].failed == 2 && run.transfers[0].arrived_bytes > 0, "{run:?}");
    assert_eq!(populations(&run), [(1, 0, 0.0), (1, 0, 0.0)]);
}

#[test]
fn beside_a_transfer_in_a_mesh_nine_tenths_of_sensor_readings_arrive() {
    let of = |bytes| {
        let set = [
            ("bytes", bytes),
            ("interval", "5 s"),
            ("workload.exchanges", "none"),
            ("workload.duration", "150 s"),
        ];
        measured("fota-mesh", "default", &set)
    };
    let (alone, beside) = (of("64 B"), of("64 KiB"));
    assert!(beside.transfers[0].arrived_bytes > 30_000, "{:?}", beside.transfers[0]);
    assert!(beside.completed() * 10 > alone.completed() * 9, "{} {}", beside.completed(), alone.completed());
    assert_eq!(beside.given_up, 0);
}

#[test]
fn a_transfer_over_tcp_fills_the_link_and_completes_despite_losses() {
    for direction in ["down", "up"] {
        let of = |loss| small("tcp", &[("direction", direction), ("loss", loss), ("bytes", "100_000")]);
        let (clear, lossy) = (of("0 %"), of("5 %"));
        for own in [&clear, &lossy] {
            assert_eq!((own.completed_s.len(), own.failed), (3, 0), "{direction}: {own:?}");
            assert!((300_000..301_000).contains(&own.arrived_bytes), "{direction}: {}", own.arrived_bytes);
        }
        assert!(clear.link_share().unwrap() > 0.6, "{direction}: {clear:?}");
        assert!(lossy.link_share().unwrap() < clear.link_share().unwrap(), "{direction}");
    }
}

#[test]
fn transfers_share_a_link_with_each_other_and_with_single_exchanges() {
    let transfers = "[{ name = 'udp', clients = 1, bytes = 50_000, count = 'none', pause = '1 s' }, \
                     { name = 'stream', clients = 2, bytes = 50_000, protocol = 'tcp', direction = 'up', count = 'none' }]";
    let run = measured(
        "fota-lte-m",
        "default",
        &[
            ("clients", "5"),
            ("workload.duration", "60 s"),
            ("workload.warm_up", "20 s"),
            ("workload.exchanges", "none"),
            ("workload.transfers", transfers),
        ],
    );
    let [udp, stream] = run.transfers.as_slice() else { panic!("{run:?}") };
    assert_eq!((run.exchanges.len(), udp.clients, stream.clients), (2, 1, 2), "the last clients transfer");
    assert!(run.exchanges.iter().all(|&exchanges| exchanges > 50), "{:?}", run.exchanges);
    for own in [udp, stream] {
        assert!(own.completed_s.len() >= 2 && own.failed == 0, "{own:?}");
        assert!(own.completed_s.iter().all(|(end, _)| *end > 20.0), "{own:?}");
        assert!((39.0..=40.0).contains(&own.active_s), "{own:?}");
    }
    assert_eq!((udp.capacity_bps, stream.capacity_bps), (Some(300_000), Some(375_000)));
    for metric in [Metric::Throughput, Metric::TransferTime, Metric::ExchangeTimeP90] {
        assert!(metric.of_run(&run).is_some(), "{metric}");
    }
    assert!(Metric::ExchangeTimeP90.of_run(&run) > Metric::ExchangeTime.of_run(&run));
}

#[test]
fn a_run_of_transfers_only_has_no_metrics_of_exchanges() {
    let run = measured("fota-lte-m", "default", &[("bytes", "5000")]);
    for metric in [Metric::Throughput, Metric::MedianFct, Metric::Retransmissions, Metric::Goodput] {
        assert_eq!(metric.of_run(&run), None, "{metric}");
    }
    assert_eq!(Metric::TransfersCompleted.of_run(&run), Some(1.0));
    assert_eq!(Metric::TransfersFailed.of_run(&run), Some(0.0));
}

#[test]
fn an_unanswered_transfer_fails_and_begins_again() {
    for (bulk, failed) in [("none", 4..=8), ("tide", 2..=8)] {
        let set = [
            ("bulk", bulk),
            ("loss", "100 %"),
            ("workload.duration", "600 s"),
            ("workload.transfers.firmware.count", "none"),
        ];
        let own = &measured("fota-lte-m", "default", &set).transfers[0];
        assert!(failed.contains(&own.failed) && own.completed_s.is_empty(), "{bulk}: {own:?}");
    }
}

#[test]
fn a_transfer_over_a_mesh_completes_beside_sensor_readings() {
    for direction in ["down", "up"] {
        let set = [("bytes", "4 KiB"), ("workload.exchanges", "4"), ("direction", direction)];
        let run = measured("fota-mesh", "default", &set);
        let own = &run.transfers[0];
        assert_eq!((own.clients, own.completed_s.len(), own.failed), (1, 1, 0), "{direction}: {own:?}");
        assert_eq!((own.arrived_bytes, own.capacity_bps), (4_096, None), "{direction}");
        assert_eq!((run.exchanges.len(), run.completed()), (13, 52), "{direction}");
    }
}

#[test]
fn a_firmware_update_reaches_every_device_while_other_traffic_continues() {
    for protocol in ["block", "tcp"] {
        let run = measured(
            "fleet-fota",
            "default",
            &[("bytes", "8 KiB"), ("spread", "60 s"), ("protocol", protocol), ("workload.duration", "200 s")],
        );
        let own = &run.transfers[0];
        assert_eq!((own.clients, own.completed_s.len(), own.failed), (100, 100, 0), "{protocol}: {own:?}");
        assert!(
            own.completed_s.is_sorted_by_key(|(end, _)| *end) && own.active_s < 120.0,
            "{protocol}: {own:?}"
        );
        assert!(run.exchanges.iter().all(|&exchanges| exchanges > 15), "{protocol}: {:?}", run.exchanges);
    }
}

#[test]
fn reports_record_bytes_and_window_of_a_transfer_over_time() {
    let set = [("bytes".to_owned(), "100_000".to_owned())];
    let scenario = Scenario::load("fota-lte-m", &set).unwrap();
    let run = run(&scenario, &Contender::parse("default").unwrap(), 1, Observe::Series);
    let [(arrived, window)] = [(&run.arrived[0], &run.windows[0])];
    assert_eq!((arrived.name.as_str(), arrived.points.last().unwrap().1), ("firmware", 100_000.0));
    assert!(arrived.points.is_sorted_by_key(|(_, bytes)| *bytes));
    assert!(window.points.iter().any(|(_, blocks)| *blocks > 4.0), "{window:?}");
}

#[test]
fn reports_record_departures_and_retransmissions_of_blocks() {
    for (direction, protocol) in [("down", "block"), ("up", "block"), ("up", "q-block")] {
        let set = [("direction", direction), ("protocol", protocol), ("bytes", "100_000"), ("loss", "10%")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("fota-lte-m", &set).unwrap();
        let run = run(&scenario, &Contender::parse("default").unwrap(), 1, Observe::Series);
        let numbers = |series: &Series| series.points.iter().map(|(_, block)| *block).collect::<Vec<_>>();
        let mut first = numbers(&run.departed[0]);
        first.sort_by(f64::total_cmp);
        first.dedup();
        // Points of one moment are merged, and their largest is kept.
        assert!(
            (80..=98).contains(&first.len()) && first.last() == Some(&97.0),
            "{direction} {protocol}: {first:?}"
        );
        let again = numbers(&run.departed_again[0]);
        let counted = run.transfers[0].blocks_again as usize;
        assert!(
            (counted / 2..=counted).contains(&again.len()) && counted > 5,
            "{direction} {protocol}: {again:?}"
        );
    }
}
