//! Tests of the relatives and implementations.

use super::*;

#[test]
fn fullbackoff_cocoa_backs_off_from_32_s_to_48_s() {
    for entry in [FULLBACKOFF1_COCOA, FULLBACKOFF2_COCOA] {
        assert_eq!(
            timeouts(&cocoa(entry, ""), &mut with_rto(32_000_000), 2).1[..3],
            [32_000, 48_000, 60_000]
        );
    }
}

#[test]
fn cocoa_plus_ages_one_step_at_a_transmission_and_again_30_s_later() {
    let plus = Cocoa { ageing: Ageing::CocoaPlus, ..COCOA };
    assert_eq!(aged(plus, 10_000, 30), 10_000, "30 s are not more than 30 s");
    assert_eq!(aged(plus, 10_000, 300), 6_000);
    let state = &mut with_rto(10_000_000);
    for ms in [30_001, 60_001, 60_002] {
        let _ = plus.on_start(state, at(ms));
    }
    assert_eq!(plus.gauges(state).rto, Duration::from_secs(4));
}

#[test]
fn cocoa_plus_keeps_the_ageing_of_small_rtos() {
    let plus = cocoa(COCOA_PLUS, "");
    assert_eq!([aged(plus, 300, 4), aged(plus, 300, 20), aged(plus, 1_500, 300)], [300, 1_000, 1_500]);
}

#[test]
fn the_preset_of_the_2015_paper_changes_only_gains_and_min_rto() {
    for entry in [COCOA0, COCOA_PLUS] {
        let (code, printed) = (cocoa(entry, ""), cocoa(entry, "paper-2015"));
        assert_eq!((printed.srtt_gain, printed.rttvar_gain), (Ratio::new(1, 4), Ratio::new(1, 8)));
        let Cocoa { srtt_gain, rttvar_gain, min_rto, .. } = code;
        assert_eq!(Cocoa { min_rto, srtt_gain, rttvar_gain, ..printed }, code, "{}", entry.name);
    }
    assert_eq!(cocoa(COCOA_ENTRY, "paper-2015"), cocoa(COCOA_PLUS, "paper-2015"));
}

#[test]
fn er_cocoa_weights_weak_samples_most_and_drops_the_strong_estimate_after_three_retransmissions() {
    let samples = [(1_000, 0), (1_000, 0), (1_000, 0), (3_500, 1), (9_000, 2), (20_000, 3), (1_200, 0)];
    let rto = after(cocoa(COCOA_ENTRY, "er-cocoa"), samples);
    assert_eq!(rto, [2_500_000, 2_500_000, 2_312_500, 4_515_625, 6_285_156, 10_670_898, 7_135_449]);
}

#[test]
fn er_cocoa_counts_a_give_up_as_a_weak_sample_and_ages_the_rto_at_every_new_exchange() {
    let er_cocoa = cocoa(COCOA_ENTRY, "er-cocoa");
    let state = &mut er_cocoa.state();
    let (given_up, _) = timeouts(&er_cocoa, state, 4);
    er_cocoa.on_end(state, given_up, Outcome::GivenUp, at(30_000)); // 2 + 4 + 8 + 16 s: it does not wait for the last
    assert_eq!(er_cocoa.gauges(state).rto, Duration::from_micros(34_250_000)); // 3/4 · 45 s and 1/4 · 2 s
    for rto in [18_125_000, 10_062_500, 6_031_250, 4_015_625, 3_007_813, 2_503_906, 2_503_906] {
        let _ = er_cocoa.on_start(state, at(200_000));
        assert_eq!(er_cocoa.gauges(state).rto.as_micros(), rto);
    }
}

#[test]
fn californium_swaps_the_gains_of_srtt_and_rttvar_and_counts_milliseconds() {
    let samples = [(1_000, 0), (1_000, 0), (1_000, 0), (3_500, 1), (9_000, 2), (20_000, 3), (1_200, 0)];
    // Worked by hand in whole milliseconds; without rounding 2500, 2625, 2578.1, 3246.1, 4208.0, 4208.0, 3348.9.
    let rto = after(cocoa(COCOA_ENTRY, "californium-3"), samples).map(|us| us / 1_000);
    assert_eq!(rto, [2_500, 2_626, 2_579, 3_247, 4_209, 4_209, 3_350]);
}

