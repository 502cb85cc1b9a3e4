// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// network is the way between the page and the service. It is slow, and in trouble it drops requests and answers, answers
// itself with 502 and 503, and ends streams. The requests of the API alone have trouble: without its scripts there is no
// page. What happens to a request is drawn from its kind and from how many of this kind came before.
type network struct {
	URL string

	onward  *httputil.ReverseProxy
	mu      sync.Mutex
	seed    uint64
	trouble bool
	asked   map[string]int
	fates   []string
	changes []*change // that the page has asked for
	waiting int       // changes on their way
	streams map[context.Context]context.CancelFunc
}

// change is a request of the page that changes something, with the answer of the service. A status of 0 means that it did
// not reach the service.
type change struct {
	method, path, key string
	body              map[string]any
	status            int
	id                string // of the reservation in the answer
	start, end        time.Time
}

// fate is what happens to a request.
type fate struct {
	kind          string // passes, dropped, lost, halved, or a status; a status after "late" comes when the service has acted
	before, after time.Duration
}

// slowNetwork starts a network before the service at target.
func slowNetwork(t *testing.T, target string) *network {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{URL: "http://" + listener.Addr().String(), streams: map[context.Context]context.CancelFunc{}, asked: map[string]int{}}
	n.onward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // the service compares it with the origin
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	server := &http.Server{Handler: n, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return n
}

// begin ends the trouble, and starts the draws again from a seed.
func (n *network) begin(seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seed, n.trouble, n.changes, n.fates = seed, false, nil, nil
	clear(n.asked)
}

// troubled begins or ends the trouble. The streams end when it begins.
func (n *network) troubled(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble = on
	if on {
		for _, end := range n.streams {
			end()
		}
	}
}

// happened returns the changes so far, and what happened to each request; settled is false while a change is on its way.
func (n *network) happened() (changes []change, fates []string, settled bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.changes {
		changes = append(changes, *one)
	}
	return changes, append([]string{}, n.fates...), n.waiting == 0
}

// kindOf returns what tells requests apart whose fate is drawn.
func kindOf(r *http.Request) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if rest != "" {
		kind += "/…"
	}
	if r.URL.Query().Has("dry_run") {
		kind += "?dry_run"
	}
	return r.Method + " " + kind
}

// drawn returns the fate of a request.
func (n *network) drawn(r *http.Request) fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	kind := kindOf(r)
	n.asked[kind]++
	sum := fnv.New64a()
	sum.Write([]byte(kind))
	draws := rand.New(rand.NewPCG(n.seed, sum.Sum64()+uint64(n.asked[kind])))
	one := fate{kind: "passes", before: time.Duration(draws.IntN(40)) * time.Millisecond, after: time.Duration(draws.IntN(20)) * time.Millisecond}
	if n.trouble {
		one.before, one.after = 5*one.before, 10*one.after
		kinds := []string{"passes", "passes", "passes", "dropped", "lost", "lost", "halved", "502", "late 502", "503"}
		if strings.Contains(kind, "dry_run") {
			kinds = append(kinds, slices.Repeat([]string{"passes"}, 10)...) // without an offer nothing is sent
		}
		one.kind = kinds[draws.IntN(len(kinds))]
	}
	n.fates = append(n.fates, kind+": "+one.kind)
	return one
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		n.onward.ServeHTTP(w, r)
		return
	}
	one := n.drawn(r)
	var noted *change
	if r.Method != http.MethodGet && !r.URL.Query().Has("dry_run") {
		noted = n.note(r)
		defer n.ended()
	}
	if !pause(r.Context(), one.before) {
		panic(http.ErrAbortHandler) // the page has given up
	}
	switch {
	case one.kind == "dropped":
		panic(http.ErrAbortHandler)
	case one.kind == "502" || one.kind == "503":
		refuse(w, one.kind)
	case r.URL.Path == "/v1/events":
		n.stream(w, r, one)
	default:
		n.pass(w, r, one, noted)
	}
}

// pass lets the service answer, also if the page gives up meanwhile, and sends the answer, a half of it, or none.
func (n *network) pass(w http.ResponseWriter, r *http.Request, one fate, noted *change) {
	answer := httptest.NewRecorder()
	n.onward.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	if noted != nil {
		n.answered(noted, answer)
	}
	if !pause(r.Context(), one.after) || one.kind == "lost" {
		panic(http.ErrAbortHandler)
	}
	if one.kind == "late 502" {
		refuse(w, "502")
		return
	}
	maps.Copy(w.Header(), answer.Header())
	text := answer.Body.Bytes()
	w.WriteHeader(answer.Code)
	if one.kind == "halved" {
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text) // the page may have given up
}

// stream passes events on, slowly, until the trouble begins; a stream that begins in trouble ends soon.
func (n *network) stream(w http.ResponseWriter, r *http.Request, one fate) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	n.mu.Lock()
	n.streams[ctx] = end
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.streams, ctx)
		n.mu.Unlock()
	}()
	if one.kind == "lost" {
		r.Header.Set("Last-Event-ID", "0") // as of a service that does not know any more what it has told
	}
	if one.kind != "passes" {
		defer time.AfterFunc(one.before+one.after, end).Stop()
	}
	n.onward.ServeHTTP(slowly{w, one.after / 2}, r.WithContext(ctx))
}

// slowly writes each piece after a while.
type slowly struct {
	http.ResponseWriter
	after time.Duration
}

func (s slowly) Write(piece []byte) (int, error) {
	time.Sleep(s.after)
	return s.ResponseWriter.Write(piece)
}

func (s slowly) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// refuse answers as a balancer does whose service is away.
func refuse(w http.ResponseWriter, status string) {
	if status == "503" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "<h1>Service Unavailable</h1>", http.StatusServiceUnavailable)
		return
	}
	http.Error(w, "<h1>Bad Gateway</h1>", http.StatusBadGateway)
}

// pause waits, and returns false if the page gives up meanwhile.
func pause(ctx context.Context, lasts time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lasts):
		return true
	}
}

// note keeps a request that changes something.
func (n *network) note(r *http.Request) *change {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(strings.NewReader(string(text)))
	one := &change{method: r.Method, path: r.URL.Path, key: r.Header.Get("Idempotency-Key")}
	_ = json.Unmarshal(text, &one.body) // a DELETE has none
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = append(n.changes, one)
	n.waiting++
	return one
}

func (n *network) ended() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting--
}

func (n *network) answered(one *change, answer *httptest.ResponseRecorder) {
	var made struct {
		ID         string
		Start, End time.Time
	}
	_ = json.Unmarshal(answer.Body.Bytes(), &made) // a refusal has none of it
	n.mu.Lock()
	defer n.mu.Unlock()
	one.status, one.id, one.start, one.end = answer.Code, made.ID, made.Start, made.End
}
