package coapace

import (
	"math"
	"math/bits"
	"time"
)

// Patience decides when an exchange is over. A mechanism says when to send a copy, not when a peer is dead. On a path of a few milliseconds
// its timeouts may add up to a tenth of a second, so a caller that gives up after the last of them fails at every short outage, and floods a
// dead peer if it begins again at once. With Patience no exchange is given up sooner than by RFC 7252 §4.8, and a silent peer gets no more
// datagrams than RFC 7252 sends: at most MaxRetransmit + 1 of an exchange in any MAX_TRANSMIT_SPAN.
//
// With the numbers of RFC 7252 it waits until 45 s after the first transmission (MAX_TRANSMIT_SPAN), has one more copy sent then, and gives
// up after 93 s (MAX_TRANSMIT_WAIT). An exchange whose own timeouts add up to 62 s ends without that copy.
type Patience struct {
	AckTimeout    time.Duration // ACK_TIMEOUT: 2 s in RFC 7252. ACK_RANDOM_FACTOR is 1.5
	MaxRetransmit uint8         // MAX_RETRANSMIT: 4 in RFC 7252
}

// An Action is what to do as the timeout of a transmission has passed without an answer.
type Action uint8

// The actions.
const (
	SendCopy Action = iota // send a copy, and call [State.Retransmit]
	Wait                   // wait for an answer, and ask again after that
	GiveUp                 // end the exchange with [GivenUp]
)

// doubled returns a timeout after so many doublings. A time that is too long is the longest.
func doubled(timeout time.Duration, times uint) time.Duration {
	if timeout > math.MaxInt64>>min(times, 63) {
		return math.MaxInt64
	}
	return timeout << times
}

// sum returns the sum of so many timeouts that begin with this one and double.
func sum(first time.Duration, count uint) time.Duration { return doubled(first, count) - first }

// OnTimeout says what to do as a timeout has passed, so long after the first transmission and after so many retransmissions, and with [Wait]
// how long to wait.
func (p Patience) OnTimeout(sinceFirst time.Duration, retransmits uint8) (Action, time.Duration) {
	if retransmits < p.MaxRetransmit {
		return SendCopy, 0
	}
	until := sum(p.AckTimeout/2*3, max(uint(p.MaxRetransmit), 1))
	switch {
	case sinceFirst >= sum(p.AckTimeout, uint(p.MaxRetransmit)+1):
		return GiveUp, 0
	case sinceFirst < until:
		return Wait, until - sinceFirst
	default:
		return SendCopy, 0
	}
}

// Timeout returns the time to wait after a transmission for which the mechanism says `timeout`. Call it after each [State.Start] and
// [State.Retransmit]. `retransmits` counts this transmission if it is a copy. `isSilent`: the last timeout of an exchange with this peer has
// passed (OnTimeout was called with retransmits >= MaxRetransmit), and nothing came from it since.
func (p Patience) Timeout(timeout, sinceFirst time.Duration, retransmits uint8, isSilent bool, draw uint32) time.Duration {
	if retransmits > p.MaxRetransmit {
		// The rest of MAX_TRANSMIT_WAIT; if the copy is late, as long as between the least wait and that.
		most := sum(p.AckTimeout/2*3, uint(p.MaxRetransmit)+1)
		return max(most-sum(p.AckTimeout, uint(p.MaxRetransmit)+1), most-sinceFirst)
	}
	if isSilent {
		// As without a mechanism: from AckTimeout to 1.5 times that, doubled by each retransmission.
		random, _ := bits.Mul64(uint64(p.AckTimeout/2), uint64(draw)<<32)
		timeout = max(timeout, doubled(p.AckTimeout+time.Duration(random), uint(retransmits)))
	}
	return timeout
}
