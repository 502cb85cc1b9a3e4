// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// crowd is a validator with a Keystone in which every token USER-NUMBER is valid.
type crowd struct {
	*keystone.Validator
	t  *testing.T
	mu sync.Mutex
	// asked counts the requests about each token.
	asked map[string]int
}

func newCrowd(t *testing.T, cacheSize int) *crowd {
	t.Helper()
	c := &crowd{t: t, asked: map[string]int{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	var err error
	c.Validator, err = keystone.New(keystone.Options{
		Connection: keystone.Connection{
			AuthURL: server.URL + "/v3", Username: "almanac", Password: "x", ProjectName: "service", UserDomainID: "default", ProjectDomainID: "default",
		},
		TokenCacheTime: 5 * time.Minute, CacheSize: cacheSize, ServiceTokenRoles: []string{"service"}, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	subject := r.Header.Get("X-Subject-Token")
	user, _, valid := strings.Cut(subject, "-")
	switch {
	case r.Method == http.MethodPost:
		user = "almanac"
		w.Header().Set("X-Subject-Token", "of-almanac")
		w.WriteHeader(http.StatusCreated)
	default:
		c.mu.Lock()
		c.asked[subject]++
		c.mu.Unlock()
		if !valid {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error": {"code": 404, "message": "no such token"}}`)
			return
		}
	}
	fmt.Fprintf(w, `{"token": {"user": {"id": %q, "name": "u", "domain": {"id": "default"}}, "project": {"id": "p", "name": "p", "domain": {"id": "default"}},
		"roles": [{"name": "service"}], "expires_at": %q}}`, user, time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// sends validates tokens, one after the other.
func (c *crowd) sends(tokens ...string) {
	c.t.Helper()
	for _, token := range tokens {
		_, err := c.Validate(c.t.Context(), token, "")
		if valid := strings.Contains(token, "-"); valid != (err == nil) {
			c.t.Fatalf("token %q: %v", token, err)
		}
	}
}

// wasAsked checks how often Keystone was asked about a token.
func (c *crowd) wasAsked(token string, want int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.asked[token]; got != want {
		c.t.Errorf("Keystone was asked %d times about token %q, want %d", got, token, want)
	}
}

func TestRejectedTokensPushNoValidOneOutOfTheCache(t *testing.T) {
	c := newCrowd(t, 20)
	c.sends("ann-1")
	for i := range 100 {
		c.sends(fmt.Sprintf("garbage%d", i))
	}
	c.sends("ann-1", "garbage99", "garbage0")
	c.wasAsked("ann-1", 1)
	c.wasAsked("garbage99", 1)
	c.wasAsked("garbage0", 2) // their share of the cache is full
}

func TestTheTokensOfOneUserPushNoOthersOutOfTheCache(t *testing.T) {
	c := newCrowd(t, 200) // two for each
	c.sends("ann-1")
	for i := range 300 {
		c.sends(fmt.Sprintf("bob-%d", i))
	}
	c.sends("ann-1", "bob-299", "bob-298", "bob-297")
	c.wasAsked("ann-1", 1)
	c.wasAsked("bob-299", 1)
	c.wasAsked("bob-298", 1)
	c.wasAsked("bob-297", 2)
}

func TestTheTokensOfManyUsersPushTheLongestUnusedOut(t *testing.T) {
	c := newCrowd(t, 3)
	c.sends("ann-1", "bob-1", "cid-1", "ann-1", "dan-1", "ann-1", "bob-1")
	c.wasAsked("ann-1", 1)
	c.wasAsked("bob-1", 2)
}

func TestOfWhichRequestsKeystoneNeedNotBeAsked(t *testing.T) {
	c := newCrowd(t, 200)
	c.sends("ann-1", "garbage", "nova-1")
	for name, tc := range map[string]struct {
		token, service string
		want           bool
	}{
		"no token":                                {"", "", true},
		"a token that was found valid":            {"ann-1", "", true},
		"one that was rejected":                   {"garbage", "", true},
		"one that cannot be one":                  {"a b", "", true},
		"another":                                 {"ann-2", "", false},
		"a valid one and an unknown service's":    {"ann-1", "nova-2", false},
		"a valid one and a rejected service's":    {"ann-1", "garbage", true},
		"with a service's it may have expired":    {"ann-1", "nova-1", false},
		"an unknown one and a service's":          {"ann-2", "nova-1", false},
		"an unknown one and a rejected service's": {"ann-2", "garbage", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/hosts", nil)
		r.Header.Set("X-Auth-Token", tc.token)
		r.Header.Set("X-Service-Token", tc.service)
		if got := c.Knows(r); got != tc.want {
			t.Errorf("%s: known %t, want %t", name, got, tc.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/hosts", nil)
	r.Header.Set("X-Auth-Token", "ann-1")
	r.Header.Set("X-Service-Token", "nova-1")
	if _, err := c.Authenticate(r); err != nil || !c.Knows(r) {
		t.Errorf("after a validation: known %t, %v", c.Knows(r), err)
	}
}
