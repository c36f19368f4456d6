package coapudp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	coapace "github.com/coapace/coapace/adapters/go-coap"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/udp"
	"github.com/plgd-dev/go-coap/v3/udp/client"
	"github.com/plgd-dev/go-coap/v3/udp/coder"
)

// quick is less than the least timeout without a round trip that was measured.
const quick = 1900 * time.Millisecond

// A datagram that a responder received.
type datagram struct {
	*pool.Message
	at time.Time
}

// A responder answers on loopback as a test says.
type responder struct {
	*testing.T
	socket   *net.UDPConn
	mutex    sync.Mutex
	received []datagram
}

// serve answers each datagram: `copies` counts the earlier ones with its Message ID. Nil is no answer.
func serve(t *testing.T, answer func(received *pool.Message, copies int) []*pool.Message) *responder {
	t.Parallel()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	s := &responder{T: t, socket: socket}
	go func() {
		buffer, copies := make([]byte, 2000), map[int32]int{}
		for {
			n, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			received := pool.NewMessage(context.Background())
			if _, err := received.UnmarshalWithDecoder(coder.DefaultCoder, bytes.Clone(buffer[:n])); err != nil {
				t.Error(err)
				return
			}
			s.mutex.Lock()
			s.received = append(s.received, datagram{received, time.Now()})
			s.mutex.Unlock()
			answers := answer(received, copies[received.MessageID()])
			copies[received.MessageID()]++
			for _, one := range answers {
				data, err := one.MarshalWithEncoder(coder.DefaultCoder)
				if err != nil {
					t.Error(err)
				}
				_, _ = socket.WriteToUDP(data, from)
			}
		}
	}()
	return s
}

func (s *responder) all() []datagram {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]datagram{}, s.received...)
}

// reply makes a message to a client.
func reply(kind message.Type, code codes.Code, id int32, token message.Token, body string) *pool.Message {
	made := pool.NewMessage(context.Background())
	made.SetType(kind)
	made.SetCode(code)
	made.SetMessageID(id)
	made.SetToken(token)
	if body != "" {
		made.SetBody(bytes.NewReader([]byte(body)))
	}
	return made
}

// content answers in an acknowledgement.
func content(to *pool.Message) []*pool.Message {
	return []*pool.Message{reply(message.Acknowledgement, codes.Content, to.MessageID(), to.Token(), "x")}
}

// dial connects, with a tick of go-coap of 1 ms: its own timer would show.
func (s *responder) dial(peers *Peers, opts ...udp.Option) *client.Conn {
	stop := make(chan struct{})
	runner := options.WithPeriodicRunner(func(each func(time.Time) bool) {
		go func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for each(<-tick.C) {
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	})
	conn, err := peers.Dial(s.socket.LocalAddr().String(), append([]udp.Option{runner, options.WithErrors(func(error) {})}, opts...)...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		close(stop)
		conn.Close()
	})
	return conn
}

// get makes a request and returns the body of its response.
func get(conn *client.Conn, limit time.Duration, opts ...message.Option) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	response, err := conn.Get(ctx, "/", opts...)
	if err != nil {
		return "", err
	}
	body, err := response.ReadBody()
	return string(body), err
}

func (s *responder) expect(conn *client.Conn, limit time.Duration) {
	s.Helper()
	if body, err := get(conn, limit); body != "x" || err != nil {
		s.Fatalf("%q: %v", body, err)
	}
}

// lose answers all but the requests of these numbers, counted from 0.
func lose(numbers ...int) func(*pool.Message, int) []*pool.Message {
	next := -1
	return func(received *pool.Message, _ int) []*pool.Message {
		next++
		for _, number := range numbers {
			if number == next {
				return nil
			}
		}
		return content(received)
	}
}

