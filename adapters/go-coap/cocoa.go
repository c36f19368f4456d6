package coapace

import "time"

// msOf returns a moment in ms modulo 2^32.
func msOf(now time.Duration) uint32 { return uint32(max(now, 0) / time.Millisecond) }

// age ages an RTO that was not renewed. Below 1 s it doubles after 16 RTO. Above 3 s it halves after 4 RTO (draft-ietf-core-cocoa-03 §4.3).
func (s *State) age(now time.Duration) {
	idle := time.Duration(msOf(now)-s.renewed) * time.Millisecond
	for s.kept < second || s.kept > 3*second {
		patience, next := 4*s.kept.duration(), second+s.kept.part(1)
		if s.kept < second {
			patience, next = 16*s.kept.duration(), 2*s.kept
		}
		if idle <= patience {
			return
		}
		idle -= patience
		s.kept = next
		s.renewed = msOf(max(now, 0) - min(max(now, 0), idle))
	}
}

func (s *State) armCocoa(exchange *Exchange, cue Cue) span {
	if exchange.retransmits > 0 { // a first timeout of more than 32 s stays
		backedOff := (exchange.timeout * span(exchange.factor)).part(1)
		exchange.timeout = max(exchange.timeout, min(backedOff, 32*second))
		return exchange.timeout
	}
	times := span(max(cue.Outstanding, 1))
	if s.kept != 0 {
		s.age(cue.Now)
		times = 1 // before the first sample, the k-th exchange under way waits k times the RTO
	}
	timeout := s.keptRTO()
	switch { // in halves
	case timeout < second:
		exchange.factor = 6
	case timeout > 3*second:
		exchange.factor = 3
	default:
		exchange.factor = 4
	}
	timeout *= times
	exchange.timeout = min(timeout+timeout.part(1).drawn(cue.Draw), 60*second)
	return exchange.timeout
}

func (s *State) endCocoa(isAcked bool, sample *Sample, cue Cue) {
	if !isAcked || sample.Retransmits > 2 {
		return
	}
	estimator, weight := &s.weak, span(1) // the weight in the RTO, in quarters. K, 4 or 1, is its square
	if sample.Retransmits == 0 {
		estimator, weight = &s.estimator, 2
	}
	estimator.learn(rttOf(sample.SinceFirst), 1, 2)
	rto := (s.keptRTO()*(4-weight) + estimator.rto(weight*weight, 0, longest)*weight).part(2)
	s.kept = min(max(rto, 50*millisecond), 60*second)
	s.renewed = msOf(cue.Now)
}
