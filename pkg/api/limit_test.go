// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// limited allows a project three requests at once and one more every ten seconds, and an address
// as many wrong tokens.
func limited(o *api.Options) {
	o.RequestsPerSecond, o.Burst = 0.1, 3
	o.FailuresPerSecond, o.FailureBurst = 0.1, 3
}

func TestAProjectMaySendSoManyRequests(t *testing.T) {
	c := start(t, setup{adjust: limited})
	for range 3 {
		c.demo.names("/v1/reservations?")
	}
	a := c.demo.get("/v1/reservations")
	if e := wantError(t, a, http.StatusTooManyRequests); a.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After is %q: %+v", a.header.Get("Retry-After"), e)
	}
	wantError(t, c.reader.get("/v1/hosts"), http.StatusTooManyRequests) // the same project
	for name, free := range map[string]answer{
		"another project": c.other.get("/v1/hosts"), "an admin": c.admin.get("/v1/hosts"), "the health check": c.nobody.get("/healthcheck"),
		"a scheduler": caller{c, "demo/service"}.post("/v1/scheduler/filter", `{"hosts": []}`),
		"the plugin":  caller{c, "demo/service"}.post("/v1/scheduler/weigh", `{"hosts": []}`),
	} {
		if free.status != http.StatusOK {
			t.Errorf("%s: got %v", name, free)
		}
	}
	c.wait(9)
	if a := c.demo.post("/v1/reservations", `{"name": "r", "duration": 60}`); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" {
		t.Errorf("after nine seconds: %q, %v", a.header.Get("Retry-After"), a)
	}
	if len(c.stored()) > 0 {
		t.Error("what was refused was done")
	}
	c.wait(1)
	c.demo.book(`{"name": "r", "duration": 60}`)
	if metrics := string(c.nobody.get("/metrics").body); !strings.Contains(metrics, "almanac_http_rate_limited_total 3\n") {
		t.Errorf("the metrics are\n%s", metrics)
	}
}

func TestASignedFeedHasALimitOfItsOwn(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.FeedSecret = "secret" }})
	link := strings.TrimPrefix(want[struct{ URL string }](t, c.demo.get("/v1/feed"), http.StatusOK).URL, c.url)
	for range 3 {
		readCalendar(t, c.nobody.get(link))
	}
	wantError(t, c.nobody.get(link), http.StatusTooManyRequests)
	c.demo.names("/v1/reservations?")
}

func TestWithoutALimitThereIsNone(t *testing.T) {
	c := start(t, setup{})
	for range 50 {
		c.demo.names("/v1/reservations?")
		wantError(t, c.nobody.get("/v1/hosts"), http.StatusUnauthorized)
	}
}

// counting counts the calls of a validator.
type counting struct {
	api.Validator
	asked atomic.Int64
	// before, unless nil, runs before each answer.
	before func()
}

func (v *counting) Authenticate(r *http.Request) (keystone.Token, error) {
	v.asked.Add(1)
	if v.before != nil {
		v.before()
	}
	return v.Validator.Authenticate(r)
}

func TestAnAddressWithWrongTokensIsHeldOff(t *testing.T) {
	validator := &counting{Validator: legible{}}
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.Authenticator = api.Keystone{Tokens: validator} }})
	wrong := caller{c, "expired"}
	for range 3 {
		c.admin.names("/v1/reservations?") // a right token costs nothing
		wantError(t, wrong.get("/v1/hosts"), http.StatusUnauthorized)
	}
	before := validator.asked.Load()
	for _, who := range []caller{wrong, c.demo} { // demo's token is not validated yet
		a := who.get("/v1/hosts")
		if wantError(t, a, http.StatusTooManyRequests); a.header.Get("Retry-After") != "10" || validator.asked.Load() != before {
			t.Errorf("Retry-After is %q; the validator was called %d more times", a.header.Get("Retry-After"), validator.asked.Load()-before)
		}
	}
	c.admin.names("/v1/reservations?")                               // its token is known, which costs nothing
	wantError(t, c.nobody.get("/v1/hosts"), http.StatusUnauthorized) // a missing token costs nothing either
	c.wait(10)
	wantError(t, wrong.get("/v1/hosts"), http.StatusUnauthorized)
	if metrics := string(c.nobody.get("/metrics").body); !strings.Contains(metrics, `almanac_auth_failures_total{kind="unauthorized"} 5`) { // including the one without a token
		t.Errorf("the metrics are\n%s", metrics)
	}
}

