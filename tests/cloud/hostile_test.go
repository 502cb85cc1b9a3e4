// SPDX-License-Identifier: Apache-2.0

package cloud

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

// hostile is a member who sends the most expensive requests of the API.
type hostile struct {
	t     *testing.T
	url   string
	token string
	calls []costly
	http  http.Client

	mu      sync.Mutex
	answers map[string]int // by kind of request and status
}

// costly is a kind of expensive request.
type costly struct {
	name, method string
	at           func(chance *rand.Rand) (path, body string)
}

// newHostile returns a hostile member who may use the hosts. It has one reservation, which it
// changes all the time.
func newHostile(b *beside, hosts []string) *hostile {
	h := &hostile{t: b.t, url: b.URL, token: b.cloud.Token(b.t, b.demo2.user), answers: make(map[string]int)}
	h.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	own := b.reserve(b.demo2, v1.ReservationRequest{Name: "own", StartTime: new(b.soon(90 * 24 * 3600)), Duration: new(v1.Duration(3600))})
	h.calls = costlyRequests(longFilter(hosts), 7<<10, own)
	return h
}

// longFilter returns a filter of almost 16 KiB and 256 parts that all of the hosts pass.
func longFilter(hosts []string) json.RawMessage {
	var names []string
	for i := range 256 - 2 - len(hosts) {
		names = append(names, fmt.Sprintf("no-host-has-a-name-that-is-as-long-as-this-one-%05d", i))
	}
	return among(append(names, hosts...)...)
}

// costlyRequests returns a member's most expensive calls, each at its limits. The memory of a host
// is largest.
func costlyRequests(filter json.RawMessage, largest int, own v1.Reservation) []costly {
	const day = 24 * 3600
	padding := strings.Repeat(" ", 40<<10) // white space that the service has to read
	at := func(seconds int) string {
		return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
	}
	request := func(begin, end, duration, quantity, memory int) string {
		return fmt.Sprintf(`{"name":"hostile","kind":"instance","start_time":%q,"end_time":%q,"duration":%d,"quantity":%d,"resources":{"memory_mb":%d},"host_properties":%s%s}`,
			at(begin), at(end), duration, quantity, memory, filter, padding)
	}
	year := func(path string, more ...string) string {
		query := url.Values{"start": {at(60)}, "end": {at(360 * day)}}
		for i := 0; i < len(more); i += 2 {
			query.Set(more[i], more[i+1])
		}
		return path + "?" + query.Encode()
	}
	return []costly{
		{"book", "POST", func(c *rand.Rand) (string, string) {
			begin := day + c.IntN(200*day)
			return "/v1/reservations", request(begin, begin+2*day, 60+c.IntN(day), 1+c.IntN(50), 1)
		}},
		{"offer", "POST", func(*rand.Rand) (string, string) {
			return "/v1/reservations?dry_run=true", request(day, 300*day, 29*day, 50, 1)
		}},
		{"refusal", "POST", func(*rand.Rand) (string, string) {
			return "/v1/reservations?dry_run=true", request(day, 200*day, 29*day, 4, largest)
		}},
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

// attack sends one request after the other on its own connection until ctx ends.
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
			h.t.Errorf("the hostile member got no answer: %v", err)
			return
		}
		text, _ := io.ReadAll(answer.Body) // a connection that breaks here does not matter
		answer.Body.Close()
		h.mu.Lock()
		key := fmt.Sprintf("%s %d", call.name, answer.StatusCode)
		if h.answers[key]++; h.answers[key] == 1 && answer.StatusCode >= http.StatusBadRequest {
			h.t.Logf("%s gets the answer %.300s", key, text)
		}
		h.mu.Unlock()
	}
}
