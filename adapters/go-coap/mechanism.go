// Package coapace is congestion control for CoAP (RFC 7252) in Go: the mechanisms of Coapace that compute how long to wait for an
// acknowledgement before a message is sent again, and learn from the answers.
//
// It is a port of c/coapace.c with integers alone, step by step, and agrees with it bit by bit. It has no sockets, no timers, no random
// numbers and no clock, and does not allocate. Package coapudp beside it uses it in go-coap.
//
// Words: an exchange is one confirmable message with its retransmissions and its acknowledgement. The ordinal of a transmission is its
// number within the exchange, 0 for the first. A draw is a random number. A [State] is what a mechanism knows of one destination.
//
// Times are a time.Duration of whole microseconds; fractions are cut off. A moment is the time since an origin that the
// caller chooses once, and runs forwards. Calls with the same State or Exchange must not run at the same time.
package coapace

import (
	"fmt"
	"time"
)

// A Mechanism computes timeouts. The zero value is [Default].
type Mechanism uint8

// The mechanisms.
const (
	Default  Mechanism = iota // a timeout of 2 to 3 s, doubled by every retransmission (RFC 7252 §4.2)
	LinuxRTO                  // the timer of TCP (RFC 6298)
	Cocoa                     // draft-ietf-core-cocoa-03
	Fasor                     // draft-ietf-core-fasor-02
	Ebb                       // docs/ebb.md, with the ordinal in the token of retransmissions
	EbbPlain                  // ebb without a marking
	mechanisms
)

var names = [mechanisms]string{"default", "linux-rto", "cocoa", "fasor", "ebb", "ebb-plain"}

// Parse returns the mechanism of this name: "default", "linux-rto", "cocoa", "fasor", "ebb" or "ebb-plain".
func Parse(name string) (Mechanism, error) {
	for i, known := range names {
		if known == name {
			return Mechanism(i), nil
		}
	}
	return Default, fmt.Errorf("no mechanism %q: choose one of %q", name, names)
}

// String returns the name that [Parse] takes.
func (m Mechanism) String() string {
	if m >= mechanisms {
		return fmt.Sprintf("mechanism %d", uint8(m))
	}
	return names[m]
}

// Marks returns whether retransmissions carry their ordinal as the last byte of the token, so that an answer tells which transmission it
// answers. A caller that cannot do so leaves [Sample.Answered] negative. The mechanism then learns less.
func (m Mechanism) Marks() bool { return m == Ebb }

// A State is what a mechanism knows of one destination. It holds no pointers. [NewState] makes it.
type State struct {
	mechanism         Mechanism
	series, ambiguous uint8     // fasor: the series of timeouts in use, and a count of ambiguous answers
	renewed           uint32    // cocoa: when the RTO was renewed, in ms modulo 2^32
	estimator         estimator // cocoa: of exchanges without a copy
	weak              estimator // cocoa: of exchanges with copies
	kept              span      // linux-rto, cocoa: the RTO; zero before there is one
	slow              span      // fasor: the slow RTO
	least, held       span      // ebb: the least round-trip time, and the timeout that later exchanges hold
}

// NewState returns the state of a destination before the first exchange with it. A mechanism that there is not counts as [Default].
func NewState(mechanism Mechanism) State {
	if mechanism >= mechanisms {
		mechanism = Default
	}
	return State{mechanism: mechanism}
}

// Mechanism returns the mechanism of the state.
func (s *State) Mechanism() Mechanism { return s.mechanism }

// An Exchange is one under way. [State.Start] writes it and [State.End] frees it. It holds no pointers.
type Exchange struct {
	isOpen        bool
	mechanism     Mechanism
	retransmits   uint8 // 255 if more
	factor        uint8 // cocoa: of the backoff, in halves
	series, round uint8 // fasor: the series of timeouts, and State.ambiguous at the start
	draw          uint32
	timeout       span // the last one; fasor: the sum of all
	fast, slow    span // fasor: the RTOs at the start
}

// A Cue comes with every call: time, randomness and load.
type Cue struct {
	Now         time.Duration // the present moment
	Draw        uint32        // uniformly random, in units of 2^-32; drawn again for every call
	Outstanding uint16        // exchanges to this destination that have departed and are not over, this one included
}

