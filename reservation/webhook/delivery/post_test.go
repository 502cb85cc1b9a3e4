// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/webhook"
	"github.com/almanac-cloud/almanac/reservation/webhook/delivery"
)

var secret = webhook.NewSecret([]byte("thirty-two bytes that are secret"))

// changed returns a stored change of a reservation.
func changed(place int64, action reservation.Action, status reservation.Status) reservation.Change {
	held := span.New(2000, 3600)
	return reservation.Change{
		Place: place, At: 1000, Cause: reservation.Cause{Action: action, Detail: "a in place of b"},
		Reservation: reservation.Reservation{
			ID: "1c2e0b6a-54a5-4b62-8a3a-0c6b7a0f2c11", ProjectID: "demo", Status: status, Span: held, Version: place,
			Terms:  reservation.Terms{Name: "nächtlich <&>", Kind: reservation.Hosts, Quantity: 1},
			Claims: []reservation.Claim{{Host: "node-1", Span: held}},
		},
	}
}

// poster returns a Poster to loopback addresses, and to the names that are allowed beside them.
func poster(t *testing.T, names ...string) *delivery.Poster {
	t.Helper()
	allowed, err := webhook.ParseAllowed(append(names, "http://127.0.0.1/32:*"))
	if err != nil {
		t.Fatal(err)
	}
	return delivery.NewPoster(allowed, "1.2.3", func() span.Instant { return span.At(time.Now()) })
}

// message returns a change on its way to a URL.
func message(t *testing.T, to string) delivery.Message {
	t.Helper()
	id, body, err := notice.CloudEventOf(changed(7, reservation.ActionCreate, reservation.Pending), "almanac", notice.Sight{})
	if err != nil {
		t.Fatal(err)
	}
	return delivery.Message{ID: id, URL: to, Secret: secret, Body: body}
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheReceiversOfCloudEventsAndOfStandardWebhooksTakeADelivery(t *testing.T) {
	checks, err := standardwebhooks.NewWebhook(string(secret))
	if err != nil {
		t.Fatal(err)
	}
	protocol, err := cloudevents.NewHTTP()
	if err != nil {
		t.Fatal(err)
	}
	var got cloudevents.Event
	receive, err := cloudevents.NewHTTPReceiveHandler(t.Context(), protocol, func(e cloudevents.Event) { got = e })
	if err != nil {
		t.Fatal(err)
	}
	to := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := checks.Verify(body, r.Header); err != nil {
			t.Errorf("the signature: %v", err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		receive.ServeHTTP(w, r)
	})
	m := message(t, to)
	if a := poster(t).Post(t.Context(), m); a != (webhook.Answer{Status: http.StatusAccepted}) && a != (webhook.Answer{Status: http.StatusOK}) {
		t.Fatalf("answered %+v", a)
	}
	if err := got.Validate(); err != nil || got.ID() != m.ID || got.Type() != "reservation.create" || got.Source() != "almanac" ||
		got.Subject() != "1c2e0b6a-54a5-4b62-8a3a-0c6b7a0f2c11" || !got.Time().Equal(time.Unix(1000, 0)) {
		t.Errorf("received %v: %v", got, err)
	}
	var data struct {
		Name  string   `json:"name"`
		Hosts []string `json:"hosts"`
	}
	if err := got.DataAs(&data); err != nil || data.Name != "nächtlich <&>" || len(data.Hosts) != 0 {
		t.Errorf("its data are %+v: %v", data, err)
	}
}

func TestAnAnswerIsReadBrieflyAndARedirectIsNotFollowed(t *testing.T) {
	followed := false
	to := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/later":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/never":
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/elsewhere":
			http.Redirect(w, r, "/followed", http.StatusTemporaryRedirect)
		case "/followed":
			followed = true
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/large header":
			w.Header().Set("X-Large", strings.Repeat("x", 64<<10))
		}
	})
	for path, want := range map[string]webhook.Answer{
		"/":          {Status: 200},
		"/later":     {Status: 503, RetryAfter: 120},
		"/never":     {Status: 429},
		"/elsewhere": {Status: 307},
		"/endless":   {Status: 200},
	} {
		if got := poster(t).Post(t.Context(), message(t, to+path)); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if followed {
		t.Error("the redirect was followed")
	}
	if got := poster(t).Post(t.Context(), message(t, to+"/large%20header")); got.Status != 0 || got.Err == "" {
		t.Errorf("a large header is answered with %+v", got)
	}
}

// A name that the operator allows leads to this machine, as one may that leads elsewhere when the webhook is made.
func TestAnAllowedNameThatLeadsToAForbiddenAddressIsNotContacted(t *testing.T) {
	contacted := false
	at, err := url.Parse(serve(t, func(http.ResponseWriter, *http.Request) { contacted = true }))
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := webhook.ParseAllowed([]string{"http://localhost:*"})
	if err != nil {
		t.Fatal(err)
	}
	p := delivery.NewPoster(allowed, "1.2.3", func() span.Instant { return 1 })
	to := "http://localhost:" + at.Port() + "/hook?token=hidden"
	a := p.Post(t.Context(), message(t, to))
	if contacted || a.Status != 0 || !strings.Contains(a.Err, "does not allow") || strings.Contains(a.Err, "127.0.0.1") || strings.Contains(a.Err, "hidden") {
		t.Errorf("contacted %v: %+v", contacted, a)
	}
	if err := p.Check(t.Context(), to); err == nil {
		t.Error("a webhook can be made for it")
	}
	if err := poster(t, "http://localhost:*").Check(t.Context(), to); err != nil {
		t.Errorf("with its network it cannot: %v", err)
	}
}

func TestAProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy is asked") })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	to := serve(t, func(http.ResponseWriter, *http.Request) {})
	if a := poster(t).Post(t.Context(), message(t, to)); a.Status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestWhatHasNoAnswerHasAReasonWithoutTheURL(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for to, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		closed.URL:                         {t.Context(), "connection refused"},
		"http://" + silent.Addr().String(): {short, "did not answer"},
		"https://192.0.2.1":                {t.Context(), "none of the receivers"},
	} {
		a := poster(t).Post(c.ctx, message(t, to+"/hook?token=hidden"))
		if a.Status != 0 || !strings.Contains(a.Err, c.want) || strings.Contains(a.Err, "hidden") {
			t.Errorf("%s: %+v, want %q", to, a, c.want)
		}
	}
}

func TestAProjectDoesNotLearnItsHostsBeforeTheStartAndAnOperatorDoes(t *testing.T) {
	for _, c := range []struct {
		action reservation.Action
		sight  notice.Sight
		want   bool
	}{
		{reservation.ActionHeal, notice.Sight{}, false},
		{reservation.ActionHeal, notice.Sight{Hosts: true}, true},
	} {
		_, body, err := notice.CloudEventOf(changed(7, c.action, reservation.Pending), "almanac", c.sight)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"node-1", "in place of"} {
			if strings.Contains(string(body), text) != c.want {
				t.Errorf("%+v: %s", c, body)
			}
		}
	}
	if r := changed(1, reservation.ActionStart, reservation.Active); !notice.HostsAreFinal(&r.Reservation) {
		t.Error("the owner of an active reservation does not see its hosts")
	}
}
