package coapudp

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"time"

	coapace "github.com/coapace/coapace/adapters/go-coap"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/udp/client"
)

// never is a timeout of 146 years, so that go-coap's own timer does not fire. It may take 1.5 times that.
const never = time.Duration(1) << 62

// A session writes the messages of a connection and sends the confirmable ones again. peer.mutex guards its maps and exchanges.
type session struct {
	client.Session
	peers    *Peers
	peer     *peer
	patience coapace.Patience
	errors   func(error)
	open     map[int32]*exchange  // by Message ID, until an acknowledgement, a Reset or the end of patience
	marked   map[string]*exchange // by token: those with a copy that had an ordinal, until a response
	ping     *exchange            // the last one
	answered [64]int32            // Message IDs of the exchanges that were acknowledged last; a ring
	oldest   int                  // in it
}

// An exchange is a confirmable message and its copies.
type exchange struct {
	coapace.Exchange
	message     *pool.Message // what copies send; go-coap takes its own back at any time
	token       message.Token // without an ordinal
	mayMark     bool
	sent        []transmission
	timer       *time.Timer
	stopContext func() bool
}

type transmission struct{ departed, timeout time.Duration }

func (e *exchange) retransmits() uint8 { return uint8(min(len(e.sent)-1, math.MaxUint8)) }

// session returns a session that sends confirmable messages again by the mechanism, and changes the configuration of the connection to it:
// go-coap's own timer never fires, each message received is shown to the session first, and tokens leave room for an ordinal. The timeouts
// that were configured shape the patience.
func (p *Peers) session(inner client.Session, cfg *client.Config) client.Session {
	ackTimeout := cfg.TransmissionAcknowledgeTimeout
	if ackTimeout <= 0 {
		ackTimeout = 2 * time.Second
	}
	s := &session{
		Session: inner, peers: p, peer: p.peer(inner.RemoteAddr().String()), errors: cfg.Errors,
		open: map[int32]*exchange{}, marked: map[string]*exchange{},
		patience: coapace.Patience{
			AckTimeout:    ackTimeout,
			MaxRetransmit: uint8(min(cfg.TransmissionMaxRetransmit, math.MaxUint8)),
		},
	}
	cfg.TransmissionAcknowledgeTimeout, cfg.TransmissionMaxRetransmit = never, math.MaxUint32
	for i := range s.answered {
		s.answered[i] = -1
	}
	monitor := cfg.RequestMonitor
	cfg.RequestMonitor = func(conn *client.Conn, received *pool.Message) (bool, error) {
		if isDuplicate := s.receive(received); isDuplicate || monitor == nil {
			return isDuplicate, nil
		}
		return monitor(conn, received)
	}
	if getToken := cfg.GetToken; p.mechanism.Marks() && getToken != nil {
		cfg.GetToken = func() (message.Token, error) {
			token, err := getToken()
			return token[:min(len(token), message.MaxTokenSize-1)], err
		}
	}
	inner.AddOnClose(s.closed)
	return s
}

// WriteMessage writes a message. A confirmable one is an exchange from now on.
func (s *session) WriteMessage(written *pool.Message) error {
	if written.Type() != message.Confirmable {
		return s.Session.WriteMessage(written)
	}
	e := &exchange{message: pool.NewMessage(written.Context()), token: written.Token(), mayMark: s.mayMark(written)}
	if err := written.Clone(e.message); err != nil {
		return fmt.Errorf("cannot keep the message for retransmissions: %w", err)
	}
	id := written.MessageID()
	s.peer.mutex.Lock()
	if former := s.open[id]; former != nil {
		s.end(former, coapace.Cancelled, coapace.Sample{})
	}
	if written.Code() == codes.Empty {
		if s.ping != nil { // go-coap does not say when it no longer waits for a ping
			s.end(s.ping, coapace.Cancelled, coapace.Sample{})
		}
		s.ping = e
	}
	s.open[id] = e
	s.peer.outstanding++
	s.depart(e)
	e.timer = time.AfterFunc(e.sent[0].timeout, func() { s.timeOut(e) })
	e.stopContext = context.AfterFunc(written.Context(), func() { s.cancel(e) })
	s.peer.mutex.Unlock()
	err := s.Session.WriteMessage(written)
	if err != nil {
		s.cancel(e)
	}
	return err
}

// mayMark returns whether copies of a message may have another token. It must be a request, and the server must not know an
// observation or a body by its token.
func (s *session) mayMark(written *pool.Message) bool {
	isRequest := codes.Empty < written.Code() && written.Code() < codes.Created
	if !s.peers.mechanism.Marks() || !isRequest || len(written.Token()) == 0 || len(written.Token()) >= message.MaxTokenSize {
		return false
	}
	for _, option := range written.Options() {
		switch option.ID {
		case message.Observe, message.Block1, message.Block2, 19, 31: // the last two are Q-Block1 and Q-Block2 (RFC 9177 §4.1)
			return false
		}
	}
	return true
}

func (s *session) cue() coapace.Cue {
	return coapace.Cue{Now: time.Since(s.peers.origin), Draw: rand.Uint32(), Outstanding: s.peer.outstanding}
}

