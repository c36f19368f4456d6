// client METHOD URI [non] [block=BYTES] [observe=N] [identity=TEXT] [key=TEXT]: one request with go-coap.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/bits"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/net/blockwise"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/udp"
)

// go-coap has no names for FETCH, PATCH and iPATCH, but sends their codes.
var methods = map[string]codes.Code{
	"GET": codes.GET, "POST": codes.POST, "PUT": codes.PUT, "DELETE": codes.DELETE, "FETCH": 5, "PATCH": 6, "iPATCH": 7,
}

func show(response *pool.Message) {
	body, err := response.ReadBody()
	check(err)
	code := response.Code()
	fmt.Printf("%d.%02d %x\n", code>>5, code&31, body)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Returns the size exponent of the wanted blocks, and whether there is one.
func szx(flags map[string]string) (blockwise.SZX, bool) {
	text, found := flags["block"]
	size, err := strconv.Atoi(text)
	if !found || err != nil {
		return blockwise.SZX1024, false
	}
	return blockwise.SZX(bits.Len(uint(size)) - 5), true
}

func dial(uri *url.URL, flags map[string]string) (mux.Conn, error) {
	size, _ := szx(flags)
	// The capabilities of the server have to be known before the request.
	greeted := options.WithCSMExchangeTimeout(5 * time.Second)
	blocks := options.WithBlockwise(true, size, 10*time.Second)
	switch uri.Scheme {
	case "coap":
		return udp.Dial(uri.Host, blocks)
	case "coaps":
		return dtls.Dial(uri.Host, &piondtls.Config{
			PSK:             func([]byte) ([]byte, error) { return []byte(flags["key"]), nil },
			PSKIdentityHint: []byte(flags["identity"]),
			CipherSuites:    []piondtls.CipherSuiteID{piondtls.TLS_PSK_WITH_AES_128_CCM_8},
		}, blocks)
	case "coaps+tcp":
		pem, err := os.ReadFile(filepath.Join(os.Getenv("CERTIFICATES"), "ca.pem"))
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate in ca.pem")
		}
		return tcp.Dial(uri.Host, options.WithTLS(&tls.Config{RootCAs: roots, NextProtos: []string{"coap"}}), greeted)
	default:
		return tcp.Dial(uri.Host, greeted)
	}
}

func main() {
	uri, err := url.Parse(os.Args[2])
	check(err)
	flags := map[string]string{}
	for _, word := range os.Args[3:] {
		name, value, _ := strings.Cut(word, "=")
		flags[name] = value
	}
	payload, err := io.ReadAll(os.Stdin)
	check(err)
	conn, err := dial(uri, flags)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if os.Args[1] == "PING" {
		check(conn.Ping(ctx))
		fmt.Println("0.00")
		return
	}
	if count, found := flags["observe"]; found {
		follow(ctx, conn, uri.Path, count)
		return
	}
	request, err := conn.NewGetRequest(ctx, uri.Path)
	check(err)
	request.SetCode(methods[os.Args[1]])
	if _, found := flags["non"]; found {
		request.SetType(message.NonConfirmable)
	}
	if uri.RawQuery != "" {
		request.AddQuery(uri.RawQuery)
	}
	if size, wished := szx(flags); wished && len(payload) == 0 {
		request.SetOptionUint32(message.Block2, uint32(size))
	}
	if len(payload) > 0 {
		request.SetContentFormat(message.TextPlain)
		request.SetBody(bytes.NewReader(payload))
	}
	response, err := conn.Do(request)
	check(err)
	show(response)
	time.Sleep(100 * time.Millisecond) // until pending acknowledgements are sent
}

func follow(ctx context.Context, conn mux.Conn, path, count string) {
	left, err := strconv.Atoi(count)
	check(err)
	all := make(chan struct{})
	observation, err := conn.Observe(ctx, path, func(notification *pool.Message) {
		if left--; left >= 0 {
			show(notification)
		}
		if left == 0 {
			close(all)
		}
	})
	check(err)
	<-all
	check(observation.Cancel(ctx))
}
