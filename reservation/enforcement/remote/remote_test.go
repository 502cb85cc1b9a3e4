// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/enforcement/remote"
)

// request is what a usage service received.
type request struct{ Path, Token, Authorization, ContentType, Body string }

// usageService is a site's usage service, which answers every request alike and records it.
type usageService struct {
	*httptest.Server
	mu   sync.Mutex
	seen []request
}

func newUsageService(t *testing.T, answer http.HandlerFunc) *usageService {
	s := &usageService{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, request{r.URL.Path, r.Header.Get("X-Auth-Token"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)})
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// requests returns what the service received so far.
func (s *usageService) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// open returns a client, and the outcomes of its calls.
func open(t *testing.T, o remote.Options) (*remote.Client, *[]remote.Outcome) {
	t.Helper()
	var outcomes []remote.Outcome
	o.Elapsed = func() time.Duration { return 0 }
	o.Measure = func(_ enforcement.Verb, outcome remote.Outcome, _ time.Duration) {
		outcomes = append(outcomes, outcome)
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	c, err := remote.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, &outcomes
}

func TestAnswersAllowRefuseOrCount(t *testing.T) {
	const away = "the external usage service, which must allow the request, does not work; try again later or ask your operator"
	for name, c := range map[string]struct {
		status  int
		body    string
		outcome remote.Outcome
		text    string
	}{
		"204":                               {204, "", remote.Allowed, ""},
		"403 with Blazar's message":         {403, `{"message": "no  hours\nleft"}`, remote.Refused, "no hours left"},
		"403 with the error of others":      {403, `{"error": "Insufficient VCPU"}`, remote.Refused, "Insufficient VCPU"},
		"403 with both":                     {403, `{"error": "x", "message": "y"}`, remote.Refused, "y"},
		"403 with a long message":           {403, `{"message": "` + strings.Repeat("ä", 600) + `"}`, remote.Refused, strings.Repeat("ä", 500) + "…"},
		"403 with something else":           {403, `<html>secret</html>`, remote.Refused, "the external usage service refuses the request without a reason"},
		"403 with a message that is none":   {403, `{"message": 7}`, remote.Refused, "the external usage service refuses the request without a reason"},
		"200 is no permission":              {200, `{}`, remote.Failed, away},
		"500":                               {500, "secret", remote.Failed, away},
		"404":                               {404, "", remote.Failed, away},
		"a redirect, which is not followed": {302, "", remote.Failed, away},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUsageService(t, answers(c.status, c.body))
			client, outcomes := open(t, remote.Options{Base: s.URL + "/usage/"})
			err := client.Call(t.Context(), enforcement.CheckCreate, []byte("{}"))
			if d := cmp.Diff([]remote.Outcome{c.outcome}, *outcomes); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
			switch {
			case c.text == "" && err != nil:
				t.Errorf("got %v", err)
			case c.text != "" && (!fault.Is(err, fault.Denied) || fault.Of(err).Message != c.text):
				t.Errorf("got %v, want %q", err, c.text)
			}
			if errors.Is(err, enforcement.ErrNoAnswer) != (c.outcome == remote.Failed) {
				t.Errorf("%v: wrong about whether the service answered", err)
			}
			if len(s.requests()) != 1 {
				t.Errorf("it was asked %d times", len(s.requests()))
			}
		})
	}
}

func TestAServiceThatHangsRefusesAfterTheTimeout(t *testing.T) {
	ended := make(chan struct{})
	s := newUsageService(t, func(_ http.ResponseWriter, r *http.Request) { <-ended })
	defer close(ended)
	client, outcomes := open(t, remote.Options{Base: s.URL, Timeout: time.Millisecond})
	err := client.Call(t.Context(), enforcement.OnEnd, nil)
	if !errors.Is(err, enforcement.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) || !fault.Is(err, fault.Denied) {
		t.Errorf("got %v", err)
	}
	if text := fault.Of(err).Message; !strings.Contains(text, "external usage service") || !strings.Contains(text, "does not answer") {
		t.Errorf("the user reads %q", text)
	}
	if d := cmp.Diff([]remote.Outcome{remote.Failed}, *outcomes); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
}

