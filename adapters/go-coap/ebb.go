package coapace

// isCalm returns whether the path has no standing queue, by SRTT and by how late an answer came. It does not before a sample.
func (s *State) isCalm(late span) bool {
	longer := max(s.estimator.srtt, late)
	return s.least != 0 && (longer*20 <= s.least*23+10 || longer <= s.least+60*millisecond)
}

func (s *State) rtoEbb() span {
	rto := 2 * second // also the least RTO with a queue
	if s.least != 0 {
		shortest := rto
		if s.isCalm(0) {
			shortest = 50 * millisecond
		}
		rto = s.estimator.rto(3, shortest, 247*second)
	}
	return max(rto, s.held)
}

func (s *State) armEbb(exchange *Exchange, draw uint32) span {
	if exchange.retransmits == 0 {
		rto := s.rtoEbb()
		exchange.timeout = min(rto+rto.part(2).drawn(draw), 247*second)
		return exchange.timeout
	}
	factor := span(4) // in halves
	switch {
	case s.least != 0:
		factor = 3
	case exchange.retransmits == 1:
		factor = 6
	}
	exchange.timeout = max(exchange.timeout, min((exchange.timeout*factor).part(1), 60*second))
	return exchange.timeout
}

func (s *State) endEbb(exchange *Exchange, isAcked bool, sample *Sample) {
	if !isAcked {
		s.held = exchange.timeout
		return
	}
	rtt, late := sample.rtt(), span(0)
	isSpurious := sample.Answered >= 0 && sample.Answered < int(sample.Retransmits)
	if rtt == 0 && sample.Retransmits == 1 && 2*spanOf(sample.SinceLast) < s.least {
		// The copy cannot have been answered in half of the shortest time before. The first one was.
		rtt, isSpurious = rttOf(sample.SinceFirst), true
	}
	if rtt != 0 {
		s.estimator.learn(rtt, 1, 1)
		// It rises by 1/64 of its distance to SRTT, so that a longer route is learnt.
		risen := rtt
		if s.least != 0 {
			risen = s.least.blend(s.estimator.srtt, 6)
		}
		s.least = min(risen, rtt)
	} else {
		late = spanOf(sample.SinceLast)
	}
	s.held = 0
	if sample.Retransmits > 0 && !isSpurious && !s.isCalm(late) {
		s.held = exchange.timeout
	}
}
