package coapudp

import (
	"bytes"
	"net"
	"testing"
	"time"

	coapace "github.com/coapace/coapace/adapters/go-coap"
	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
	coapnet "github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
)

func TestDTLS(t *testing.T) {
	key := func([]byte) ([]byte, error) { return []byte("key"), nil }
	secure := &piondtls.Config{PSK: key, PSKIdentityHint: []byte("identity"), CipherSuites: []piondtls.CipherSuiteID{piondtls.TLS_PSK_WITH_AES_128_CCM_8}}
	listener, err := coapnet.NewDTLSListener("udp4", "127.0.0.1:0", secure)
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	router := mux.NewRouter()
	router.DefaultHandleFunc(func(w mux.ResponseWriter, _ *mux.Message) {
		if requests++; requests == 2 {
			time.Sleep(300 * time.Millisecond)
		}
		if err := w.SetResponse(codes.Content, message.TextPlain, bytes.NewReader([]byte("x"))); err != nil {
			t.Error(err)
		}
	})
	server := dtls.NewServer(options.WithMux(router))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		listener.Close()
	})
	dialled, err := piondtls.Dial("udp4", listener.Addr().(*net.UDPAddr), secure)
	if err != nil {
		t.Fatal(err)
	}
	conn := NewPeers(coapace.EbbPlain).ClientDTLS(dialled, options.WithCloseSocket())
	t.Cleanup(func() { conn.Close() })
	if body, err := get(conn, 5*time.Second); body != "x" || err != nil {
		t.Fatal(body, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := get(conn, 5*time.Second)
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	session, copies := conn.Session().(*session), 0
	session.peer.mutex.Lock()
	for _, e := range session.open {
		copies += len(e.sent) - 1
	}
	session.peer.mutex.Unlock()
	if err := <-done; err != nil || copies == 0 {
		t.Errorf("%d copies: %v", copies, err)
	}
}
