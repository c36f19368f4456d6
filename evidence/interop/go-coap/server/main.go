// server PORT IDENTITY KEY: the resources of evidence/interop with go-coap, over UDP and TCP, and over DTLS and TLS at the next port.
package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	piondtls "github.com/pion/dtls/v3"
	coap "github.com/plgd-dev/go-coap/v3"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
)

// The stored values, and the observers of the clock.
type resources struct {
	sync.Mutex
	stored map[string][]byte
	count  int
	// The observations of the clock by address and token. Closing a channel ends its observation.
	observers map[string]chan struct{}
}

func large(size int) []byte {
	var text strings.Builder
	for offset := 0; offset < size; offset += 64 {
		fmt.Fprintf(&text, "%-63d\n", offset)
	}
	return []byte(text.String()[:size])
}

func seconds() []byte {
	return []byte(strconv.FormatInt(time.Now().Unix(), 10))
}

// Returns the number in an argument of the query.
func argument(r *mux.Message, name string, otherwise int) int {
	queries, _ := r.Queries()
	for _, query := range queries {
		if text, found := strings.CutPrefix(query, name+"="); found {
			if number, err := strconv.Atoi(text); err == nil {
				return number
			}
		}
	}
	return otherwise
}

// Copies a message, so that it can be sent later.
func later(conn mux.Conn, token message.Token, payload []byte, observe int) {
	response := conn.AcquireMessage(conn.Context())
	defer conn.ReleaseMessage(response)
	response.SetCode(codes.Content)
	response.SetToken(token)
	response.SetContentFormat(message.TextPlain)
	if observe >= 0 {
		response.SetObserve(uint32(observe))
	}
	response.SetBody(bytes.NewReader(payload))
	if err := conn.WriteMessage(response); err != nil {
		log.Print(err)
	}
}

func (all *resources) clock(w mux.ResponseWriter, r *mux.Message) (codes.Code, []byte, []message.Option) {
	observe, err := r.Observe()
	if err != nil {
		return codes.Content, seconds(), nil
	}
	conn, token := w.Conn(), r.Token()
	who := conn.RemoteAddr().String() + token.String()
	if end, found := all.observers[who]; found {
		close(end)
		delete(all.observers, who)
	}
	if observe != 0 {
		return codes.Content, seconds(), nil
	}
	end := make(chan struct{})
	all.observers[who] = end
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for number := 3; ; number++ {
			select {
			case <-end:
				return
			case <-conn.Done():
				return
			case <-ticks.C:
				later(conn, token, seconds(), number)
			}
		}
	}()
	number := make([]byte, 4)
	length, _ := message.EncodeUint32(number, 2)
	return codes.Content, seconds(), []message.Option{{ID: message.Observe, Value: number[:length]}}
}

func (all *resources) store(path string, r *mux.Message, body []byte) (codes.Code, []byte) {
	payload, known := all.stored[path]
	switch {
	case r.Code() == codes.PUT:
		all.stored[path] = body
		if known {
			return codes.Changed, nil
		}
		return codes.Created, nil
	case r.Code() == codes.DELETE:
		delete(all.stored, path)
		return codes.Deleted, nil
	case known:
		return codes.Content, payload
	}
	return codes.NotFound, nil
}

func (all *resources) ServeCOAP(w mux.ResponseWriter, r *mux.Message) {
	all.Lock()
	defer all.Unlock()
	path, err := r.Path()
	if err != nil {
		path = "/"
	}
	body, err := r.ReadBody()
	if err != nil && !errors.Is(err, io.EOF) {
		log.Print(err)
	}
	code, payload, format, options := codes.NotFound, []byte(nil), message.TextPlain, []message.Option(nil)
	switch {
	case path == "/hello":
		code, payload = codes.Content, []byte("Hello")
	case path == "/echo":
		code, payload = codes.Changed, body
		if r.Code() == 5 {
			code = codes.Content
		}
	case path == "/delayed":
		// Returning without a response makes go-coap acknowledge the request.
		conn, token, delay := w.Conn(), bytes.Clone(r.Token()), argument(r, "s", 5)
		time.AfterFunc(time.Duration(delay)*time.Second, func() {
			later(conn, token, []byte(fmt.Sprintf("%d s later", delay)), -1)
		})
		return
	case path == "/large":
		code, payload = codes.Content, large(argument(r, "bytes", 8192))
	case path == "/counter":
		code = codes.Content
		if r.Code() == codes.POST {
			code = codes.Changed
			all.count++
		}
		payload = []byte(strconv.Itoa(all.count))
	case path == "/clock":
		code, payload, options = all.clock(w, r)
	case path == "/.well-known/core":
		code, format = codes.Content, message.AppLinkFormat
		payload = []byte("</hello>,</echo>,</delayed>,</large>,</counter>,</clock>;obs,</store>")
	case strings.HasPrefix(path, "/store/"):
		code, payload = all.store(path, r, body)
	}
	if err := w.SetResponse(code, format, bytes.NewReader(payload), options...); err != nil {
		log.Print(err)
	}
}

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	identity, key := os.Args[2], []byte(os.Args[3])
	all := &resources{stored: map[string][]byte{}, observers: map[string]chan struct{}{}}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	secured := &piondtls.Config{
		PSK: func(asked []byte) ([]byte, error) {
			if string(asked) != identity {
				return nil, errors.New("unknown identity")
			}
			return key, nil
		},
		PSKIdentityHint: []byte("go-coap"),
		CipherSuites:    []piondtls.CipherSuiteID{piondtls.TLS_PSK_WITH_AES_128_CCM_8},
	}
	folder := os.Getenv("CERTIFICATES")
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.pem"), filepath.Join(folder, "server.key"))
	if err != nil {
		log.Fatal(err)
	}
	certified := &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"coap"}}
	go func() { log.Fatal(coap.ListenAndServe("udp", at(port), all)) }()
	go func() { log.Fatal(coap.ListenAndServe("tcp", at(port), all)) }()
	go func() { log.Fatal(coap.ListenAndServeDTLS("udp", at(port+1), secured, all)) }()
	go func() { log.Fatal(coap.ListenAndServeTCPTLS("tcp", at(port+1), certified, all)) }()
	time.Sleep(200 * time.Millisecond) // go-coap does not report when it listens
	fmt.Println("ready")
	select {}
}
