// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

func TestTheLibraryOfStandardWebhooksAcceptsTheSignatureOfEachSecretTimeAndBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := webhook.NewSecret(rapid.SliceOfN(rapid.Byte(), 24, 64).Draw(t, "key"))
		if err := secret.Check(); err != nil {
			t.Fatal(err)
		}
		id, body := rapid.StringMatching(`[0-9a-f-]{1,40}`).Draw(t, "id"), rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		at := span.Instant(rapid.Int64Range(0, 1<<34).Draw(t, "at"))
		signature, err := secret.Sign(id, at, body)
		if err != nil {
			t.Fatal(err)
		}
		receiver, err := standardwebhooks.NewWebhook(string(secret))
		if err != nil {
			t.Fatal(err)
		}
		headers := http.Header{}
		headers.Set("webhook-id", id)
		headers.Set("webhook-timestamp", fmt.Sprint(int64(at)))
		headers.Set("webhook-signature", signature)
		if err := receiver.VerifyIgnoringTimestamp(body, headers); err != nil {
			t.Fatalf("%s: %v", signature, err)
		}
		if err := receiver.VerifyIgnoringTimestamp(append(body, 'x'), headers); err == nil {
			t.Fatal("the signature is that of another body, too")
		}
	})
}

func TestASecretThatIsPrintedLoggedOrEncodedIsHidden(t *testing.T) {
	secret := webhook.NewSecret(make([]byte, 32))
	w := webhook.Webhook{ID: "w", Secret: secret}
	encoded, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("made", "secret", secret, "webhook", w)
	for _, text := range []string{string(encoded), logged.String(), fmt.Sprintf("%v %+v %#v %s %q", w, w, w, secret, secret)} {
		if strings.Contains(text, "AAAA") {
			t.Errorf("%s has the secret", text)
		}
	}
}

func TestWhoIsToldOfWhat(t *testing.T) {
	r := &reservation.Reservation{ProjectID: "demo"}
	for _, c := range []struct {
		w    webhook.Webhook
		want bool
	}{
		{webhook.Webhook{ProjectID: "demo"}, true},
		{webhook.Webhook{ProjectID: "other"}, false},
		{webhook.Webhook{ProjectID: "other", AllProjects: true}, true},
		{webhook.Webhook{ProjectID: "demo", Types: []string{"reservation.end"}}, true},
		{webhook.Webhook{ProjectID: "demo", Types: []string{"reservation.start"}}, false},
		{webhook.Webhook{ProjectID: "demo", Standing: webhook.Standing{Disabled: "gone"}}, false},
	} {
		if got := c.w.Wants("reservation.end", r); got != c.want {
			t.Errorf("%+v is told: %v", c.w, got)
		}
	}
}

func TestWhatFollowsFromAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		answer   webhook.Answer
		want     webhook.Verdict
	}{
		"accepted":                    {7, webhook.Answer{Status: 204}, webhook.Verdict{Done: true, Delivered: true}},
		"a redirect is a failure":     {0, webhook.Answer{Status: 302}, webhook.Verdict{Failures: 1, Wait: 5, Error: "the receiver answers 302 Found; redirects are not followed"}},
		"no answer":                   {0, webhook.Answer{Err: "connection refused"}, webhook.Verdict{Failures: 1, Wait: 5, Error: "connection refused"}},
		"the wait doubles":            {3, webhook.Answer{Status: 500}, webhook.Verdict{Failures: 4, Wait: 40, Error: "the receiver answers 500 Internal Server Error"}},
		"up to an hour":               {100, webhook.Answer{Status: 500}, webhook.Verdict{Failures: 101, Wait: 3600, Error: "the receiver answers 500 Internal Server Error"}},
		"as late as it asks":          {0, webhook.Answer{Status: 503, RetryAfter: 600}, webhook.Verdict{Failures: 1, Wait: 600, Error: "the receiver answers 503 Service Unavailable"}},
		"but no later than an hour":   {0, webhook.Answer{Status: 429, RetryAfter: 1e9}, webhook.Verdict{Failures: 1, Wait: 3600, Error: "the receiver answers 429 Too Many Requests"}},
		"gone":                        {0, webhook.Answer{Status: 410}, webhook.Verdict{Failures: 1, Wait: 5, Error: "the receiver answers 410 Gone", Disabled: "the receiver answers 410 Gone"}},
		"the content, at first":       {3, webhook.Answer{Status: 422}, webhook.Verdict{Failures: 4, Wait: 40, Error: "the receiver answers 422 Unprocessable Entity"}},
		"the content, the fifth time": {4, webhook.Answer{Status: 422}, webhook.Verdict{Done: true, Wait: 80, Error: "the receiver answers 422 Unprocessable Entity"}},
		"no rights is no content":     {4, webhook.Answer{Status: 401}, webhook.Verdict{Failures: 5, Wait: 80, Error: "the receiver answers 401 Unauthorized"}},
	} {
		if got := webhook.Judge(c.failures, c.answer, 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestEachWaitIsInTheUpperHalfOfItsBoundAndAtLeastThatOfTheReceiver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures, asked := rapid.IntRange(0, 1000).Draw(t, "failures"), rapid.Int64Range(0, 10_000).Draw(t, "asked")
		v := webhook.Judge(failures, webhook.Answer{Status: 500, RetryAfter: asked}, rapid.Float64Range(0, 0.999999).Draw(t, "chance"))
		bound := int64(3600)
		for doubled, n := int64(5), 0; n <= failures && doubled < 3600; doubled, n = doubled*2, n+1 {
			bound = doubled
			if n < failures && doubled*2 >= 3600 {
				bound = 3600
			}
		}
		if v.Wait < bound/2 || v.Wait < min(asked, 3600) || v.Wait > max(bound, min(asked, 3600)) || v.Failures != failures+1 {
			t.Fatalf("after %d failures it waits %d s of %d", failures, v.Wait, bound)
		}
	})
}

// The choice is compared with one that looks at each webhook in turn and counts anew.
func TestWhoIsTriedNow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, most int) (list []webhook.Due) {
			for i := range rapid.IntRange(0, most).Draw(t, name) {
				list = append(list, webhook.Due{
					ID: fmt.Sprint(name, i), ProjectID: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "project"),
					Failing: rapid.Bool().Draw(t, "failing"), At: span.Instant(rapid.IntRange(0, 5).Draw(t, "at")),
				})
			}
			return list
		}
		limit := rapid.IntRange(1, 16).Draw(t, "limit")
		due, busy := draw("due", 30), draw("busy", limit)
		if len(busy) > 0 && rapid.Bool().Draw(t, "again") {
			due = append(due, busy[0])
		}
		got := webhook.Choose(due, busy, limit)
		all := slices.Concat(busy, got)
		fits := func(d webhook.Due, among []webhook.Due) bool {
			failing, project := 0, 0
			for _, other := range among {
				if other.ID == d.ID {
					return false
				}
				if other.Failing {
					failing++
				}
				if other.ProjectID == d.ProjectID {
					project++
				}
			}
			return len(among) < limit && project < max(1, limit/4) && (!d.Failing || failing < max(1, limit/2))
		}
		for i, d := range got {
			if !fits(d, all[:len(busy)+i]) {
				t.Fatalf("%+v begins beside %+v", d, all[:len(busy)+i])
			}
		}
		for _, d := range due {
			if slices.Contains(got, d) {
				continue
			}
			if fits(d, all) {
				t.Fatalf("%+v does not begin beside %+v", d, all)
			}
			for _, later := range got { // nobody of the same kind who came later is before it
				if later.ProjectID == d.ProjectID && later.Failing == d.Failing && later.At > d.At && !slices.Contains(busy, d) {
					t.Fatalf("%+v begins before %+v", later, d)
				}
			}
		}
	})
}