#[test]
fn californium_2_ages_an_idle_rto_past_the_bounds_and_californium_3_one_exchange_late() {
    let two = cocoa(COCOA_ENTRY, "californium-2");
    assert_eq!(aged(two, 100, 20), 32_000, "twelve doublings, 409.6 s");
    assert_eq!(aged(two, 10_000, 300), 2_062, "seven steps of 40 s");
    let three = cocoa(COCOA_ENTRY, "californium-3");
    let state = &mut with_rto(10_000_000);
    assert_eq!(three.on_start(state, at(300_000)).1, Duration::from_secs(10));
    assert_eq!(three.on_start(state, at(300_000)).1, Duration::from_secs(3));
}

#[test]
fn the_first_cocoa_weights_strong_and_weak_samples_equally_and_ages_to_one_second() {
    let cocoa0 = cocoa(COCOA0, "");
    assert_eq!(after(cocoa0, [(1_000, 0), (10_000, 4)]), [2_500_000, 16_250_000]);
    assert_eq!(aged(cocoa0, 300, 20), 1_000);
    assert_eq!(aged(cocoa0, 10_000, 300), 10_000);
    assert_eq!(timeouts(&cocoa0, &mut with_rto(7_000_000), 4).1, [7_000, 14_000, 28_000, 56_000, 60_000]);
}

#[test]
fn without_a_weak_estimator_a_retransmitted_exchange_is_not_a_sample() {
    assert_eq!(after(cocoa(COCOA_STRONG, ""), [(1_000, 0), (9_000, 1)]), [2_500_000, 2_500_000]);
    assert_eq!(cocoa(COCOA_STRONG, "californium-3").max_weak_n, 0);
}

#[test]
fn fullbackoff_cocoa_keeps_the_answered_timeout_or_the_longer_of_it_and_the_rto() {
    // 2, 4, 8 s are armed, then 12 s from 8 s on. A quarter of each weak estimate, 9.75 s and 36.5 s, counts.
    let samples = |n| [(6_500, 2), (80_000, n)];
    assert_eq!(after(cocoa(COCOA_ENTRY, ""), samples(1)), [3_937_500, 12_078_125]);
    assert_eq!(after(cocoa(FULLBACKOFF1_COCOA, ""), samples(1)), [8_000_000, 12_000_000]);
    assert_eq!(after(cocoa(FULLBACKOFF2_COCOA, ""), samples(1)), [8_000_000, 15_125_000]);
    let unsampled = after(cocoa(FULLBACKOFF2_COCOA, ""), samples(3));
    assert_eq!(unsampled[1], 27_000_000, "8, 12, 18, 27 s");
}

#[test]
fn gsrtc_raises_the_strong_weight_with_each_consecutive_strong_sample() {
    let gsrtc = cocoa(GSRTC, "");
    let weights = [1, 2, 3, 6, 7, 127].map(|streak| gsrtc.strong_weight(streak));
    let [half, three_quarters] = [Ratio::new(1, 2), Ratio::new(3, 4)];
    let bound = Ratio::new(99, 100);
    assert_eq!(weights, [half, three_quarters, Ratio::new(7, 8), Ratio::new(63, 64), bound, bound]);
    let rto = after(gsrtc, [(1_000, 0), (1_000, 0), (3_500, 1), (1_000, 0)]);
    // 1/2 · 3 s + 1/2 · 2 s, then 3/4 · 2.5 s + 1/4 of that, then 1/4 · 5.25 s, then 1/2 again.
    assert_eq!(rto, [2_500_000, 2_500_000, 3_187_500, 2_656_250]);
    let on_fullbackoff2 = cocoa(GSRTC, "gsrtc-on-fullbackoff2");
    let rto = after(on_fullbackoff2, [(1_000, 0), (1_000, 0), (3_500, 1), (1_000, 0)]);
    assert_eq!(rto, [2_500_000, 2_500_000, 5_000_000, 3_562_500], "the backoff of 5 s is the longer");
}