// A Sample has the facts of an acknowledgement.
type Sample struct {
	SinceFirst    time.Duration // time since the first transmission departed
	SinceLast     time.Duration // time since the last transmission departed
	SinceAnswered time.Duration // time since the transmission that was answered departed; read if Answered is not negative
	Retransmits   uint8         // retransmissions made; 255 if more
	Answered      int           // the ordinal of the transmission that was answered; negative if it is unknown
}

// An Outcome is a way in which an exchange ends.
type Outcome uint8

// The outcomes.
const (
	Acked     Outcome = iota // an acknowledgement or a response arrived
	Reset                    // a Reset arrived
	Cancelled                // the application lost interest
	GivenUp                  // the timeout after the last retransmission passed
)

// Start begins an exchange, as its first transmission departs, and returns the time to wait for an answer: 268 s at most. Exchanges to one
// destination may overlap.
func (s *State) Start(exchange *Exchange, cue Cue) time.Duration {
	*exchange = Exchange{isOpen: true, mechanism: s.mechanism}
	return s.arm(exchange, cue)
}

// Retransmit backs off, as the timeout has passed and a retransmission departs, and returns the next time to wait. For an exchange that is
// not under way, or of another mechanism, it changes nothing and returns 3 s, the longest first timeout of RFC 7252 §4.8.
func (s *State) Retransmit(exchange *Exchange, cue Cue) time.Duration {
	if !exchange.isOpen || exchange.mechanism != s.mechanism {
		return 3 * time.Second
	}
	if exchange.retransmits < 255 {
		exchange.retransmits++
	}
	return s.arm(exchange, cue)
}

// End ends an exchange. The sample is read with [Acked] alone. For an exchange that is not under way, or of another mechanism, it does
// nothing.
func (s *State) End(exchange *Exchange, outcome Outcome, sample Sample, cue Cue) {
	if !exchange.isOpen || exchange.mechanism != s.mechanism {
		return
	}
	exchange.isOpen = false
	if outcome != Acked && outcome != GivenUp {
		return
	}
	isAcked := outcome == Acked
	switch s.mechanism {
	case LinuxRTO:
		s.endLinux(isAcked, &sample)
	case Cocoa:
		s.endCocoa(isAcked, &sample, cue)
	case Fasor:
		s.endFasor(exchange, isAcked, &sample)
	case Ebb, EbbPlain:
		s.endEbb(exchange, isAcked, &sample)
	}
}

func (s *State) arm(exchange *Exchange, cue Cue) time.Duration {
	switch s.mechanism {
	case LinuxRTO:
		return s.armLinux(exchange).duration()
	case Cocoa:
		return s.armCocoa(exchange, cue).duration()
	case Fasor:
		return s.armFasor(exchange, cue.Draw).duration()
	case Ebb, EbbPlain:
		return s.armEbb(exchange, cue.Draw).duration()
	default:
		// Every timeout is computed from the draw of the exchange, so errors of rounding do not add up.
		if exchange.retransmits == 0 {
			exchange.draw = cue.Draw
		}
		return rfc7252Timeout(exchange.retransmits, exchange.draw)
	}
}

// rfc7252Timeout returns a timeout that is drawn from 2 to 3 s and doubled by each retransmission, 60 s at most.
func rfc7252Timeout(retransmits uint8, draw uint32) time.Duration {
	shortest := uint64(2_000_000) << min(retransmits, 5)
	us := shortest + (shortest/2*uint64(draw)+1<<31)>>32
	return time.Duration(min(us, 60_000_000)) * time.Microsecond
}

// Gauges are the estimates for a destination, to be shown.
type Gauges struct {
	RTO    time.Duration // the RTO that the next exchange starts from, before its random part
	SRTT   time.Duration // the smoothed round-trip time; 0 before the first sample
	RTTVAR time.Duration // the variation of the round-trip time
}

// Gauges returns the estimates of the mechanism.
func (s *State) Gauges() Gauges {
	estimator, rto := s.estimator, 2*second
	if estimator.srtt == 0 {
		estimator = s.weak
	}
	switch s.mechanism {
	case LinuxRTO, Cocoa:
		rto = s.keptRTO()
	case Fasor:
		rto = s.rtoFasor()
	case Ebb, EbbPlain:
		rto = s.rtoEbb()
	}
	return Gauges{RTO: rto.duration(), SRTT: estimator.srtt.duration(), RTTVAR: estimator.rttvar.duration()}
}
