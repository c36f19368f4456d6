package coapace

// The series of timeouts of an exchange (draft-ietf-core-fasor-02 §4.2). f is the fast RTO with its dither, s the slow RTO.
const (
	fast         uint8 = iota // f, 2f, 4f…
	fastSlowFast              // f, max(s, 2f), 2f, 4f…
	slowFast                  // s, f, 2f, 4f…
)

func (s *State) rtoFasor() span {
	if s.estimator.srtt == 0 {
		return 2 * second
	}
	return s.estimator.rto(4, 50*millisecond, 60*second)
}

func (s *State) armFasor(exchange *Exchange, draw uint32) span {
	doublings := exchange.retransmits
	if doublings == 0 {
		srtt := s.estimator.srtt
		if srtt == 0 {
			srtt = (2*second + 1) / 3
		}
		dithered := s.rtoFasor() + srtt.part(2) + (srtt - srtt.part(2)).drawn(draw)
		exchange.fast, exchange.slow = min(dithered, longest), s.slow
		exchange.series, exchange.round = s.series, s.ambiguous
	}
	timeout := exchange.fast
	switch {
	case exchange.series == slowFast && doublings == 0:
		timeout = exchange.slow
	case exchange.series == fastSlowFast && doublings == 1:
		timeout = max(exchange.slow, 2*timeout)
	}
	if exchange.series != fast && doublings > 0 {
		doublings--
	}
	for ; doublings > 0 && timeout < 60*second; doublings-- {
		timeout *= 2
	}
	timeout = min(timeout, 60*second)
	exchange.timeout = min(exchange.timeout+timeout, longest)
	return timeout
}

func (s *State) endFasor(exchange *Exchange, isAcked bool, sample *Sample) {
	elapsed := exchange.timeout
	if isAcked {
		if rtt := sample.rtt(); rtt != 0 {
			s.estimator.learn(rtt, 3, 2)
		}
		if sample.Retransmits == 0 {
			// An exchange that began before the last ambiguous answer does not return to the fast RTO.
			if exchange.round == s.ambiguous {
				s.series = fast
			}
			return
		}
		elapsed = rttOf(sample.SinceFirst)
	}
	s.slow = min((3 * elapsed).part(1), longest)
	s.ambiguous++
	if s.series == fast {
		s.series = fastSlowFast
	} else {
		s.series = slowFast
	}
}
