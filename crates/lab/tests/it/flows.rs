//! Tests of flows over hops: the messages that are offered and that arrive, and their delays.

use coapace_run::contender::Contender;
use coapace_run::measured::{FlowResult, RunResult};
use coapace_run::{Observe, run};
use coapace_scenario::Scenario;

/// Makes a scenario of ten clients and two servers, 50 ms apart, for five minutes. The first minute does not count.
fn scenario(flows: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    let text = format!(
        "title = 'f'\nsummary = 'f'\nsource = 'f'\n[clients]\ncount = 10\nuri_path = 'sink'\n[server]\ncount = 2\n\
         [workload]\nkind = 'flows'\nduration = '300 s'\nwarm_up = '60 s'\n{flows}\n\
         [[network.up]]\nname = 'wire'\ndelay = '50 ms'\n[[network.down]]\nname = 'wire'\ndelay = '50 ms'\n"
    );
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::parse("f", "f.toml", &text, &set).map_err(|error| error.to_string())
}

fn measured(mechanism: &str, flows: &str, set: &[(&str, &str)]) -> RunResult {
    let scenario = scenario(flows, set).unwrap();
    run(&scenario, &Contender::parse(mechanism).unwrap(), 1, Observe::Totals)
}

fn near(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected, "{value} is not {expected}");
}

/// Returns the share of messages that arrived.
fn pdr(flow: &FlowResult) -> f64 {
    flow.reached as f64 / flow.offered as f64
}

/// Returns the share of messages that arrived, messages that the application dropped left out.
fn pdr_sent(flow: &FlowResult) -> f64 {
    flow.reached as f64 / (flow.offered - flow.dropped) as f64
}

const CONSTANT: &str =
    "[[workload.flows]]\nname = 'c'\npattern = 'constant'\nrate = '6 kbit/s'\nmessage_bytes = 96";

