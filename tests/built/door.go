// SPDX-License-Identifier: Apache-2.0

package built

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Door is a TCP proxy before Keystone that a test can shut.
type Door struct {
	t      *testing.T
	target string
	URL    string // of Keystone, through the door
	Passed atomic.Int64

	mu       sync.Mutex
	listener net.Listener
	through  []net.Conn
}

// newDoor returns an open door before the Keystone at authURL.
func newDoor(t *testing.T, authURL string) *Door {
	t.Helper()
	at, err := url.Parse(authURL)
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{t: t, target: at.Host}
	d.openAt("127.0.0.1:0")
	at.Host = d.listener.Addr().String()
	d.URL = at.String()
	t.Cleanup(d.Shut)
	return d
}

// Open accepts connections again, at the same address.
func (d *Door) Open() {
	d.t.Helper()
	d.openAt(d.listener.Addr().String())
}

func (d *Door) openAt(address string) {
	d.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.listener = listener
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			d.Passed.Add(1)
			go d.pass(from)
		}
	}()
}

func (d *Door) pass(from net.Conn) {
	to, err := net.Dial("tcp", d.target)
	if err != nil {
		from.Close()
		return
	}
	d.mu.Lock()
	d.through = append(d.through, from, to)
	d.mu.Unlock()
	go func() {
		_, _ = io.Copy(to, from) // one side hangs up
		to.Close()
	}()
	_, _ = io.Copy(from, to)
	from.Close()
}

// Shut refuses connections and closes the existing ones.
func (d *Door) Shut() {
	d.listener.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, connection := range d.through {
		connection.Close()
	}
	d.through = nil
}
