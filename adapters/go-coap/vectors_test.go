package coapace

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const vectors = "../../vectors"

// ms reads a number of milliseconds with at most three places.
func ms(t *testing.T, text string) time.Duration {
	whole, places, _ := strings.Cut(text, ".")
	us, err := strconv.ParseInt(whole+(places + "000")[:3], 10, 64)
	if err != nil || len(places) > 3 {
		t.Fatalf("%q is not a number of milliseconds", text)
	}
	return time.Duration(us) * time.Microsecond
}

// draw reads a number below 1 with at most six places, and returns the nearest multiple of 2^-32.
func draw(t *testing.T, text string) uint32 {
	if text == "" {
		return 0
	}
	millionths, err := strconv.ParseUint((strings.TrimPrefix(text, "0.") + "000000")[:6], 10, 32)
	if err != nil || !strings.HasPrefix(text, "0.") || len(text) > 8 {
		t.Fatalf("%q is not a draw", text)
	}
	return uint32((millionths<<32 + 500_000) / 1_000_000)
}

// An open exchange, and when its transmissions departed.
type open struct {
	Exchange
	departed []time.Duration
}

// A player plays one run of a file: one mechanism, one destination, and the exchanges to it.
type player struct {
	*testing.T
	state State
	open  map[string]*open
	place map[string]int
}

// near fails unless a time is within a microsecond of the row's. An empty text fails.
func (p *player) near(title, row string, got time.Duration) {
	p.Helper()
	if apart := ms(p.T, row) - got; apart < -time.Microsecond || apart > time.Microsecond {
		p.Errorf("%s is %v, not %s ms", title, got, row)
	}
}

// step plays a row.
func (p *player) step(fields []string) {
	p.Helper()
	field := func(title string) string {
		if place, has := p.place[title]; has && place < len(fields) {
			return fields[place]
		}
		return ""
	}
	exchange, isOpen := p.open[field("exchange")]
	event, timeout := field("event"), time.Duration(-1)
	if isOpen == (event == "start") {
		p.Fatalf("%s of an exchange that is in another state", event)
	}
	if event == "start" {
		exchange = &open{}
		p.open[field("exchange")] = exchange
	}
	cue := Cue{Now: ms(p.T, field("at_ms")), Draw: draw(p.T, field("draw")), Outstanding: uint16(len(p.open))}
	outcomes := map[string]Outcome{"ack": Acked, "reset": Reset, "giveup": GivenUp}
	switch event {
	case "start":
		exchange.departed = append(exchange.departed, cue.Now)
		timeout = p.state.Start(&exchange.Exchange, cue)
	case "timeout":
		exchange.departed = append(exchange.departed, cue.Now)
		timeout = p.state.Retransmit(&exchange.Exchange, cue)
	default:
		outcome, has := outcomes[event]
		if !has {
			p.Fatalf("no event %q", event)
		}
		last := len(exchange.departed) - 1
		sample := Sample{SinceFirst: cue.Now - exchange.departed[0], SinceLast: cue.Now - exchange.departed[last],
			Retransmits: uint8(last), Answered: -1}
		if answered := field("answered"); answered != "" && p.state.Mechanism().Marks() {
			ordinal, err := strconv.Atoi(answered)
			if err != nil || ordinal > last {
				p.Fatalf("%q was not sent", answered)
			}
			sample.Answered, sample.SinceAnswered = ordinal, cue.Now-exchange.departed[ordinal]
		}
		p.state.End(&exchange.Exchange, outcome, sample, cue)
		delete(p.open, field("exchange"))
	}
	if (timeout >= 0) != (field("timeout_ms") != "") {
		p.Errorf("a timeout of %v, not %q", timeout, field("timeout_ms"))
	} else if timeout >= 0 {
		p.near("timeout_ms", field("timeout_ms"), timeout)
	}
	p.near("rto_ms", field("rto_ms"), p.state.Gauges().RTO)
}

func TestVectors(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join(vectors, name+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var p *player
			runs, steps := 0, 0
			for lines := bufio.NewScanner(file); lines.Scan(); {
				line := lines.Text()
				if text, begins := strings.CutPrefix(line, "# mechanism "); begins {
					mechanism, err := Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					p = &player{T: t, state: NewState(mechanism), open: map[string]*open{}}
					runs++
				} else if p.place == nil {
					p.place = map[string]int{}
					for place, title := range strings.Split(line, ",") {
						p.place[title] = place
					}
				} else {
					p.step(strings.Split(line, ","))
					steps++
				}
				if t.Failed() {
					t.Fatalf("at %s", line)
				}
			}
			if runs < 2 || steps < 100 {
				t.Errorf("%d runs with %d steps are too few", runs, steps)
			}
			t.Logf("%d runs, %d steps", runs, steps)
		})
	}
}

func TestNames(t *testing.T) {
	if _, err := Parse("ebb:k=3"); err == nil || !strings.Contains(err.Error(), "choose one of") {
		t.Errorf("a parameter is taken: %v", err)
	}
	for _, name := range names {
		if mechanism, err := Parse(name); err != nil || mechanism.String() != name {
			t.Errorf("%s is %v: %v", name, mechanism, err)
		}
	}
	if text := fmt.Sprint(mechanisms); text != "mechanism 6" {
		t.Error(text)
	}
}

func TestNothingIsAllocatedForAnExchange(t *testing.T) {
	for mechanism := Default; mechanism < mechanisms; mechanism++ {
		state, exchange, cue := NewState(mechanism), Exchange{}, Cue{Draw: 1 << 31, Outstanding: 1}
		allocations := testing.AllocsPerRun(100, func() {
			cue.Now += state.Start(&exchange, cue)
			cue.Now += state.Retransmit(&exchange, cue)
			state.End(&exchange, Acked, Sample{SinceFirst: time.Second, SinceLast: time.Second, Retransmits: 1, Answered: -1}, cue)
			_ = state.Gauges()
		})
		if allocations != 0 {
			t.Errorf("%v allocates %v times", mechanism, allocations)
		}
	}
}

func TestAnExchangeThatIsNotUnderWayChangesNothing(t *testing.T) {
	for mechanism := Default; mechanism < mechanisms; mechanism++ {
		state, other, exchange := NewState(mechanism), NewState((mechanism+1)%mechanisms), Exchange{}
		before := state
		if timeout := state.Retransmit(&exchange, Cue{}); timeout != 3*time.Second {
			t.Errorf("%v: %v", mechanism, timeout)
		}
		state.End(&exchange, GivenUp, Sample{}, Cue{})
		other.Start(&exchange, Cue{})
		state.End(&exchange, GivenUp, Sample{}, Cue{})
		if state != before {
			t.Errorf("%v: the state is another", mechanism)
		}
	}
}