#[test]
fn the_rate_of_a_flow_is_shared_by_all_clients_in_whole_messages() {
    let run = measured("default", CONSTANT, &[]);
    let [flow] = run.flows.as_slice() else { panic!("{run:?}") };
    // The clients offer 6000 bit/s · 240 s / 768 bit.
    near(flow.offered as f64, 1_875.0, 0.01);
    assert_eq!((flow.clients, flow.message_bytes, flow.dropped), (10, 96, 0));
    // A message has 4 bytes of header, 4 of token, 5 of path and 1 of payload marker.
    assert_eq!(flow.payload_bytes, 82);
    assert!(flow.offered - flow.reached <= 1 && flow.offered - flow.completed <= 2, "{flow:?}");
    near(flow.delays.mean_s().unwrap(), 0.05, 1e-3);
    near(run.throughput, 7.8125, 0.01);
    near(run.goodput_bps, 7.8125 * 82.0 * 8.0, 0.01);
    near(run.timeouts.initial_s().unwrap(), 2.5, 0.02);
    assert!((run.timeouts.rto_s().unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(run.exchanges.len(), 10);
    assert!(run.settling.is_none() && run.mesh.is_none());
}

#[test]
fn delays_of_flows_include_the_wait_for_retransmissions() {
    let lossy = [("network.up.wire.loss", "20 %")];
    let run = measured("default", CONSTANT, &lossy);
    let flow = &run.flows[0];
    assert!(pdr_sent(flow) > 0.98, "{flow:?}");
    // A fifth of the messages wait at least 2 s.
    near(flow.delays.quantile_s(0.5).unwrap(), 0.05, 0.03);
    assert!(flow.delays.quantile_s(0.85).unwrap() > 2.0);
    near(run.retransmissions as f64, (flow.offered - flow.dropped) as f64 * 0.25, 0.15);
    // A timeout of a retransmission does not count.
    near(run.timeouts.initial_s().unwrap(), 2.5, 0.05);
    assert!((2.5..=3.0).contains(&run.timeouts.max_s().unwrap()));
    let impatient = measured("default", CONSTANT, &[("clients.max_retransmit", "0"), lossy[0]]);
    near(pdr_sent(&impatient.flows[0]), 0.8, 0.05);
    let sent = impatient.flows[0].offered - impatient.flows[0].dropped;
    near(impatient.flows[0].gave_up as f64, sent as f64 * 0.2, 0.15);
}

#[test]
fn a_busy_client_drops_or_queues_new_messages_as_the_scenario_says() {
    let fast = "[[workload.flows]]\nname = 'c'\npattern = 'constant'\ninterval = '1 s'\npayload_bytes = 20";
    let slow = ("network.down.wire.delay", "1.55 s");
    let dropping = measured("default", fast, &[slow]);
    // An exchange takes 1.6 s, so every second message finds its client busy.
    near(dropping.flows[0].dropped as f64, 1_200.0, 0.01);
    near(pdr_sent(&dropping.flows[0]), 1.0, 0.01);
    near(pdr(&dropping.flows[0]), 0.5, 0.01);
    near(dropping.flows[0].delays.mean_s().unwrap(), 0.05, 0.01);
    let queueing = measured("default", fast, &[slow, ("workload.flows.c.when_busy", "queue")]);
    // One message departs every 1.6 s, and the others wait behind up to eight.
    near(queueing.flows[0].completed as f64, 10.0 * 240.0 / 1.6, 0.01);
    near(queueing.flows[0].delays.quantile_s(0.9).unwrap(), 8.0 * 1.6, 0.05);
    let several =
        measured("default", fast, &[slow, ("clients.nstart", "2"), ("workload.flows.c.outstanding", "2")]);
    assert_eq!(several.flows[0].dropped, 0);
}

#[test]
fn a_backlogged_client_sends_as_fast_as_responses_arrive() {
    let flows =
        "[[workload.flows]]\nname = 'b'\npattern = 'backlogged'\nto = 1\nstart = '30 s'\nend = '180 s'";
    let run = measured("default", flows, &[]);
    // There are 10 clients with 10 exchanges a second each, for half of the measured time.
    near(run.flows[0].completed as f64, 12_000.0, 0.01);
    near(run.fairness().unwrap(), 1.0, 1e-3);
}

#[test]
fn after_an_event_each_client_reports_once_and_delays_settle() {
    let flows = format!(
        "{CONSTANT}\n[[workload.flows]]\nname = 'e'\npattern = 'event'\nstart = '180 s'\npayload_bytes = 400"
    );
    // The link is so narrow that the messages of the event wait for each other.
    let narrow = [("network.up.wire.rate", "12 kbit/s"), ("workload.flows.c.rate", "2 kbit/s")];
    let run = measured("default", &flows, &narrow);
    let event = &run.flows[1];
    assert_eq!((event.offered, event.reached, event.clients), (10, 10, 10));
    let settling = run.settling.unwrap();
    assert!((settling.event_s - 180.0).abs() < 1e-9);
    assert!((1.0..40.0).contains(&settling.time_s.unwrap()), "{settling:?}");
}

#[test]
fn delays_can_be_measured_for_a_time_after_bursts_only() {
    let flows = |key: &str| {
        format!(
            "{CONSTANT}\n[[workload.flows]]\nname = 'b'\npattern = 'bursts'\ninterval = '60 s'\nstart = '60 s'\n{key}"
        )
    };
    let whole = measured("default", &flows(""), &[]);
    let part = measured("default", &flows("delays_within = '15 s'"), &[]);
    assert_eq!(whole.trace_hash, part.trace_hash, "the run is the same");
    for (flow, restricted) in whole.flows.iter().zip(&part.flows) {
        assert_eq!(
            (flow.reached, flow.offered),
            (restricted.reached, restricted.offered),
            "only delays are restricted"
        );
        assert_eq!(flow.delays.count, flow.reached);
    }
    near(part.flows[0].delays.count as f64, part.flows[0].reached as f64 / 4.0, 0.05);
    assert_eq!(part.flows[1].delays.count, part.flows[1].reached, "all of a burst");

    // The messages of a burst wait for each other on a narrow link, so some arrive after the second.
    let narrow = [("network.up.wire.rate", "12 kbit/s"), ("workload.flows.c.rate", "2 kbit/s")];
    let [offered, arrived] = ["offer", "arrival"].map(|moment| {
        let keys = format!("payload_bytes = 400\ndelays_within = '1 s'\ndelays_by = '{moment}'");
        measured("default", &flows(&keys), &narrow).flows.remove(1)
    });
    assert_eq!(offered.delays.count, offered.reached);
    assert!((1..offered.delays.count).contains(&arrived.delays.count), "{}", arrived.delays.count);
    assert!(arrived.delays.max_us < 1_000_000 && offered.delays.max_us > 1_000_000);
}

#[test]
fn keys_for_meshes_or_bursts_are_refused_in_other_scenarios() {
    for (key, value, expected) in [
        ("from", "left", "`workload.flows.c.from` must be \"all\" without a mesh"),
        ("to", "nearest", "`workload.flows.c.to` must be a number without a mesh"),
        (
            "delays_within",
            "10 s",
            "`workload.flows.c.delays_within` has no effect in the pattern \"constant\"",
        ),
        ("delays_by", "arrival", "`workload.flows.c.delays_by` means nothing without `delays_within`"),
    ] {
        let error = scenario(CONSTANT, &[(&format!("workload.flows.c.{key}"), value)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_flow_is_sent_by_its_share_of_clients_to_its_sinks() {
    let flows = "[[workload.flows]]\nname = 'a'\npattern = 'poisson'\ninterval = '2 s'\nshare = '50 %'\nresponse_bytes = 40\n\
                 [[workload.flows]]\nname = 'b'\npattern = 'bursts'\ninterval = '30 s'\nspread = '5 s'\nto = 1\nmethod = 'get'\n\
                 [[workload.flows]]\nname = 'o'\npattern = 'on-off'\ninterval = '1 s'\non = '5 s'\noff = '15 s'";
    let run = measured("cocoa", flows, &[]);
    let [a, b, o] = run.flows.as_slice() else { panic!("{run:?}") };
    assert_eq!((a.clients, b.clients), (5, 10));
    near(a.offered as f64, 5.0 * 120.0, 0.12);
    assert_eq!((b.offered, b.reached), (80, 80));
    near(o.offered as f64, 10.0 * 240.0 / 4.0, 0.35);
    let all: u64 = run.flows.iter().map(|flow| flow.completed).sum();
    assert_eq!(all, run.completed());
}

#[test]
fn a_sink_observes_and_gets_notifications_with_and_without_confirmation() {
    let observed = "[[workload.flows]]\nname = 'n'\npattern = 'constant'\ninterval = '5 s'\nobserve = true\nstart = '30 s'\n\
                    payload_bytes = 10";
    let run = measured("default", observed, &[]);
    let flow = &run.flows[0];
    assert_eq!((flow.offered, flow.dropped, flow.reached, flow.completed), (480, 0, 480, 480));
    assert_eq!(flow.message_bytes, 4 + 4 + 4 + 1 + 10);
    near(flow.delays.mean_s().unwrap(), 0.05, 1e-3);

    let lossy = measured("default", observed, &[("network.up.wire.loss", "20 %")]);
    assert!(lossy.retransmissions > 80 && pdr_sent(&lossy.flows[0]) > 0.97, "{:?}", lossy.flows);

    let unconfirmed = [
        ("workload.flows.n.confirmable", "false"),
        ("network.up.wire.loss", "20 %"),
        ("clients.probing_rate", "0"),
        ("clients.confirmable_every", "0"),
    ];
    let run = measured("default", observed, &unconfirmed);
    near(pdr(&run.flows[0]), 0.8, 0.1);
    assert_eq!((run.retransmissions, run.flows[0].completed), (0, 0));
}

#[test]
fn notifications_without_congestion_control_do_not_wait_for_earlier_ones() {
    let flows = "[[workload.flows]]\nname = 'c'\npattern = 'backlogged'\nobserve = true\nstart = '30 s'\n\
                 [[workload.flows]]\nname = 'n'\npattern = 'constant'\ninterval = '500 ms'\nobserve = true\nstart = '40 s'\n\
                 confirmable = false\ncontrolled = false";
    let lossy = ("network.up.wire.loss", "30 %");
    let run = measured("default", flows, &[lossy]);
    let [c, n] = run.flows.as_slice() else { panic!("{run:?}") };
    assert_eq!((n.offered, n.dropped, n.completed, n.gave_up), (4_800, 0, 0, 0), "{n:?}");
    near(pdr(n), 0.7, 0.03);
    near(n.delays.mean_s().unwrap(), 0.05, 1e-3);
    assert!(c.completed > 500, "{c:?}");

    let run = measured("default", flows, &[lossy, ("workload.flows.n.controlled", "true")]);
    assert!(run.flows[1].dropped > 2_000, "those wait for NSTART: {:?}", run.flows[1]);

    let error = scenario(flows, &[("workload.flows.n.confirmable", "true")]).unwrap_err();
    assert!(error.contains("`workload.flows.n.controlled` must be true"), "{error}");
}

#[test]
fn an_observer_that_was_given_up_registers_again() {
    let observed = "[[workload.flows]]\nname = 'n'\npattern = 'backlogged'\nobserve = true\nstart = '30 s'";
    let harsh = [("network.up.wire.loss", "50 %"), ("clients.max_retransmit", "2")];
    let run = measured("default", observed, &harsh);
    let flow = &run.flows[0];
    // One in eight is given up, which takes a minute. No client stops for good.
    assert!(flow.gave_up > 10 && flow.completed > 5 * flow.gave_up, "{flow:?}");
    assert!(run.exchanges.iter().all(|count| *count > 5), "{:?}", run.exchanges);
    // Without renewal, clients stop for good.
    let left = measured("default", observed, &[harsh[0], harsh[1], ("workload.flows.n.renew", "false")]);
    assert!(left.flows[0].gave_up <= 10, "each of the clients once at most: {left:?}");
    assert!(2 * left.completed() < run.completed(), "{:?} {:?}", left.exchanges, run.exchanges);
}

#[test]
fn a_repeated_registration_ends_the_pending_notification_and_not_the_flow() {
    let observed = "[[workload.flows]]\nname = 'n'\npattern = 'backlogged'\nobserve = true\nstart = '30 s'";
    // Acknowledgements are lost: the sink has the notification, hears no other, and registers again before it is given up.
    let deaf = [("network.down.wire.loss", "70 %"), ("workload.duration", "1500 s")];
    let run = measured("default", observed, &deaf);
    assert!(run.exchanges.iter().all(|count| *count > 30), "{:?}", run.exchanges);
}

#[test]
fn flows_without_confirmation_send_requests_with_the_no_response_option() {
    let set = [
        ("workload.flows.c.confirmable", "false"),
        ("clients.probing_rate", "0"),
        ("clients.confirmable_every", "0"),
        ("network.up.wire.loss", "10 %"),
        // Without a response, messages are 3 s apart (RFC 7641 §4.5.1).
        ("workload.flows.c.rate", "2 kbit/s"),
    ];
    let run = measured("default", CONSTANT, &set);
    let FlowResult { completed, gave_up, .. } = run.flows[0];
    near(pdr(&run.flows[0]), 0.9, 0.03);
    assert_eq!((completed, gave_up, run.retransmissions, run.responses_sent), (0, 0, 0, 0));
    let set = [&set[..], &[("workload.flows.c.rate", "60 kbit/s")]].concat();
    let run = measured("default", CONSTANT, &set);
    assert!(run.flows[0].gave_up > run.flows[0].reached, "the endpoint has no room for all that waits");
}

#[test]
fn the_mechanisms_of_a_mix_share_the_clients_of_each_flow() {
    let run = measured("cocoa+default", CONSTANT, &[("network.up.wire.loss", "10 %")]);
    let [cocoa, default] = run.populations.as_slice() else { panic!("{run:?}") };
    assert_eq!((cocoa.clients, default.clients), (5, 5));
    assert_eq!(cocoa.exchanges + default.exchanges, run.completed());
    assert!(cocoa.retransmissions > 0 && default.retransmissions > 0);
}

#[test]
fn equal_seeds_give_equal_runs_of_flows() {
    let twice = [1, 2].map(|_| measured("fasor-token", CONSTANT, &[("network.up.wire.loss", "10 %")]));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn contradictory_flows_are_refused_in_one_line() {
    let flow = "[[workload.flows]]\nname = 'c'\npattern = 'constant'\n";
    for (text, expected) in [
        (
            flow.to_owned(),
            "f.toml:13: `workload.flows.c.rate` or `interval` is missing: the pattern \"constant\" needs one",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\ninterval = '1 s'"),
            "`workload.flows.c.interval` cannot be combined with `rate`",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\nmessage_bytes = 13"),
            "`workload.flows.c.message_bytes` must be 15 or more",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\nto = 2"),
            "`workload.flows.c.to` must be below the number of sinks, 2",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\nshare = '0 %'"),
            "`workload.flows.c.share` leaves no client that sends the flow",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\nrenew = false"),
            "`workload.flows.c.renew` must be true without `observe`",
        ),
        (
            format!("{flow}rate = '1000 Gbit/s'"),
            "`workload.flows.c.rate` makes 506756756756 messages; a flow may make at most 1000000000",
        ),
        (
            format!("{flow}rate = '1 kbit/s'\nstart = '300 s'"),
            "`workload.flows.c.start` of \"5 min\" must be before the end of `workload.duration`",
        ),
        (format!("{flow}rate = '1 kbit/s'\npayload_bytes = 2000"), "`network.mtu` or a buffer holds 1280"),
        ("[[workload.flows]]\nname = 'c'\npattern = 'constnat'".to_owned(), "did you mean `constant`?"),
        (String::new(), "`workload.flows` is missing: the kind \"flows\" needs one or more"),
    ] {
        let error = scenario(&text, &[]).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = Contender::parse("tcp").unwrap().fits(&scenario(CONSTANT, &[]).unwrap()).unwrap_err();
    assert!(error.contains("`tcp` can run neither flows nor meshes"), "{error}");
}