func TestALostRequestIsSentAgainAfterTheRoundTripThatWasMeasured(t *testing.T) {
	answer := lose(2, 3)
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		answers := answer(received, copies)
		if answers != nil {
			time.Sleep(100 * time.Millisecond)
		}
		return answers
	})
	peers := NewPeers(coapace.Ebb)
	conn, address := s.dial(peers), s.socket.LocalAddr().String()
	s.expect(conn, quick)
	s.expect(conn, quick)
	before, _ := peers.Gauges(address)
	s.expect(conn, quick)
	all := s.all()
	if len(all) != 5 {
		t.Fatalf("%d transmissions", len(all))
	}
	token := all[2].Token()
	for ordinal, copied := range all[3:] {
		marked := append(append(message.Token{}, token...), byte(ordinal+1))
		if len(token) != 7 || !bytes.Equal(copied.Token(), marked) || copied.MessageID() != all[2].MessageID() {
			t.Errorf("copy %d has the token %v, not %v", ordinal, copied.Token(), marked)
		}
	}
	// The sample counts from the copy that was answered. From the first transmission it would raise SRTT by more than 30 ms.
	after, _ := peers.Gauges(address)
	if after.SRTT == before.SRTT || after.SRTT > before.SRTT+30*time.Millisecond {
		t.Errorf("%v became %v", before.SRTT, after.SRTT)
	}
	// Another connection to the address knows the estimates.
	s.dial(peers).Close()
	if again, _ := peers.Gauges(address); again != after {
		t.Errorf("%+v became %+v", after, again)
	}
}

func TestWithoutAMarkingCopiesAreTheSame(t *testing.T) {
	s := serve(t, lose(2))
	conn := s.dial(NewPeers(coapace.EbbPlain))
	for i := 0; i < 3; i++ {
		s.expect(conn, quick)
	}
	all := s.all()
	if len(all) != 4 || len(all[2].Token()) != 8 || !bytes.Equal(all[2].Token(), all[3].Token()) {
		t.Errorf("%d transmissions, the last ones with tokens %v and %v", len(all), all[2].Token(), all[len(all)-1].Token())
	}
}

func TestTheTimerOfGoCoapNeverFires(t *testing.T) {
	s := serve(t, lose(0))
	conn := s.dial(NewPeers(coapace.Default))
	if _, err := get(conn, 1500*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if all := s.all(); len(all) != 1 {
		t.Errorf("%d transmissions in 1.5 s", len(all))
	}
}

func TestARequestThatIsCancelledIsNotSentAgain(t *testing.T) {
	s := serve(t, lose(0))
	conn := s.dial(NewPeers(coapace.Default))
	if _, err := get(conn, 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond)
	session := conn.Session().(*session)
	session.peer.mutex.Lock()
	defer session.peer.mutex.Unlock()
	if all := s.all(); len(all) != 1 || len(session.open) != 0 {
		t.Errorf("%d transmissions, %d open exchanges", len(all), len(session.open))
	}
}

func TestAnAnswerThatMayBeOldIsNoSample(t *testing.T) {
	requests := 0
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		if requests++; requests > 1 && copies < 2 {
			return nil
		}
		answers := content(received)
		answers[0].SetToken(received.Token()[:7]) // the token of the first transmission
		return answers
	})
	peers := NewPeers(coapace.Ebb)
	conn := s.dial(peers)
	s.expect(conn, quick)
	before, _ := peers.Gauges(s.socket.LocalAddr().String())
	s.expect(conn, quick)
	if after, _ := peers.Gauges(s.socket.LocalAddr().String()); before.SRTT == 0 || after.SRTT != before.SRTT {
		t.Errorf("%v became %v", before.SRTT, after.SRTT)
	}
}

func TestAnAnswerWithTheTokenOfAnotherRequest(t *testing.T) {
	var tokens []message.Token // of the requests; the token of a copy begins with its request's
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		if copies == 0 {
			tokens = append(tokens, received.Token())
		}
		switch {
		case len(tokens) == 1:
			return content(received)
		case len(tokens) == 2 || copies > 0:
			return nil
		default: // to the third request, but with the token of the third copy of the second
			return []*pool.Message{reply(message.Acknowledgement, codes.Content, received.MessageID(), append(tokens[1], 3), "x")}
		}
	})
	conn := s.dial(NewPeers(coapace.Ebb), options.WithTransmission(2, 2*time.Second, 4), options.WithLimitClientParallelRequest(2),
		options.WithLimitClientEndpointParallelRequest(2))
	s.expect(conn, quick)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := get(conn, time.Second); err == nil {
			t.Error("the second request was acknowledged")
		}
	}()
	time.Sleep(500 * time.Millisecond)
	if _, err := get(conn, 200*time.Millisecond); err == nil {
		t.Error("the third request has an answer")
	}
	<-done
}

