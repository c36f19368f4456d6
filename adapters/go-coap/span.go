package coapace

import (
	"math/bits"
	"time"
)

// A span is a time in units of 1/4096 µs, longest at most. Averages in microseconds would stall.
type span uint64

const (
	longest     span = 1<<40 - 1 // 268 s
	millisecond span = 4096 * 1000
	second           = 1000 * millisecond
	granularity      = millisecond // G, RFC 6298 §2.3
)

// spanOf returns a time as a span. A negative time counts as none.
func spanOf(d time.Duration) span {
	us := max(d, 0) / time.Microsecond
	if us>>28 != 0 {
		return longest
	}
	return span(us) << 12
}

// duration returns the nearest number of microseconds, halves up.
func (s span) duration() time.Duration { return time.Duration((s+2048)>>12) * time.Microsecond }

// part returns s / 2^shift, to the nearest integer, halves up.
func (s span) part(shift uint) span { return (s + 1<<shift>>1) >> shift }

// blend returns a step of a moving average, with a weight of 1/2^shift for the new value.
func (s span) blend(next span, shift uint) span { return (s<<shift - s + next).part(shift) }

// drawn returns U(0, s), to the nearest integer.
func (s span) drawn(draw uint32) span {
	high, low := bits.Mul64(uint64(s), uint64(draw))
	low, carry := bits.Add64(low, 1<<31, 0)
	return span((high+carry)<<32 | low>>32)
}

// rttOf returns a measured time as a span of 1 µs at least.
func rttOf(d time.Duration) span { return spanOf(max(d, time.Microsecond)) }

// rtt returns the round-trip time, or zero if it is ambiguous: Karn's algorithm.
func (s *Sample) rtt() span {
	switch {
	case s.Answered >= 0:
		return rttOf(s.SinceAnswered)
	case s.Retransmits > 0:
		return 0
	default:
		return rttOf(s.SinceFirst)
	}
}

// An estimator has SRTT and RTTVAR (RFC 6298). SRTT is zero before the first sample, and never after.
type estimator struct{ srtt, rttvar span }

// learn takes in a sample. RTTVAR is 1/2^first of the first one. Later ones weigh 1/2^gain in it.
func (e *estimator) learn(rtt span, first, gain uint) {
	if e.srtt == 0 {
		e.srtt, e.rttvar = rtt, rtt.part(first)
		return
	}
	e.rttvar = e.rttvar.blend(max(e.srtt, rtt)-min(e.srtt, rtt), gain)
	e.srtt = e.srtt.blend(rtt, 3)
}

// rto returns SRTT + max(G, k·RTTVAR) within bounds.
func (e *estimator) rto(k, shortest, most span) span {
	return min(max(e.srtt+max(k*e.rttvar, granularity), shortest), most)
}