#[test]
fn a_full_backoff_is_kept_after_a_give_up() {
    for entry in [FULLBACKOFF1_COCOA, FULLBACKOFF2_COCOA] {
        let mechanism = cocoa(entry, "");
        let state = &mut mechanism.state();
        let (given_up, _) = timeouts(&mechanism, state, 3); // 2, 4, 8, 16 s
        mechanism.on_end(state, given_up, Outcome::GivenUp, at(30_000));
        assert_eq!(mechanism.gauges(state).rto, Duration::from_secs(16));
    }
}

#[test]
fn cocoa_i_moves_the_limits_of_variable_backoff_with_the_strong_estimate() {
    let cocoa_i = cocoa(COCOA_I, "");
    let state = &mut cocoa_i.state();
    let (low, high) = cocoa_i.band(state);
    assert_eq!((Duration::from(low).as_micros(), Duration::from(high).as_micros()), (666_667, 3_333_333));
    exchange(&cocoa_i, state, 100, 0); // the estimate is 0.3 s, the band 0.1 s to 0.5 s, the RTO 1.15 s
    assert_eq!(timeouts(&cocoa_i, state, 1).1, [1_150, 1_725, 0, 0, 0]);
    // Above the band, but easing leads to 2 s, away from it.
    let _ = cocoa_i.on_start(state, at(100_000));
    assert_eq!(cocoa_i.gauges(state).rto, Duration::from_millis(1_150));
}

#[test]
fn with_a_fresh_message_id_a_retransmitted_exchange_is_a_strong_sample() {
    let cocoa_i = cocoa(COCOA_I, "");
    let state = &mut cocoa_i.state();
    let (retransmitted, _) = timeouts(&cocoa_i, state, 2);
    let answered = Some(Answer { ordinal: 1, since: Duration::from_millis(800) });
    let sample = Sample { answered, ..Sample::unmarked(Duration::from_secs(3), Duration::ZERO, 2) };
    cocoa_i.on_end(state, retransmitted, Outcome::Acked(sample), at(3_000));
    assert!(state.strong.is_measured() && !state.weak.is_measured());
    assert_eq!(cocoa_i.gauges(state).rto, Duration::from_millis(2_200)); // half of 2.4 s, half of 2 s
}

#[test]
fn the_answer_to_a_marked_retransmission_can_be_configured_as_a_weak_sample() {
    let cocoa_i = Cocoa { marked_retransmission: EstimatorOf::Weak, ..cocoa(COCOA_I, "") };
    for (ordinal, is_weak) in [(0, false), (1, true), (7, true)] {
        let state = &mut cocoa_i.state();
        let (retransmitted, _) = timeouts(&cocoa_i, state, 4);
        let answered = Some(Answer { ordinal, since: Duration::from_millis(800) });
        let sample = Sample { answered, ..Sample::unmarked(Duration::from_secs(40), Duration::ZERO, 7) };
        cocoa_i.on_end(state, retransmitted, Outcome::Acked(sample), at(40_000));
        assert_eq!((state.weak.is_measured(), state.strong.is_measured()), (is_weak, !is_weak), "{ordinal}");
    }
}

#[test]
fn er_cocoa_samples_a_reset_as_an_acknowledgement() {
    let er_cocoa = cocoa(COCOA_ENTRY, "er-cocoa");
    for retransmits in 0..3 {
        let (mut reset, mut acknowledged) = (er_cocoa.state(), er_cocoa.state());
        let (one, _) = timeouts(&er_cocoa, &mut reset, retransmits);
        er_cocoa.on_end(&mut reset, one, Outcome::Reset, at(900));
        exchange(&er_cocoa, &mut acknowledged, 900, retransmits);
        assert_eq!(er_cocoa.gauges(&reset), er_cocoa.gauges(&acknowledged));
        assert!(er_cocoa.gauges(&reset).srtt.is_some());
    }
}

#[test]
fn er_cocoa_bounds_each_estimate_before_blending_it_into_the_rto() {
    let er_cocoa = cocoa(COCOA_ENTRY, "er-cocoa");
    let state = &mut er_cocoa.state();
    assert_eq!(exchange(&er_cocoa, state, 50_000, 0), 31_000_000); // the estimate of 150 s counts as 60 s
    assert_eq!(exchange(&COCOA, &mut COCOA.state(), 50_000, 0), 60_000_000); // half of 150 s and of 2 s
}
