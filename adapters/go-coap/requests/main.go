// requests MECHANISM HOST:PORT COUNT CLIENTS makes COUNT confirmable GETs of / for each of CLIENTS clients, one after another. It prints
// "CLIENT MILLISECONDS ok" or "CLIENT MILLISECONDS failed" as each ends. The mechanism "stock" is go-coap as it ships.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	coapace "github.com/coapace/coapace/adapters/go-coap"
	"github.com/coapace/coapace/adapters/go-coap/coapudp"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/udp"
	"github.com/plgd-dev/go-coap/v3/udp/client"
)

// patience is MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2). In go-coap nothing but its context ends a request.
const patience = 93 * time.Second

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: requests MECHANISM HOST:PORT COUNT CLIENTS")
	}
	count, err := strconv.Atoi(os.Args[3])
	clients, err2 := strconv.Atoi(os.Args[4])
	if err = errors.Join(err, err2); err != nil {
		log.Fatal(err)
	}
	mechanism := coapace.Default
	if os.Args[1] != "stock" {
		if mechanism, err = coapace.Parse(os.Args[1]); err != nil {
			log.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for number := 0; number < clients; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			conn, err := dial(os.Args[1] == "stock", mechanism, os.Args[2])
			if err != nil {
				log.Fatal(err)
			}
			defer conn.Close()
			for i := 0; i < count; i++ {
				fmt.Print(request(conn, number))
			}
		}(number)
	}
	all.Wait()
}

// dial makes a client. Each has estimates of its own, like another device.
func dial(isStock bool, mechanism coapace.Mechanism, target string) (*client.Conn, error) {
	quiet := options.WithErrors(func(error) {})
	if isStock {
		return udp.Dial(target, quiet)
	}
	return coapudp.NewPeers(mechanism).Dial(target, quiet)
}

// request makes a request, and returns its line.
func request(conn *client.Conn, number int) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun, result := time.Now(), "ok"
	if response, err := conn.Get(ctx, "/"); err != nil {
		result = "failed"
	} else {
		conn.ReleaseMessage(response)
	}
	return fmt.Sprintf("%d %.3f %s\n", number, float64(time.Since(begun).Microseconds())/1000, result)
}
