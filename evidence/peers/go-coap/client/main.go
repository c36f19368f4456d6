// client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, makes N GETs one after the other, and prints the
// number answered with the payload.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/udp"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: client ADDRESS PORT PATH PAYLOAD")
	}
	payload := []byte(os.Args[4])
	client, err := udp.Dial(net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	var count int
	for {
		if _, err := fmt.Scan(&count); err != nil {
			return
		}
		answered := 0
		for ; count > 0; count-- {
			response, err := client.Get(context.Background(), "/"+os.Args[3])
			if err != nil {
				continue
			}
			body, err := response.ReadBody()
			if err == nil && response.Code() == codes.Content && bytes.Equal(body, payload) {
				answered++
			}
			client.ReleaseMessage(response)
		}
		fmt.Println(answered)
	}
}
