// SPDX-License-Identifier: Apache-2.0

// Package mysqlproxy stands between a client and a MariaDB or MySQL server and makes commits fail
// as networks and clusters make them fail. It understands enough of the protocol to see the
// statements of an unencrypted connection (https://mariadb.com/kb/en/0-packet/).
package mysqlproxy

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Kind is a way in which a commit fails.
type Kind int

// The kinds.
const (
	// Deadlock rolls the transaction back and answers 1213, as Galera does.
	Deadlock Kind = iota
	// LostAnswer lets the server commit and cuts the connection before its answer.
	LostAnswer
	// LostCommit cuts the connection before the server gets the COMMIT.
	LostCommit
	// Frozen holds the COMMIT and all answers of the server back until Thaw: the server sees a
	// client that is frozen in the middle of its transaction.
	Frozen
)

// Proxy accepts connections on loopback and forwards them.
type Proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]bool
	kind     Kind
	every    int
	seen     int
	failed   int
	refusing bool
	refused  int
	thawed   chan struct{} // closed by Thaw
}

// Start returns a proxy in front of target, "host:port". The end of the test stops it.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, open: make(map[net.Conn]bool), thawed: make(chan struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// Addr returns the address for clients, "host:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// FailCommits makes every n-th commit from now on fail; 0 means none. Commits of transactions that
// only read never fail and do not count.
func (p *Proxy) FailCommits(kind Kind, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind, p.every, p.seen = kind, n, 0
}

// Failed counts the commits that were made to fail.
func (p *Proxy) Failed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Refuse answers every statement except SET with 1047 from now on and keeps it from the server,
// also COMMIT and ROLLBACK: a Galera node without a majority does so and leaves transactions open.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = on
}

// Refused counts the refused statements.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// refuses decides whether to refuse a statement, and counts it.
func (p *Proxy) refuses(statement string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refusing || strings.HasPrefix(statement, "SET ") {
		return false
	}
	p.refused++
	return true
}

// Thaw lets all frozen connections continue.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.thawed)
	p.thawed = make(chan struct{})
}

// thaw returns the channel that the next Thaw closes.
func (p *Proxy) thaw() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

func (p *Proxy) stop() {
	p.listener.Close()
	p.Thaw()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// keep records an open connection, for Cut.
func (p *Proxy) keep(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = true
}

func (p *Proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
	conn.Close()
}

// fails decides whether a commit fails, and how.
func (p *Proxy) fails() (Kind, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.every == 0 {
		return 0, false
	}
	p.seen++
	if p.seen%p.every != 0 {
		return 0, false
	}
	p.failed++
	return p.kind, true
}

func (p *Proxy) serve(client net.Conn) {
	p.keep(client)
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.keep(server)
	defer p.drop(server)
	s := &session{proxy: p, client: client, server: server}
	p.wg.Go(func() {
		s.answers()
		client.Close()
		server.Close()
	})
	s.questions()
}

// session is a connection. A client sends its next statement only after the answer, so the next
// answer is determined before the server sends it.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	readOnly       bool

	mu     sync.Mutex
	next   Kind
	fail   bool
	frozen <-chan struct{} // until it is closed
}

// freeze holds the session until the next Thaw.
func (s *session) freeze() {
	s.mu.Lock()
	s.frozen = s.proxy.thaw()
	s.mu.Unlock()
	s.await()
}

// await returns when the session is not frozen.
func (s *session) await() {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// questions forwards what the client sends, until a commit must be lost.
func (s *session) questions() {
	for {
		packet, err := read(s.client)
		if err != nil {
			return
		}
		statement, isQuery := query(packet)
		if isQuery && s.proxy.refuses(statement) {
			if _, err := s.client.Write(notPrepared); err != nil {
				return
			}
			continue
		}
		if isQuery && strings.HasPrefix(statement, "START TRANSACTION") {
			s.readOnly = strings.Contains(statement, "READ ONLY")
		}
		if isQuery && statement == "COMMIT" && !s.readOnly {
			kind, fail := s.proxy.fails()
			if fail && kind == LostCommit {
				return
			}
			if fail && kind == Frozen {
				s.freeze()
				fail = false
			}
			if fail && kind == Deadlock {
				packet = rollback
			}
			s.mu.Lock()
			s.next, s.fail = kind, fail
			s.mu.Unlock()
		}
		if _, err := s.server.Write(packet); err != nil {
			return
		}
	}
}

// answers forwards what the server sends, until an answer must be lost.
func (s *session) answers() {
	for {
		packet, err := read(s.server)
		s.await()
		if err != nil {
			return
		}
		s.mu.Lock()
		kind, fail := s.next, s.fail
		s.fail = false
		s.mu.Unlock()
		if fail && kind == LostAnswer {
			return
		}
		if fail && kind == Deadlock {
			packet = deadlock
		}
		if _, err := s.client.Write(packet); err != nil {
			return
		}
	}
}

const (
	header  = 4
	comText = 0x03 // COM_QUERY
)

var (
	rollback = packetOf(0, append([]byte{comText}, "ROLLBACK"...))
	deadlock = packetOf(1, append([]byte{0xff, 1213 & 0xff, 1213 >> 8},
		"#40001Deadlock found when trying to get lock; try restarting transaction"...))
	notPrepared = packetOf(1, append([]byte{0xff, 1047 & 0xff, 1047 >> 8},
		"#08S01WSREP has not yet prepared node for application use"...))
)

// packetOf returns a packet: three bytes of length, its number, the payload.
func packetOf(number byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}, payload...)
}

func read(from io.Reader) ([]byte, error) {
	var head [header]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	packet := bytes.NewBuffer(head[:])
	if _, err := io.CopyN(packet, from, int64(length)); err != nil {
		return nil, err
	}
	return packet.Bytes(), nil
}

// query returns the text of a statement that begins in packet.
func query(packet []byte) (statement string, ok bool) {
	const number = header - 1
	if len(packet) <= header || packet[number] != 0 || packet[header] != comText {
		return "", false
	}
	return string(packet[header+1:]), true
}
