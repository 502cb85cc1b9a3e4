// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// door is a sign-in whose tokens are those of legible: a user with the password "right" is a member of project demo, and
// may change to project other.
type door struct{ revoked *[]string }

func (d door) SignIn(_ context.Context, by keystone.SignInCredentials) (string, error) {
	switch {
	case by.Token != "" && by.ProjectID != "":
		return by.ProjectID + "/member", nil
	case by.Token != "":
		return by.Token, nil
	case by.Password == "right":
		return "demo/member", nil
	}
	return "", fault.New(fault.Unauthorized, "Keystone refuses these credentials")
}

func (door) Projects(context.Context, string) ([]keystone.Project, error) {
	return []keystone.Project{{ID: "demo", Name: "Demo"}, {ID: "other", Name: "Other"}}, nil
}

func (door) AllProjects(_ context.Context, token string) ([]keystone.Project, error) {
	return []keystone.Project{{ID: "far", Name: "Far"}, {ID: "of " + token, Name: "Token"}}, nil
}

func (d door) Revoke(_ context.Context, token string) error {
	if token == "garbage" {
		return fault.New(fault.Unauthorized, "Keystone refuses these credentials")
	}
	*d.revoked = append(*d.revoked, token)
	return nil
}

// visitor is a browser at the page.
type visitor struct {
	caller
	cookie string
	header []string // in every request
}

func (v *visitor) call(method, path, body string, header ...string) answer {
	v.cloud.t.Helper()
	all := append(slices.Clone(v.header), header...)
	if v.cookie != "" {
		all = append(all, "Cookie", "almanac-token="+v.cookie)
	}
	_, a := v.exchange(method, path, body, all...)
	for _, line := range a.header.Values("Set-Cookie") {
		cookie, err := http.ParseSetCookie(line)
		must(v.cloud.t, err)
		v.cookie = cookie.Value
	}
	return a
}

func startDoor(t *testing.T, adjust ...func(*api.Options)) (*visitor, *[]string) {
	t.Helper()
	revoked := &[]string{}
	c := start(t, setup{adjust: func(o *api.Options) {
		o.SignIn = door{revoked}
		o.Dashboard = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "file "+r.URL.Path) })
		for _, change := range adjust {
			change(o)
		}
	}})
	return &visitor{caller: caller{c, ""}, header: []string{"Sec-Fetch-Site", "same-origin"}}, revoked
}

// session is what the page learns about its user.
type session struct {
	SignIn    bool            `json:"sign_in"`
	SignedIn  bool            `json:"signed_in"`
	ProjectID string          `json:"project_id"`
	May       map[string]bool `json:"may"`
	Projects  []struct{ ID, Name string }
	Simulated bool
	Speed     int
	Feeds     bool
	OnEnd     []string `json:"on_end"`
}

func (v *visitor) session() session {
	v.cloud.t.Helper()
	var s session
	a := v.call(http.MethodGet, "/dashboard/session", "")
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
		v.cloud.t.Fatalf("the session: %v, %v", a, err)
	}
	return s
}

func TestAVisitorSignsInChangesTheProjectAndSignsOut(t *testing.T) {
	v, revoked := startDoor(t)
	if a := v.call(http.MethodGet, "/dashboard/", ""); a.status != http.StatusOK || string(a.body) != "file /" {
		t.Errorf("the page: %v", a)
	}
	if s := v.session(); !s.SignIn || s.SignedIn {
		t.Errorf("before the sign-in: %+v", s)
	}
	if a := v.call(http.MethodPost, "/dashboard/session", `{"username": "u", "password": "wrong"}`); a.status != http.StatusUnauthorized || v.cookie != "" {
		t.Errorf("a wrong password: %v", a)
	}
	a := v.call(http.MethodPost, "/dashboard/session", `{"username": "u", "password": "right"}`)
	if a.status != http.StatusNoContent || v.cookie != "demo/member" {
		t.Fatalf("the sign-in: %v", a)
	}
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	must(t, err)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || cookie.Path != "/" || cookie.MaxAge != 0 || !cookie.Expires.IsZero() {
		t.Errorf("the cookie is %v", cookie)
	}
	s := v.session()
	if !s.SignedIn || s.ProjectID != "demo" || !s.May["reservations:create"] || s.May["reservations:list_all"] || len(s.Projects) != 2 {
		t.Errorf("after the sign-in: %+v", s)
	}
	if a := v.call(http.MethodPost, "/v1/reservations", `{"name": "r", "duration": 3600}`); a.status != http.StatusCreated {
		t.Errorf("a booking: %v", a)
	}
	if a := v.call(http.MethodPatch, "/dashboard/session", `{"project_id": "other"}`); a.status != http.StatusNoContent {
		t.Errorf("another project: %v", a)
	}
	if a := v.call(http.MethodGet, "/v1/reservations", ""); v.session().ProjectID != "other" || strings.Contains(string(a.body), `"r"`) {
		t.Errorf("the other project sees %v", a)
	}
	if a := v.call(http.MethodDelete, "/dashboard/session", ""); a.status != http.StatusNoContent || v.cookie != "" || !slices.Equal(*revoked, []string{"demo/member", "other/member"}) {
		t.Errorf("the sign-out: %v, revoked %v", a, *revoked)
	}
	if a := v.call(http.MethodGet, "/v1/reservations", ""); a.status != http.StatusUnauthorized {
		t.Errorf("after the sign-out: %v", a)
	}
}

