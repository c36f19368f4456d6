// Package coapudp lets go-coap retransmit by a mechanism of Coapace.
//
//	peers := coapudp.NewPeers(coapace.Ebb)
//	conn, err := peers.Dial("device.example:5683") // in place of udp.Dial
//
// The connection is go-coap's own *client.Conn. Confirmable messages that it writes are sent again by the mechanism. go-coap's own timer
// never fires.
package coapudp

import (
	"container/list"
	"sync"
	"time"

	coapace "github.com/coapace/coapace/adapters/go-coap"
)

// maxPeers is the number of destinations that are remembered.
const maxPeers = 1024

// Peers have what a mechanism knows of each destination, for the connections that are made by them: those to one address share it, at the
// same time or one after the other. It remembers the 1,024 addresses that were dialled last. Its methods may be called at the same time.
type Peers struct {
	mechanism coapace.Mechanism
	origin    time.Time
	mutex     sync.Mutex
	byAddress map[string]*list.Element
	order     list.List // of *peer; the one that was dialled last is in front
}

// NewPeers returns no destinations yet, and the mechanism for all of them.
func NewPeers(mechanism coapace.Mechanism) *Peers {
	return &Peers{mechanism: mechanism, origin: time.Now(), byAddress: map[string]*list.Element{}}
}

// Gauges returns the estimates for an address, as net.Addr prints it, and whether it is known.
func (p *Peers) Gauges(address string) (coapace.Gauges, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	element, has := p.byAddress[address]
	if !has {
		return coapace.Gauges{}, false
	}
	peer := element.Value.(*peer)
	peer.mutex.Lock()
	defer peer.mutex.Unlock()
	return peer.state.Gauges(), true
}

// A peer is a destination. Its mutex guards the sessions with it, too.
type peer struct {
	address     string
	mutex       sync.Mutex
	state       coapace.State
	outstanding uint16
	isSilent    bool // the last timeout of an exchange has passed, and nothing came since
}

// peer returns the destination at an address.
func (p *Peers) peer(address string) *peer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if element, has := p.byAddress[address]; has {
		p.order.MoveToFront(element)
		return element.Value.(*peer)
	}
	if p.order.Len() >= maxPeers {
		delete(p.byAddress, p.order.Remove(p.order.Back()).(*peer).address)
	}
	made := &peer{address: address, state: coapace.NewState(p.mechanism)}
	p.byAddress[address] = p.order.PushFront(made)
	return made
}
