package coapace

// keptRTO returns the RTO of linux-rto or cocoa.
func (s *State) keptRTO() span {
	if s.kept == 0 {
		return 2 * second
	}
	return s.kept
}

func (s *State) armLinux(exchange *Exchange) span {
	rto := s.keptRTO()
	if exchange.retransmits > 0 {
		// Exchanges that overlap lose the same packets. Their backoffs do not add up: the longest is kept.
		backedOff := min(2*exchange.timeout, 60*second)
		s.kept = max(rto, backedOff)
		rto = backedOff
	}
	exchange.timeout = rto
	return rto
}

func (s *State) endLinux(isAcked bool, sample *Sample) {
	if !isAcked {
		return
	}
	if rtt := sample.rtt(); rtt != 0 {
		s.estimator.learn(rtt, 1, 2)
		s.kept = s.estimator.rto(4, second, 60*second)
	}
}
