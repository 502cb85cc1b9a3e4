// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// relay is a connection to a broker that the test can cut.
type relay struct {
	url     string // the broker's, through the relay
	broker  string
	address string
	tls     *tls.Config // for incoming connections; nil means plain TCP

	mu       sync.Mutex
	listener net.Listener
	wires    []net.Conn
	silent   bool
	asked    bool          // since then the broker has received a message
	silenced chan struct{} // receives a value when the relay drops the broker's answer
}

func newRelay(t *testing.T, url string) *relay {
	t.Helper()
	u, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{broker: u.Hosts[0].Address(), address: "127.0.0.1:0", silenced: make(chan struct{}, 100)}
	r.open(t)
	r.url = strings.Replace(url, r.broker, r.address, 1)
	t.Cleanup(r.close)
	return r
}

// open accepts connections, on the same address as before.
func (r *relay) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	if r.tls != nil {
		listener = tls.NewListener(listener, r.tls)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.address = listener, listener.Addr().String()
	go func() {
		for {
			wire, err := listener.Accept()
			if err != nil {
				return
			}
			go r.carry(wire)
		}
	}()
}

func (r *relay) carry(wire net.Conn) {
	defer wire.Close()
	broker, err := net.Dial("tcp", r.broker)
	if err != nil {
		return
	}
	defer broker.Close()
	r.mu.Lock()
	r.wires = append(r.wires, wire, broker)
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(broker, io.TeeReader(wire, r))
		broker.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := broker.Read(buffer)
		if err != nil {
			return
		}
		if r.swallows() {
			continue
		}
		if _, err := wire.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Write records what the broker receives.
func (r *relay) Write(sent []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = r.asked || r.silent && bytes.Contains(sent, []byte("oslo.message"))
	return len(sent), nil
}

// swallows reports whether the relay drops what the broker sends.
func (r *relay) swallows() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent && r.asked {
		select {
		case r.silenced <- struct{}{}:
		default:
		}
	}
	return r.silent
}

// silence drops what the broker sends until the connections are cut.
func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = true
}

func (r *relay) awaitSilenced(t *testing.T) {
	t.Helper()
	select {
	case <-r.silenced:
	case <-time.After(patience):
		t.Fatal("the broker sends nothing")
	}
}

// cut ends all connections; the relay accepts new ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent, r.asked = false, false
	for _, wire := range r.wires {
		wire.Close()
	}
	r.wires = nil
}

// close ends all connections and accepts no more.
func (r *relay) close() {
	r.mu.Lock()
	r.listener.Close()
	r.mu.Unlock()
	r.cut()
}

// redeclare deletes a queue and creates it again as a durable one.
func redeclare(t *testing.T, url, queue string) {
	t.Helper()
	conn, err := amqp091.Dial(strings.Replace(url, "rabbit://", "amqp://", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}