func TestCopiesOfAResponseKeepItsToken(t *testing.T) {
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		if copies == 0 {
			return nil
		}
		return []*pool.Message{reply(message.Acknowledgement, codes.Empty, received.MessageID(), nil, "")}
	})
	conn := s.dial(NewPeers(coapace.Ebb))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	response := reply(message.Confirmable, codes.Content, conn.GetMessageID(), message.Token("token"), "x")
	response.SetContext(ctx)
	if err := conn.WriteMessage(response); err != nil {
		t.Fatal(err)
	}
	if all := s.all(); len(all) != 2 || string(all[1].Token()) != "token" {
		t.Errorf("%d transmissions, the last one with the token %v", len(all), all[len(all)-1].Token())
	}
}

func TestCopiesOfObservationsKeepTheirToken(t *testing.T) {
	s := serve(t, lose(2))
	conn := s.dial(NewPeers(coapace.Ebb))
	s.expect(conn, quick)
	s.expect(conn, quick)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.Observe(ctx, "/", func(*pool.Message) {}); err != nil {
		t.Fatal(err)
	}
	all := s.all()
	if len(all) < 4 || !bytes.Equal(all[2].Token(), all[3].Token()) {
		t.Errorf("%v became %v", all[2].Token(), all[len(all)-1].Token())
	}
}

func TestOneMoreAcknowledgementIsIgnored(t *testing.T) {
	s := serve(t, func(received *pool.Message, _ int) []*pool.Message {
		if received.Code() != codes.GET {
			t.Errorf("%v was sent", received)
		}
		answers := append(content(received), content(received)...)
		for _, answer := range answers {
			answer.SetOptionUint32(message.Block2, 0)
		}
		return answers
	})
	conn := s.dial(NewPeers(coapace.Ebb), options.WithErrors(func(err error) { t.Error(err) }))
	for i := 0; i < 100; i++ {
		s.expect(conn, quick)
	}
	time.Sleep(50 * time.Millisecond)
}

func TestASeparateResponseToACopyFindsItsRequest(t *testing.T) {
	requests := 0
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		if received.Type() != message.Confirmable {
			return nil
		}
		if requests++; requests == 2 {
			return nil
		}
		return []*pool.Message{
			reply(message.Acknowledgement, codes.Empty, received.MessageID(), nil, ""),
			reply(message.Confirmable, codes.Content, int32(requests), received.Token(), "x"),
		}
	})
	conn := s.dial(NewPeers(coapace.Ebb))
	s.expect(conn, quick)
	s.expect(conn, quick)
	time.Sleep(100 * time.Millisecond)
	acknowledged := 0
	for _, one := range s.all() {
		if one.Type() == message.Acknowledgement {
			acknowledged++
		}
	}
	if acknowledged != 2 || requests != 3 {
		t.Errorf("%d responses are acknowledged, of %d requests", acknowledged, requests)
	}
}