// depart counts a transmission. Its timeout is the mechanism's, or longer by patience.
func (s *session) depart(e *exchange) {
	cue, timeout := s.cue(), time.Duration(0)
	e.sent = append(e.sent, transmission{departed: cue.Now})
	if len(e.sent) == 1 {
		timeout = s.peer.state.Start(&e.Exchange, cue)
	} else {
		timeout = s.peer.state.Retransmit(&e.Exchange, cue)
	}
	timeout = s.patience.Timeout(timeout, cue.Now-e.sent[0].departed, e.retransmits(), s.peer.isSilent, cue.Draw)
	e.sent[len(e.sent)-1].timeout = timeout
}

// timeOut is called by the timer of an exchange: the timeout of its last transmission has passed.
func (s *session) timeOut(e *exchange) {
	s.peer.mutex.Lock()
	defer s.peer.mutex.Unlock()
	if s.open[e.message.MessageID()] != e {
		return
	}
	since := time.Since(s.peers.origin) - e.sent[0].departed
	s.peer.isSilent = s.peer.isSilent || e.retransmits() >= s.patience.MaxRetransmit
	switch action, wait := s.patience.OnTimeout(since, e.retransmits()); action {
	case coapace.Wait:
		e.timer.Reset(wait)
	case coapace.GiveUp:
		s.end(e, coapace.GivenUp, coapace.Sample{})
		go s.errors(fmt.Errorf("no answer to %d transmissions in %v: %w", len(e.sent), since.Round(time.Millisecond), context.DeadlineExceeded))
	default:
		s.depart(e)
		if e.mayMark {
			s.marked[string(e.token)] = e
			e.message.SetToken(append(e.token[:len(e.token):len(e.token)], e.retransmits()))
		}
		s.peer.mutex.Unlock()
		err := s.Session.WriteMessage(e.message)
		s.peer.mutex.Lock()
		if err != nil && e.message.Context().Err() == nil {
			go s.errors(fmt.Errorf("cannot send a copy: %w", err)) // it counts as lost
		}
		if s.open[e.message.MessageID()] == e {
			e.timer.Reset(e.sent[len(e.sent)-1].timeout)
		}
	}
}

// receive learns from a message before go-coap sees it, and takes the ordinal from its token. It returns whether go-coap should not see it:
// one more acknowledgement, which is to be ignored in silence (RFC 7252 §4.2). go-coap would take it for the start of a body.
func (s *session) receive(received *pool.Message) bool {
	s.peer.mutex.Lock()
	defer s.peer.mutex.Unlock()
	s.peer.isSilent = false
	var marked *exchange // that the token tells
	answered := -1
	if token := received.Token(); len(token) > 0 && received.Code() >= codes.Created {
		last := len(token) - 1
		if marked = s.marked[string(token)]; marked != nil {
			answered = 0
		} else if marked = s.marked[string(token[:last])]; marked != nil && 0 < token[last] && token[last] <= marked.retransmits() {
			answered = int(token[last])
			received.SetToken(marked.token)
		} else {
			marked = nil
		}
		if marked != nil {
			s.forget(marked)
		}
	}
	if received.Type() != message.Acknowledgement && received.Type() != message.Reset {
		return false // go-coap waits for the acknowledgement all the same
	}
	e := s.open[received.MessageID()]
	if e == nil {
		return received.Type() == message.Acknowledgement && slices.Contains(s.answered[:], received.MessageID())
	}
	if received.Type() == message.Reset {
		s.forget(e)
		s.end(e, coapace.Reset, coapace.Sample{})
		return false
	}
	s.answered[s.oldest] = received.MessageID()
	s.oldest = (s.oldest + 1) % len(s.answered)
	now, last := time.Since(s.peers.origin), len(e.sent)-1
	if marked != e {
		answered = -1
	}
	sample := coapace.Sample{SinceFirst: now - e.sent[0].departed, SinceLast: now - e.sent[last].departed,
		Retransmits: e.retransmits(), Answered: answered}
	if answered >= 0 {
		sample.SinceAnswered = now - e.sent[answered].departed
		if answered < last && sample.SinceAnswered >= e.sent[answered].timeout {
			sample.Answered = -1 // a server may have repeated an old answer for a later copy (RFC 7252 §4.5)
		}
	}
	s.end(e, coapace.Acked, sample)
	return false
}

// end ends an exchange, if it is under way.
func (s *session) end(e *exchange, outcome coapace.Outcome, sample coapace.Sample) {
	id := e.message.MessageID()
	if s.open[id] != e {
		return
	}
	delete(s.open, id)
	e.timer.Stop()
	s.peer.state.End(&e.Exchange, outcome, sample, s.cue())
	s.peer.outstanding--
	if s.ping == e {
		s.ping = nil
	}
	if s.marked[string(e.token)] != e {
		e.stopContext()
	}
}

// forget ends the wait for a response that may have an ordinal in its token.
func (s *session) forget(e *exchange) {
	if s.marked[string(e.token)] != e {
		return
	}
	delete(s.marked, string(e.token))
	if s.open[e.message.MessageID()] != e {
		e.stopContext()
	}
}

// cancel ends an exchange that the program no longer waits for.
func (s *session) cancel(e *exchange) {
	s.peer.mutex.Lock()
	defer s.peer.mutex.Unlock()
	s.forget(e)
	s.end(e, coapace.Cancelled, coapace.Sample{})
}

// closed ends all exchanges.
func (s *session) closed() {
	s.peer.mutex.Lock()
	defer s.peer.mutex.Unlock()
	for _, e := range s.marked {
		s.forget(e)
	}
	for _, e := range s.open {
		s.end(e, coapace.Cancelled, coapace.Sample{})
	}
}