// The page offers the ends that the operator allows now.
func TestTheSessionListsTheEndsThatCanBeChosen(t *testing.T) {
	var bookings *booking.Service
	v, _ := startDoor(t, func(o *api.Options) { bookings = o.Booking })
	if s := v.session(); s.OnEnd != nil {
		t.Errorf("before the sign-in: %v", s.OnEnd)
	}
	v.cookie = "demo/member"
	for _, allowed := range [][]reservation.OnEnd{{reservation.OnEndDelete, reservation.OnEndShelve}, {reservation.OnEndDelete}} {
		bookings.Configure(planning.Limits{}, planning.Defaults{OnEnd: reservation.OnEndDelete, OnEndChoices: allowed})
		if s := v.session(); !slices.Equal(s.OnEnd, fault.Texts(allowed)) {
			t.Errorf("with %v the session lists %v", allowed, s.OnEnd)
		}
	}
	bookings.Configure(planning.Limits{}, planning.Defaults{OnEnd: reservation.OnEndDelete})
	if s := v.session(); !slices.Equal(s.OnEnd, fault.Texts(reservation.OnEnds)) {
		t.Errorf("without a rule the session lists %v", s.OnEnd)
	}
}

func TestOnlyOperatorsReadTheNamesOfProjects(t *testing.T) {
	v, _ := startDoor(t)
	for token, want := range map[string]int{"": http.StatusUnauthorized, "demo/member": http.StatusForbidden, "demo/admin": http.StatusOK} {
		v.cookie = token
		a := v.call(http.MethodGet, "/dashboard/projects", "")
		if a.status != want || want == http.StatusOK && string(a.body) != `{"projects":[{"id":"far","name":"Far"},{"id":"of demo/admin","name":"Token"}]}`+"\n" {
			t.Errorf("%q: %v", token, a)
		}
	}
}

func TestTheCookieIsForThePageAlone(t *testing.T) {
	v, _ := startDoor(t)
	v.cookie = "demo/member"
	for _, from := range []string{"cross-site", "same-site"} {
		v.header = []string{"Sec-Fetch-Site", from}
		if a := v.call(http.MethodGet, "/v1/reservations", ""); a.status != http.StatusUnauthorized {
			t.Errorf("a reading %s: %v", from, a)
		}
		if a := v.call(http.MethodPost, "/v1/reservations", `{"name": "r", "duration": 3600}`); a.status != http.StatusForbidden {
			t.Errorf("a booking %s: %v", from, a)
		}
		if a := v.call(http.MethodDelete, "/dashboard/session", ""); a.status != http.StatusForbidden {
			t.Errorf("a sign-out %s: %v", from, a)
		}
	}
	v.header = []string{"Sec-Fetch-Site", "none"}
	if a := v.call(http.MethodGet, "/v1/reservations", ""); a.status != http.StatusOK {
		t.Errorf("a typed address: %v", a)
	}
	// Without TLS browsers send no Sec-Fetch-Site, but an Origin with each change.
	v.header = nil
	for origin, want := range map[string]int{"": http.StatusUnauthorized, "http://evil.example": http.StatusForbidden, v.cloud.url: http.StatusCreated} {
		var header []string
		if origin != "" {
			header = []string{"Origin", origin}
		}
		if a := v.call(http.MethodPost, "/v1/reservations", `{"name": "r", "duration": 3600}`, header...); a.status != want {
			t.Errorf("a booking of %q: %v", origin, a)
		}
	}
	// A token in the header comes first.
	if a := v.call(http.MethodGet, "/v1/reservations", "", "X-Auth-Token", "wrong"); a.status != http.StatusUnauthorized {
		t.Errorf("a wrong token beside the cookie: %v", a)
	}
}