func TestAddressesAreJoinedAsBlazarJoinsThem(t *testing.T) {
	s := newUsageService(t, answers(204, ""))
	for name, c := range map[string]struct {
		o     remote.Options
		paths map[enforcement.Verb]string
	}{
		"base with a slash": {remote.Options{Base: s.URL + "/v1/usage/"}, map[enforcement.Verb]string{
			enforcement.CheckCreate: "/v1/usage/check-create", enforcement.CheckUpdate: "/v1/usage/check-update", enforcement.OnEnd: "/v1/usage/on-end",
		}},
		"base without a slash": {remote.Options{Base: s.URL + "/v1/usage"}, map[enforcement.Verb]string{
			enforcement.CheckCreate: "/v1/check-create", enforcement.CheckUpdate: "/v1/check-update", enforcement.OnEnd: "/v1/on-end",
		}},
		"base without a path, and an address of its own": {remote.Options{Base: s.URL, OnEnd: s.URL + "/over/"}, map[enforcement.Verb]string{
			enforcement.CheckCreate: "/check-create", enforcement.CheckUpdate: "/check-update", enforcement.OnEnd: "/over/",
		}},
		"two phases": {remote.Options{CheckCreate: s.URL + "/consumer/check-create/", CommitCreate: s.URL + "/consumer/create/"}, map[enforcement.Verb]string{
			enforcement.CheckCreate: "/consumer/check-create/", enforcement.CommitCreate: "/consumer/create/",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := open(t, c.o)
			for _, verb := range enforcement.Verbs {
				if client.Has(verb) != (c.paths[verb] != "") {
					t.Errorf("has %s: %v", verb, client.Has(verb))
				}
				if !client.Has(verb) {
					continue
				}
				if err := client.Call(t.Context(), verb, nil); err != nil {
					t.Fatal(err)
				}
				if got := s.requests()[len(s.requests())-1].Path; got != c.paths[verb] {
					t.Errorf("%s: got %s, want %s", verb, got, c.paths[verb])
				}
			}
		})
	}
}

func TestUnusableAddressesAreRefused(t *testing.T) {
	for _, o := range []remote.Options{{}, {Base: "usage.example.org/"}, {Base: "ftp://usage/"}, {OnEnd: "http://"}, {Base: "http://usage/", CommitUpdate: ":"}} {
		if _, err := remote.New(o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

func TestTokensAreSentInTheirHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		o    remote.Options
		want request
	}{
		"none":   {remote.Options{}, request{}},
		"static": {remote.Options{Token: "abc"}, request{Token: "abc"}},
		"bearer": {remote.Options{BearerToken: "xyz"}, request{Authorization: "Bearer xyz"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUsageService(t, answers(204, ""))
			c.o.Base = s.URL
			client, _ := open(t, c.o)
			if err := client.Call(t.Context(), enforcement.OnEnd, []byte(`{"a":1}`)); err != nil {
				t.Fatal(err)
			}
			c.want.Path, c.want.ContentType, c.want.Body = "/on-end", "application/json", `{"a":1}`
			if d := cmp.Diff([]request{c.want}, s.requests()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// session counts the tokens of Keystone.
type session struct{ stale []string }

func (s *session) Token(_ context.Context, stale string) (string, error) {
	s.stale = append(s.stale, stale)
	return "token " + stale, nil
}

func TestARejectedTokenOfKeystoneIsRenewedOnce(t *testing.T) {
	s := newUsageService(t, answers(401, ""))
	keystone := &session{}
	client, _ := open(t, remote.Options{Base: s.URL, KeystoneToken: true, Session: keystone})
	if err := client.Call(t.Context(), enforcement.OnEnd, nil); !errors.Is(err, enforcement.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff([]string{"", "token "}, keystone.stale); d != "" {
		t.Errorf("tokens (-want +got):\n%s", d)
	}
	if seen := s.requests(); len(seen) != 2 || seen[0].Token != "token" || seen[1].Token != "token token" {
		t.Errorf("the service saw %+v", seen)
	}
}
