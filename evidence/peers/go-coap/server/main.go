// server ADDRESS PORT PATH PAYLOAD: one resource.
package main

import (
	"bytes"
	"log"
	"net"
	"os"

	coap "github.com/plgd-dev/go-coap/v3"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: server ADDRESS PORT PATH PAYLOAD")
	}
	payload := []byte(os.Args[4])
	router := mux.NewRouter()
	err := router.Handle("/"+os.Args[3], mux.HandlerFunc(func(w mux.ResponseWriter, _ *mux.Message) {
		if err := w.SetResponse(codes.Content, message.TextPlain, bytes.NewReader(payload)); err != nil {
			log.Print(err)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(coap.ListenAndServe("udp", net.JoinHostPort(os.Args[1], os.Args[2]), router))
}