func TestAResetEndsAnExchange(t *testing.T) {
	s := serve(t, func(received *pool.Message, _ int) []*pool.Message {
		return []*pool.Message{reply(message.Reset, codes.Empty, received.MessageID(), nil, "")}
	})
	conn := s.dial(NewPeers(coapace.Ebb))
	pong := make(chan struct{}, 1)
	if _, err := conn.AsyncPing(func() { pong <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-pong:
	case <-time.After(time.Second):
		t.Error("no pong")
	}
	session := conn.Session().(*session)
	session.peer.mutex.Lock()
	defer session.peer.mutex.Unlock()
	if len(session.open) != 0 || session.ping != nil || session.peer.outstanding != 0 {
		t.Errorf("%d exchanges are open", len(session.open))
	}
}

func TestTheLatestPingAloneIsSentAgain(t *testing.T) {
	s := serve(t, lose(0, 1, 2, 3))
	conn := s.dial(NewPeers(coapace.Ebb))
	for i := 0; i < 3; i++ {
		if _, err := conn.AsyncPing(func() {}); err != nil {
			t.Fatal(err)
		}
	}
	session := conn.Session().(*session)
	session.peer.mutex.Lock()
	defer session.peer.mutex.Unlock()
	if len(session.open) != 1 {
		t.Errorf("%d exchanges are open", len(session.open))
	}
}

func TestASilentPeer(t *testing.T) {
	// ACK_TIMEOUT 0.1 s, 2 retransmissions: the last copy at 0.45 s (MAX_TRANSMIT_SPAN), the end at 1.05 s (MAX_TRANSMIT_WAIT).
	late := make(chan *pool.Message, 10)
	requests := 0
	s := serve(t, func(received *pool.Message, _ int) []*pool.Message {
		if requests++; requests == 1 {
			return content(received)
		}
		late <- received
		return nil
	})
	failed := make(chan error, 10)
	conn := s.dial(NewPeers(coapace.Ebb), options.WithTransmission(1, 100*time.Millisecond, 2), options.WithErrors(func(err error) { failed <- err }))
	s.expect(conn, quick)
	begun, done := time.Now(), make(chan error, 1)
	go func() {
		_, err := get(conn, 10*time.Second)
		done <- err
	}()
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) < 1050*time.Millisecond {
		t.Errorf("given up after %v: %v", time.Since(begun), err)
	}
	all := s.all()[1:]
	if len(all) != 4 {
		t.Fatalf("%d transmissions", len(all))
	}
	if last := all[3].at.Sub(begun); last < 450*time.Millisecond {
		t.Errorf("the last copy departed after %v", last)
	}
	session := conn.Session().(*session)
	session.peer.mutex.Lock()
	if !session.peer.isSilent {
		t.Error("the peer is not silent")
	}
	session.peer.mutex.Unlock()
	// go-coap still waits: an answer is welcome, however late.
	data, err := content(<-late)[0].MarshalWithEncoder(coder.DefaultCoder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.socket.WriteToUDP(data, conn.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestABodySurvivesLosses(t *testing.T) {
	const body = "sixteen bytes are a block of this; "
	s := serve(t, func(received *pool.Message, copies int) []*pool.Message {
		option, err := received.GetOptionUint32(message.Block2)
		if err == nil && copies == 0 {
			return nil // the first transmission of every block after the first is lost
		}
		from := int(option>>4) * 16
		until := min(from+16, len(body))
		answer := content(received)
		answer[0].SetBody(bytes.NewReader([]byte(body[from:until])))
		more := uint32(0)
		if until < len(body) {
			more = 8
		}
		answer[0].SetOptionUint32(message.Block2, option>>4<<4|more)
		return answer
	})
	conn := s.dial(NewPeers(coapace.Ebb))
	if found, err := get(conn, 2*time.Second); found != body || err != nil {
		t.Errorf("%q: %v", found, err)
	}
}

func TestManyRequestsAtOnce(t *testing.T) {
	s := serve(t, lose(3, 7, 8, 20, 21, 22))
	conn := s.dial(NewPeers(coapace.Ebb), options.WithTransmission(16, 2*time.Second, 4), options.WithLimitClientParallelRequest(16))
	s.expect(conn, quick)
	var all sync.WaitGroup
	for i := 0; i < 40; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			s.expect(conn, 10*time.Second)
		}()
	}
	all.Wait()
	session := conn.Session().(*session)
	session.peer.mutex.Lock()
	defer session.peer.mutex.Unlock()
	if len(session.open) != 0 || len(session.marked) != 0 || session.peer.outstanding != 0 {
		t.Errorf("left: %d, %d, %d", len(session.open), len(session.marked), session.peer.outstanding)
	}
}

func TestPeersAreBounded(t *testing.T) {
	peers := NewPeers(coapace.Cocoa)
	for i := 0; i <= maxPeers; i++ {
		peers.peer(fmt.Sprint(i))
	}
	if _, has := peers.Gauges("0"); has || peers.order.Len() != maxPeers || len(peers.byAddress) != maxPeers {
		t.Errorf("%d destinations", peers.order.Len())
	}
	if gauges, has := peers.Gauges("1"); !has || gauges.RTO != 2*time.Second {
		t.Errorf("%+v", gauges)
	}
}

func TestATargetThatIsNone(t *testing.T) {
	if _, err := NewPeers(coapace.Ebb).Dial("no port"); err == nil {
		t.Error("connected")
	}
}