func TestWhatAnOperatorAllows(t *testing.T) {
	allowed, err := webhook.ParseAllowed([]string{
		"hooks.example.org", "*.Example.net:8443", "10.20.0.0/24:*", "[2001:db8::]/32", "[2001:db8:1::1]:9443", "http://plain.example.org", "http://127.0.0.1:8080",
	})
	if err != nil {
		t.Fatal(err)
	}
	const outside, inside = "93.184.216.34", "10.20.0.7"
	for _, c := range []struct {
		url, at    string
		made, sent bool
	}{
		{"https://hooks.example.org/x", outside, true, true},
		{"https://HOOKS.example.org./x", outside, true, true},
		{"https://hooks.example.org/x", "127.0.0.1", true, false},
		{"https://hooks.example.org/x", "::1", true, false},
		{"https://hooks.example.org/x", "::ffff:127.0.0.1", true, false},
		{"https://hooks.example.org/x", "64:ff9b::7f00:1", true, false},
		{"https://hooks.example.org/x", "2002:7f00:1::", true, false},
		{"https://hooks.example.org/x", "169.254.169.254", true, false},
		{"https://hooks.example.org/x", "fe80::1", true, false},
		{"https://hooks.example.org/x", "10.0.0.1", true, false},
		{"https://hooks.example.org/x", "100.64.0.1", true, false},
		{"https://hooks.example.org/x", "0.0.0.0", true, false},
		{"https://hooks.example.org/x", inside, true, true}, // its network is allowed
		{"https://hooks.example.org:8443/x", outside, true, false},
		{"https://a.example.net:8443/", outside, true, true},
		{"https://example.net:8443/", outside, true, false},
		{"https://evilexample.net:8443/", outside, true, false},
		{"https://inner.example.com:1234/", inside, true, true},
		{"https://inner.example.com:1234/", "10.20.1.7", true, false},
		{"https://10.20.0.7:1234/", inside, true, true},
		{"https://10.20.1.7:1234/", "10.20.1.7", false, false},
		{"https://[2001:db8::7]/", "2001:db8::7", true, true},
		{"https://[2001:db8::7]:444/", "2001:db8::7", false, false},
		{"http://plain.example.org/", outside, true, true},
		{"https://plain.example.org/", outside, true, false},
		{"http://hooks.example.org/", outside, false, false},
		{"http://127.0.0.1:8080/", "127.0.0.1", true, true},
		{"http://127.0.0.2:8080/", "127.0.0.2", false, false},
	} {
		target, err := webhook.TargetOf(c.url)
		if err != nil {
			t.Fatal(err)
		}
		reaches := allowed.Reaches(target, netip.MustParseAddr(c.at))
		if made := allowed.Permits(target) == nil; made != c.made || reaches != c.sent {
			t.Errorf("%s at %s: may be made %v, is sent %v", c.url, c.at, made, reaches)
		}
	}
	if (webhook.Allowed{}).Permits(webhook.Target{Scheme: "https", Host: "hooks.example.org", Port: "443"}) == nil {
		t.Error("without a list everything is allowed")
	}
	for _, item := range []string{"", "*", "*.", "a b", "ftp://a", "a:0", "a:99999", "10.0.0.0/99", "[::1", "a/b", "a.*.b", "http://", "ada@example.org", "."} {
		if _, err := webhook.ParseAllowed([]string{item}); err == nil {
			t.Errorf("%q is allowed", item)
		}
	}
}

// Go's own tables of what is no address of the internet are among ours.
func TestANameMayNotLeadToAnAddressThatIsNotPublic(t *testing.T) {
	allowed, err := webhook.ParseAllowed([]string{"hooks.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	target := webhook.Target{Scheme: "https", Host: "hooks.example.org", Port: "443"}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 4, 4)
		if rapid.Bool().Draw(t, "v6") {
			bytes = rapid.SliceOfN(rapid.Byte(), 16, 16)
		}
		at, _ := netip.AddrFromSlice(bytes.Draw(t, "address"))
		inner := at.IsPrivate() || at.IsLoopback() || at.IsLinkLocalUnicast() || at.IsMulticast() || at.IsUnspecified()
		if inner && allowed.Reaches(target, at) {
			t.Fatalf("%v is reached", at)
		}
	})
	if !allowed.Reaches(target, netip.MustParseAddr("2606:2800:21f:cb07:6820:80da:af6b:8b2c")) {
		t.Error("a public address is not reached")
	}
}
