package coapudp

import (
	"context"
	"fmt"
	"net"
	"time"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	dtlsserver "github.com/plgd-dev/go-coap/v3/dtls/server"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	coapnet "github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/net/blockwise"
	"github.com/plgd-dev/go-coap/v3/net/monitor/inactivity"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/udp"
	"github.com/plgd-dev/go-coap/v3/udp/client"
	"github.com/plgd-dev/go-coap/v3/udp/server"
)

// Dial connects to a target, "host:port", as udp.Dial does, with the same options.
func (p *Peers) Dial(target string, opts ...udp.Option) (*client.Conn, error) {
	cfg := configure(client.DefaultConfig, opts)
	dialled, err := cfg.Dialer.DialContext(cfg.Ctx, cfg.Net, target)
	if err != nil {
		return nil, err
	}
	conn, ok := dialled.(*net.UDPConn)
	if !ok {
		return nil, fmt.Errorf("%s is not a network of UDP: the connection is a %T", cfg.Net, dialled)
	}
	return p.Client(conn, append(opts[:len(opts):len(opts)], options.WithCloseSocket())...), nil
}

// Client makes a connection of a connected socket, as udp.Client does, with the same options.
func (p *Peers) Client(conn *net.UDPConn, opts ...udp.Option) *client.Conn {
	cfg := configure(client.DefaultConfig, opts)
	remote, _ := conn.RemoteAddr().(*net.UDPAddr)
	socket := coapnet.NewUDPConn(cfg.Net, conn, coapnet.WithErrors(cfg.Errors))
	return p.connect(server.NewSession(cfg.Ctx, context.Background(), socket, remote, cfg.MaxMessageSize, cfg.MTU, cfg.CloseSocket), cfg)
}

// ClientDTLS makes a connection of one of DTLS, as dtls.Client does, with the same options.
func (p *Peers) ClientDTLS(conn *piondtls.Conn, opts ...udp.Option) *client.Conn {
	cfg := configure(dtls.DefaultConfig, opts)
	return p.connect(dtlsserver.NewSession(cfg.Ctx, coapnet.NewConn(conn), cfg.MaxMessageSize, cfg.MTU, cfg.CloseSocket), cfg)
}

// connect makes a connection of a session, as both do.
func (p *Peers) connect(inner client.Session, cfg client.Config) *client.Conn {
	report := cfg.Errors
	cfg.Errors = func(err error) { report(fmt.Errorf("%v: %w", inner.RemoteAddr(), err)) }
	connection := client.NewConnWithOpts(p.session(inner, &cfg), &cfg,
		client.WithBlockWise(func(conn *client.Conn) *blockwise.BlockWise[*client.Conn] {
			if !cfg.BlockwiseEnable {
				return nil
			}
			return blockwise.New(conn, cfg.BlockwiseTransferTimeout, cfg.Errors,
				func(token message.Token) (*pool.Message, bool) { return conn.GetObservationRequest(token) })
		}),
		client.WithInactivityMonitor(cfg.CreateInactivityMonitor()),
		client.WithRequestMonitor(cfg.RequestMonitor))
	cfg.PeriodicRunner(func(now time.Time) bool {
		connection.CheckExpirations(now)
		return connection.Context().Err() == nil
	})
	go func() {
		if err := connection.Run(); err != nil {
			cfg.Errors(err)
		}
	}()
	return connection
}

// configure returns a configuration without gaps.
func configure(cfg client.Config, opts []udp.Option) client.Config {
	for _, option := range opts {
		option.UDPClientApply(&cfg)
	}
	report := cfg.Errors
	cfg.Errors = func(err error) {
		if report != nil && !coapnet.IsCancelOrCloseError(err) {
			report(err)
		}
	}
	if cfg.CreateInactivityMonitor == nil {
		cfg.CreateInactivityMonitor = func() client.InactivityMonitor { return inactivity.NewNilMonitor[*client.Conn]() }
	}
	if cfg.MessagePool == nil {
		cfg.MessagePool = pool.New(0, 0)
	}
	return cfg
}
