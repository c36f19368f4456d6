//! Tests of the mechanism of the draft.

use super::*;

#[test]
fn cocoa_blends_strong_and_weak_samples_and_takes_none_after_a_third_retransmission() {
    let state = &mut COCOA.state();
    let samples = [(1_000, 0), (1_000, 0), (1_000, 0), (3_500, 1), (9_000, 2), (20_000, 3), (1_200, 0)];
    let rto = samples.map(|(rtt, retransmits)| {
        state.renewed = Stamp::default(); // no ageing between them
        exchange(&COCOA, state, rtt, retransmits)
    });
    assert_eq!(rto, [2_500_000, 2_500_000, 2_312_500, 3_046_875, 4_003_906, 4_003_906, 3_036_328]);
}

#[test]
fn the_backoff_factor_of_cocoa_is_3_below_1_s_1_5_above_3_s_and_2_on_the_boundaries() {
    let series = |us| timeouts(&COCOA, &mut with_rto(us), 4).1;
    assert_eq!(series(300_000), [300, 900, 2_700, 8_100, 24_300]);
    assert_eq!(series(900_000), [900, 2_700, 8_100, 24_300, 32_000]);
    assert_eq!(series(1_000_000), [1_000, 2_000, 4_000, 8_000, 16_000]);
    assert_eq!(series(3_000_000), [3_000, 6_000, 12_000, 24_000, 32_000]);
    assert_eq!(series(7_000_000), [7_000, 10_500, 15_750, 23_625, 32_000]);
}

#[test]
fn the_literal_cocoa_draft_chooses_the_backoff_factor_from_each_timeout() {
    let literal = Cocoa { vbf_on: VbfOn::Current, ..COCOA };
    assert_eq!(timeouts(&literal, &mut with_rto(2_000_000), 4).1, [2_000, 4_000, 6_000, 9_000, 13_500]);
    assert_eq!(timeouts(&literal, &mut with_rto(900_000), 4).1, [900, 2_700, 5_400, 8_100, 12_150]);
}

#[test]
fn cocoa_chooses_the_backoff_factor_before_dither_and_truncates_after_it() {
    let dithered = |us| COCOA.on_start(&mut with_rto(us), Cue { draw: Draw::from_bits(1 << 31), ..at(0) });
    assert_eq!(dithered(2_900_000).0.factor, COCOA.vbf_middle); // 3.6 s is armed
    assert_eq!(dithered(50_000_000).1, Duration::from_secs(60));
}

#[test]
fn the_literal_draft_dithers_each_retransmission_from_the_undithered_backoff() {
    let literal = cocoa(COCOA_ENTRY, "draft-literal");
    let half = Cue { draw: Draw::from_bits(1 << 31), ..at(0) };
    let state = &mut with_rto(2_000_000);
    let (mut exchange, first) = literal.on_start(state, half);
    assert_eq!(first, Duration::from_millis(2_500));
    assert_eq!(literal.on_retransmit(state, &mut exchange, half), Duration::from_secs(5));
    assert_eq!(literal.on_retransmit(state, &mut exchange, at(0)), Duration::from_secs(6));
}

#[test]
fn cocoa_truncates_backoff_at_32_s_but_not_a_longer_first_timeout() {
    let series = |us| timeouts(&COCOA, &mut with_rto(us), 2).1;
    assert_eq!(series(24_000_000), [24_000, 32_000, 32_000, 0, 0]);
    assert_eq!(series(45_000_000), [45_000, 45_000, 45_000, 0, 0]);
    let state = &mut COCOA.state();
    exchange(&COCOA, state, 30_000, 0);
    exchange(&COCOA, state, 60_000, 0);
    assert!(COCOA.gauges(state).rto > Duration::from_secs(50), "the estimate is not truncated");
}

#[test]
fn the_rto_of_cocoa_is_at_least_50_ms_and_the_literal_draft_has_no_lower_bound() {
    let after_many = |mechanism: Cocoa| {
        let state = &mut mechanism.state();
        for _ in 0..40 {
            state.renewed = Stamp::default(); // no ageing between them
            exchange(&mechanism, state, 2, 0);
        }
        state.renewed = Stamp::default();
        (timeouts(&mechanism, state, 1).1, mechanism.gauges(state).rto)
    };
    let (armed, rto) = after_many(COCOA);
    assert_eq!((armed, rto), ([50, 150, 0, 0, 0], Duration::from_millis(50)));
    assert!(after_many(cocoa(COCOA_ENTRY, "draft-03")).1 < Duration::from_millis(4));
}

#[test]
fn without_new_samples_an_rto_of_cocoa_ages_into_1_to_3_s_and_stays_there() {
    let cases = [(50, 10, 400), (300, 20, 1_200), (300, 100, 1_200), (32_000, 60, 32_000)];
    for (rto, idle, expected) in cases.into_iter().chain([(32_000, 200, 9_500), (10_000, 300, 3_000)]) {
        assert_eq!(aged(COCOA, rto, idle), expected, "{rto} ms after {idle} s");
    }
    assert_eq!(aged(COCOA, 10_000, 40), 10_000, "40 s are not more than 4 RTO");
    assert_eq!(aged(COCOA, 500, 8), 500, "8 s are not more than 16 RTO");
    assert_eq!(aged(Cocoa { ageing: Ageing::Off, ..COCOA }, 10_000, 300), 10_000);
}

#[test]
fn ageing_in_several_steps_gives_the_same_rto_as_in_one_step() {
    let state = &mut with_rto(32_000_000);
    for ms in [100_000, 150_000, 200_000] {
        let _ = COCOA.on_start(state, at(ms));
    }
    assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(9_500));
}

#[test]
fn before_the_first_sample_parallel_exchanges_wait_a_multiple_of_the_rto_without_changing_it() {
    let state = &mut COCOA.state();
    let (third, timeout) = COCOA.on_start(state, Cue { outstanding: 3, ..at(0) });
    assert_eq!(timeout, Duration::from_secs(6));
    COCOA.on_end(state, third, acked(1_000, 0), at(1_000));
    assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(2_500)); // half of 3 s, half of 2 s
    let (_, timeout) = COCOA.on_start(state, Cue { outstanding: 3, ..at(1_000) });
    assert_eq!(timeout, Duration::from_millis(2_500));
}

#[test]
fn a_reset_and_a_give_up_do_not_change_the_rto_of_cocoa() {
    let state = &mut with_rto(1_500_000);
    for outcome in [Outcome::Reset, Outcome::GivenUp, Outcome::Cancelled] {
        let (ended, _) = timeouts(&COCOA, state, 4);
        COCOA.on_end(state, ended, outcome, at(5_000));
        assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(1_500));
    }
}
