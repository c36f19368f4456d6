//! Radios that sleep, beside the values of their sources.

use coapace_sim::mesh::{
    ContikiMacConfig, DutyCycle, LowpanConfig, MacConfig, Mesh, MeshConfig, RadioConfig, RoutingConfig,
};
use coapace_sim::{Layout, Luck, NodeId, PacketCounters, Position, Site, Span, Time, World};

use crate::hosts::Host;

const MS: u64 = 1_000_000;

/// Returns a world of so many nodes at these places, with the sink as the first. The others are to be added.
fn world(mac: MacConfig, nodes: u32, place: impl Fn(u32) -> Position) -> World<Host, PacketCounters, Mesh> {
    let layout = Layout { places: (0..nodes).map(place).collect(), root: 0, sinks: vec![0] };
    let config = MeshConfig {
        radio: RadioConfig::UNIT_DISK,
        mac,
        lowpan: LowpanConfig::CONTIKI_3,
        routing: RoutingConfig::Shortest,
    };
    let mesh = Mesh::new(Luck::new(1), &layout, Vec::new(), config).unwrap();
    let mut world = World::new(mesh, PacketCounters::new());
    world.add(Site(0), Host::sink());
    world
}

/// Runs two nodes 10 m apart. The second sends packets of 20 bytes at these moments in ms. Returns the delays in ms and the share of the time
/// that the radio of each was on.
fn pair(mac: MacConfig, packets: &[u64], seconds: u64) -> (Vec<f64>, [f64; 2]) {
    let mut world = world(mac, 2, |n| Position { x: 10.0 * f64::from(n), y: 0.0 });
    world.add(Site(0), Host::sender(NodeId(0), packets.iter().map(|ms| (ms * MS, 20))));
    world.wake_all();
    let end = Time::from_secs(seconds);
    world.run(end);
    let heard = world.nodes()[0].received();
    let delay = |(time, _, mark, _): &(Time, NodeId, coapace_sim::Mark, Vec<u8>)| {
        (time.as_nanos() - packets[mark.exchange as usize] * MS) as f64 / MS as f64
    };
    let delays = heard.iter().map(delay).collect();
    let on = |node| {
        let times = world.medium().radio_times(NodeId(node), end);
        let on = times.transmit + times.receive + times.listen;
        on.as_secs_f64() / (on + times.sleep).as_secs_f64()
    };
    (delays, [on(0), on(1)])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns a thousand moments, 2.003 s apart, so that they fall on every phase of an interval.
fn moments() -> Vec<u64> {
    (0..1_000).map(|n| 5_000 + n * 2_003).collect()
}

fn contikimac(phase_lock: bool) -> MacConfig {
    let config = ContikiMacConfig { phase_lock, ..ContikiMacConfig::DUNKELS_2011 };
    MacConfig { duty_cycle: DutyCycle::ContikiMac(config), ..MacConfig::CONTIKIMAC }
}

#[test]
fn an_idle_contikimac_radio_is_on_for_two_channel_assessments_every_125_ms() {
    // Two assessments of 0.32 ms in 125 ms are 0.512 %. Dunkels 2011 measured about 0.6 % at 8 Hz.
    let (_, on) = pair(contikimac(true), &[], 1_000);
    assert!(on.iter().all(|on| (on - 0.005_12).abs() < 0.000_05), "{on:?}");
}

#[test]
fn a_sender_of_contikimac_waits_half_an_interval_on_average() {
    let (delays, on) = pair(contikimac(false), &moments(), 2_100);
    assert_eq!(delays.len(), 1_000);
    // Up to a whole interval until the receiver wakes up, a frame that it missed the beginning of, and the one that it receives.
    let longest = delays.iter().fold(0.0_f64, |a, b| a.max(*b));
    assert!((62.5..72.5).contains(&mean(&delays)) && longest < 140.0, "{} {longest}", mean(&delays));
    // The sender strobes for 62.5 ms in 2003 ms.
    assert!((0.030..0.045).contains(&on[1]), "{on:?}");
}

#[test]
fn phase_lock_saves_strobes_but_not_the_waiting_time() {
    let (delays, on) = pair(contikimac(true), &moments(), 2_100);
    assert_eq!(delays.len(), 1_000);
    assert!((62.5..75.0).contains(&mean(&delays)), "{}", mean(&delays));
    assert!((0.007..0.014).contains(&on[1]), "{on:?}");
}

#[test]
fn a_frame_of_tsch_waits_half_a_slotframe_on_average() {
    let (delays, on) = pair(MacConfig::TSCH, &moments(), 2_100);
    assert_eq!(delays.len(), 1_000);
    // One cell in 101 slots of 10 ms: 505 ms, and some milliseconds within the slot.
    assert!((495.0..520.0).contains(&mean(&delays)), "{}", mean(&delays));
    assert!(delays.iter().all(|delay| *delay < 1_016.0));
    // An idle cell is 2.2 ms of 1010 ms: 0.218 %. One cell in a hundred has a frame here for every second one.
    let (_, idle) = pair(MacConfig::TSCH, &[], 1_000);
    assert!(idle.iter().all(|on| (on - 0.002_18).abs() < 0.000_02), "{idle:?}");
    assert!(on.iter().all(|on| (0.002_18..0.004_5).contains(on)), "{on:?}");
}

/// Runs a sink with eight neighbours, all in range of each other, each of which has a packet at the same moment, every minute. Returns
/// the share of packets that arrive.
fn crowd(mac: MacConfig) -> f64 {
    let mut world = world(mac, 9, |n| Position { x: f64::from(n % 3), y: f64::from(n / 3) });
    for _ in 1..9 {
        world.add(Site(0), Host::sender(NodeId(0), (1..=50).map(|n| (n * 60_000 * MS, 20))));
    }
    world.wake_all();
    world.run(Time::ZERO + Span::from_secs(3_100));
    assert_eq!(world.medium().in_flight(), 0);
    world.nodes()[0].received().len() as f64 / (8.0 * 50.0)
}

#[test]
fn many_simultaneous_senders_delay_slotted_aloha_more_than_carrier_sensing_strobes() {
    let (awake, strobed) = (crowd(MacConfig::CONTIKI_2), crowd(contikimac(true)));
    let tsch = crowd(MacConfig::TSCH);
    let patient = crowd(MacConfig { max_frame_retries: 7, ..MacConfig::TSCH });
    assert!(awake > 0.95 && strobed > 0.8, "{awake} {strobed}");
    assert!(tsch < strobed && patient > tsch + 0.1 && patient > 0.8, "{strobed} {tsch} {patient}");
}