func TestTokensThatAreNotWrongCountForNoAddress(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.RequestsPerSecond = 0 }})
	for range 10 {
		c.demo.names("/v1/reservations?")                                // this token is validated each time
		wantError(t, c.nobody.get("/v1/hosts"), http.StatusUnauthorized) // this needs no validation
	}
}

func TestManyWrongTokensAtOnceCostNoMoreQuestionsThanInARow(t *testing.T) {
	const many = 20
	var decided, group sync.WaitGroup // no request is answered before each is validated or refused
	decided.Add(many)
	validator := &counting{Validator: legible{}, before: func() { decided.Done(); decided.Wait() }}
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.Authenticator = api.Keystone{Tokens: validator} }})
	for range many {
		group.Go(func() {
			if (caller{c, "expired"}).get("/v1/hosts").status == http.StatusTooManyRequests {
				decided.Done()
			}
		})
	}
	group.Wait()
	if asked := validator.asked.Load(); asked != 3 {
		t.Errorf("of 20 at once %d were validated, want 3", asked)
	}
}

// from sends a wrong token as if through a proxy.
func (c *cloud) from(addresses string) answer {
	return caller{c, "expired"}.send("GET", "/v1/hosts", "", "X-Forwarded-For", addresses)
}

func TestBehindAProxyAnAddressIsTheOneThatTheProxySaw(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.ProxyHeaders = true }})
	for i := range 3 {
		wantError(t, c.from(fmt.Sprintf("203.0.113.%d, 192.0.2.1", i)), http.StatusUnauthorized)
	}
	for _, same := range []string{"203.0.113.9,192.0.2.1", "192.0.2.1:4711", "::ffff:192.0.2.1"} {
		wantError(t, c.from(same), http.StatusTooManyRequests)
	}
	wantError(t, c.from("192.0.2.1, 192.0.2.2"), http.StatusUnauthorized)
}

func TestAnAddressOfIPv6CountsByItsNetwork(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.ProxyHeaders = true }})
	for i := range 3 {
		wantError(t, c.from(fmt.Sprintf("2001:db8:0:1::%d", i)), http.StatusUnauthorized)
	}
	wantError(t, c.from("[2001:db8:0:1:ffff::1]:4711"), http.StatusTooManyRequests)
	wantError(t, c.from("2001:db8:0:2::1"), http.StatusUnauthorized)
}

// If Almanac trusts no proxy, the header may come from a proxy or from the client.
func TestAHeaderThatNobodyVouchesForHoldsOffOneClientOfAProxyAndIsNoWayAroundTheLimit(t *testing.T) {
	c := start(t, setup{adjust: limited})
	for range 3 {
		wantError(t, c.from("192.0.2.1"), http.StatusUnauthorized)
	}
	wantError(t, c.from("192.0.2.1"), http.StatusTooManyRequests)
	answered := 3
	for i := range 100 {
		if c.from(fmt.Sprintf("198.51.100.%d", i)).status == http.StatusUnauthorized {
			answered++
		}
	}
	if answered != 30 {
		t.Errorf("with a new address each time, %d wrong tokens are validated, want ten times as many as for one address: 30", answered)
	}
}

// away is a Keystone that does not answer.
type away struct{}

func (away) Knows(*http.Request) bool { return false }

func (away) Authenticate(*http.Request) (keystone.Token, error) {
	return keystone.Token{}, &fault.Error{Kind: fault.Unavailable, Message: "Keystone is away", RetryAfter: 5 * time.Second}
}

func TestWithoutKeystonesAnswerNobodyIsLetInNorBlamed(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { limited(o); o.Authenticator = api.Keystone{Tokens: away{}} }})
	for range 5 {
		a := c.admin.get("/v1/hosts")
		if wantError(t, a, http.StatusServiceUnavailable); a.header.Get("Retry-After") != "5" {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
	if metrics := string(c.nobody.get("/metrics").body); !strings.Contains(metrics, `almanac_auth_failures_total{kind="unavailable"} 5`) {
		t.Errorf("the metrics are\n%s", metrics)
	}
}