func TestBehindTLSTheCookieIsSecureAndOfThePrefix(t *testing.T) {
	v, _ := startDoor(t, func(o *api.Options) { o.ProxyHeaders = true })
	a := v.call(http.MethodPost, "/dashboard/session", `{"token": "demo/member"}`, "X-Forwarded-Proto", "https", "X-Forwarded-Prefix", "/reservation", "X-Forwarded-Host", "cloud.example")
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil || !cookie.Secure || cookie.Path != "/reservation/" {
		t.Errorf("the cookie is %v, %v", cookie, err)
	}
}

func TestAttemptsToSignInAreLimitedAsWrongTokensAre(t *testing.T) {
	v, _ := startDoor(t, limited)
	wrong := func() answer {
		return v.call(http.MethodPost, "/dashboard/session", `{"username": "u", "password": "guess"}`)
	}
	for range 3 {
		if a := wrong(); a.status != http.StatusUnauthorized {
			t.Fatalf("a guess: %v", a)
		}
	}
	if a := wrong(); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "10" {
		t.Errorf("the fourth guess: %v", a)
	}
	if a := v.call(http.MethodPost, "/dashboard/session", `{"token": "garbage"}`); a.status != http.StatusTooManyRequests {
		t.Errorf("a wrong token: %v", a)
	}
	v.cloud.wait(10)
	for range 5 { // those who are right use nothing up
		if a := v.call(http.MethodPost, "/dashboard/session", `{"username": "u", "password": "right"}`); a.status != http.StatusNoContent {
			t.Errorf("the right password: %v", a)
		}
	}
}

// Anybody may sign out with any token, and Keystone is asked to revoke it.
func TestWrongTokensThatSignOutAreLimitedAsOthersAre(t *testing.T) {
	v, _ := startDoor(t, limited)
	v.cookie = "garbage"
	out := func(token string) answer {
		return v.call(http.MethodDelete, "/dashboard/session", "", "X-Auth-Token", token)
	}
	for range 3 {
		if a := out("garbage"); a.status != http.StatusNoContent || v.cookie != "" {
			t.Fatalf("a wrong token: %v, the cookie is %q", a, v.cookie)
		}
	}
	if a := out("garbage"); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "10" {
		t.Errorf("the fourth wrong token: %v", a)
	}
	v.cloud.wait(10)
	for range 5 { // right ones use nothing up
		if a := out("demo/member"); a.status != http.StatusNoContent {
			t.Errorf("a right token: %v", a)
		}
	}
}

func TestASignInNamesWhatIsMissing(t *testing.T) {
	v, _ := startDoor(t)
	for body, want := range map[string]string{
		`{}`:                                "enter a name and a password",
		`{"username": "u"}`:                 "enter a name and a password",
		`{"application_credential_id": ""}`: "enter a name and a password",
		`{"pasword": "x"}`:                  "did you mean",
		`[]`:                                "must be a JSON object",
	} {
		if a := v.call(http.MethodPost, "/dashboard/session", body); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %v", body, a)
		}
	}
}

func TestALongCalendarIsCompressedForClientsThatAcceptIt(t *testing.T) {
	hosts := make([]inventory.Host, 200)
	for i := range hosts {
		hosts[i] = machine(fmt.Sprintf("host-%03d", i))
	}
	c := start(t, setup{hosts: hosts})
	_, plain := c.demo.exchange("GET", "/v1/calendar?start=2026-11-20T12:00:00Z&end=2026-11-21T12:00:00Z&facts=true", "", "Accept-Encoding", "identity")
	_, small := c.demo.exchange("GET", "/v1/calendar?start=2026-11-20T12:00:00Z&end=2026-11-21T12:00:00Z&facts=true", "", "Accept-Encoding", "gzip")
	if plain.header.Get("Content-Encoding") != "" || small.header.Get("Content-Encoding") != "gzip" || !slices.Contains(small.header.Values("Vary"), "Accept-Encoding") {
		t.Fatalf("the headers are %v and %v", plain.header, small.header)
	}
	reader, err := gzip.NewReader(bytes.NewReader(small.body))
	must(t, err)
	text, err := io.ReadAll(reader)
	must(t, err)
	if !bytes.Equal(text, plain.body) || len(small.body) > len(plain.body)/4 || small.header.Get("ETag") != plain.header.Get("ETag") {
		t.Errorf("%d bytes became %d, and %d again", len(plain.body), len(small.body), len(text))
	}
}
