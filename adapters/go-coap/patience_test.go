package coapace

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	patience := Patience{AckTimeout: 2 * time.Second, MaxRetransmit: 4}
	for _, row := range []struct {
		since       time.Duration
		retransmits uint8
		action      Action
		wait        time.Duration
	}{
		{time.Millisecond, 0, SendCopy, 0},
		{200 * time.Second, 3, SendCopy, 0},
		{time.Second, 4, Wait, 44 * time.Second},
		{45 * time.Second, 4, SendCopy, 0},
		{62*time.Second - 1, 4, SendCopy, 0},
		{62 * time.Second, 4, GiveUp, 0},
		{93 * time.Second, 5, GiveUp, 0},
	} {
		if action, wait := patience.OnTimeout(row.since, row.retransmits); action != row.action || wait != row.wait {
			t.Errorf("%+v: %v %v", row, action, wait)
		}
	}
	if wait := patience.Timeout(time.Millisecond, 45*time.Second, 5, false, 0); wait != 48*time.Second {
		t.Errorf("after the copy at 45 s: %v", wait)
	}
	if wait := patience.Timeout(time.Millisecond, 61*time.Second, 5, false, 0); wait != 32*time.Second {
		t.Errorf("after a late copy: %v", wait)
	}
	if wait := patience.Timeout(time.Millisecond, 0, 0, false, 0); wait != time.Millisecond {
		t.Errorf("of a peer that answers: %v", wait)
	}
	for retransmits := uint8(0); retransmits <= 4; retransmits++ {
		for _, draw := range []uint32{0, 1 << 31, 1<<32 - 1} {
			wait := patience.Timeout(time.Millisecond, 0, retransmits, true, draw)
			if apart := wait - rfc7252Timeout(retransmits, draw); apart < -time.Microsecond || apart > time.Microsecond {
				t.Errorf("of a silent peer, after %d: %v", retransmits, wait)
			}
		}
	}
	if endless := (Patience{AckTimeout: time.Hour, MaxRetransmit: 255}); endless.Timeout(0, 0, 255, true, 1<<31) < 24*time.Hour {
		t.Error("a long wait overflows")
	}
}
