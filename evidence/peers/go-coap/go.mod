module coapace/evidence/peers/go-coap

go 1.20

require github.com/plgd-dev/go-coap/v3 v3.4.1
