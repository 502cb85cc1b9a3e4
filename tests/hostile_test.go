package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// hostile is a member who sends the most expensive requests that the API takes.
type hostile struct {
	t     *testing.T
	url   string
	token string
	calls []costly
	http  http.Client

	mu      sync.Mutex
	answers map[string]int // by kind of request and status
}

// costly is a kind of request that costs much.
type costly struct {
	name, method string
	at           func(chance *rand.Rand) (path, body string)
}

// newHostile returns a hostile member who may use the hosts. Before it begins it has one
// reservation, which it changes all the time.
func newHostile(b *beside, hosts []string) *hostile {
	h := &hostile{t: b.t, url: b.url, token: b.cloud.Token(b.t, b.demo2.user), answers: make(map[string]int)}
	h.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	own := b.reserve(b.demo2, v1.ReservationRequest{Name: "own", StartTime: new(b.soon(90 * 24 * 3600)), Duration: new(v1.Duration(3600))})
	h.calls = costlyRequests(longFilter(hosts), own)
	return h
}

// longFilter returns a filter of almost 16 KiB that all of the hosts pass, at its last operand.
func longFilter(hosts []string) json.RawMessage {
	var names []string
	for i, size := 0, 0; size < 15<<10; i++ {
		name := fmt.Sprintf("no-host-has-this-name-%05d", i)
		names, size = append(names, name), size+len(name)+3
	}
	text, err := json.Marshal(append([]any{"in", "$hypervisor_hostname"}, toAny(append(names, hosts...))...))
	if err != nil {
		panic(err)
	}
	return text
}

func toAny(names []string) []any {
	var all []any
	for _, n := range names {
		all = append(all, n)
	}
	return all
}

// costlyRequests are the calls of a member that cost most, each at its bounds.
func costlyRequests(filter json.RawMessage, own v1.Reservation) []costly {
	const day = 24 * 3600
	padding := strings.Repeat(" ", 40<<10) // white space that has to be read
	request := func(chance *rand.Rand, duration, quantity int) string {
		begin := time.Now().Add(time.Duration(100*day+chance.IntN(200*day)) * time.Second).UTC().Format(time.RFC3339)
		return fmt.Sprintf(`{"name":"hostile","kind":"instance","start_time":%q,"duration":%d,"quantity":%d,"resources":{"memory_mb":1},"policy":"best-fit","host_properties":%s%s}`,
			begin, duration, quantity, filter, padding)
	}
	year := func(path string, more ...string) string {
		query := url.Values{"start": {time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}, "end": {time.Now().Add(360 * day * time.Second).UTC().Format(time.RFC3339)}}
		for i := 0; i < len(more); i += 2 {
			query.Set(more[i], more[i+1])
		}
		return path + "?" + query.Encode()
	}
	return []costly{
		{"book", "POST", func(c *rand.Rand) (string, string) {
			return "/v1/reservations", request(c, 60+c.IntN(day), 1+c.IntN(50))
		}},
		{"offer", "POST", func(c *rand.Rand) (string, string) { return "/v1/reservations?dry_run=true", request(c, 60*day, 50) }},
		{"refusal", "POST", func(c *rand.Rand) (string, string) { return "/v1/reservations", request(c, 100*day, 1_000_000) }},
		{"availability", "GET", func(*rand.Rand) (string, string) {
			return year("/v1/availability", "duration", "60", "host_properties", string(filter)), ""
		}},
		{"calendar", "GET", func(*rand.Rand) (string, string) { return year("/v1/calendar"), "" }},
		{"change", "PATCH", func(c *rand.Rand) (string, string) {
			end := own.End.Add(time.Duration(c.IntN(day)) * time.Second).UTC().Format(time.RFC3339)
			return "/v1/reservations/" + own.ID, fmt.Sprintf(`{"end_time":%q%s}`, end, padding)
		}},
		{"list", "GET", func(*rand.Rand) (string, string) { return "/v1/reservations?limit=1000", "" }},
		{"iCalendar", "GET", func(*rand.Rand) (string, string) { return "/v1/reservations.ics", "" }},
		{"hosts", "GET", func(*rand.Rand) (string, string) { return "/v1/hosts?limit=1000", "" }},
	}
}

// attack sends one request after the other on a connection of its own until ctx ends.
func (h *hostile) attack(ctx context.Context, i int) {
	chance := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
	for n := i; ctx.Err() == nil; n++ {
		call := h.calls[n%len(h.calls)]
		path, body := call.at(chance)
		request, err := http.NewRequestWithContext(h.t.Context(), call.method, h.url+path, strings.NewReader(body))
		if err != nil {
			h.t.Error(err)
			return
		}
		request.Header.Set("X-Auth-Token", h.token)
		answer, err := h.http.Do(request)
		if err != nil {
			h.t.Errorf("the hostile member was not answered: %v", err)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body) // a connection that breaks here is none of this test's
		answer.Body.Close()
		h.mu.Lock()
		h.answers[fmt.Sprintf("%s %d", call.name, answer.StatusCode)]++
		h.mu.Unlock()
	}
}
