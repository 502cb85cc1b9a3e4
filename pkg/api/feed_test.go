// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	ics "github.com/arran4/golang-ical"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// event is an event of a calendar: its properties by name, and its alarm's trigger.
type event map[ics.ComponentProperty]string

// readCalendar reads an answer and checks that its lines have the form of RFC 5545.
func readCalendar(t reporter, a answer) (events []event) {
	t.Helper()
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/calendar; charset=utf-8" {
		t.Fatalf("got %q: %v", a.header.Get("Content-Type"), a)
	}
	text := string(a.body)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line has %d octets: %q", len(line), line)
		}
	}
	read, err := ics.ParseCalendar(strings.NewReader(text))
	must(t, err)
	for _, e := range read.Events() {
		properties := make(event)
		for _, p := range e.Properties {
			properties[ics.ComponentProperty(p.IANAToken)] = p.Value
		}
		for _, alarm := range e.Alarms() {
			trigger := alarm.GetProperty(ics.ComponentPropertyTrigger)
			properties["alarm"] = strings.Join(trigger.ICalParameters["RELATED"], "") + trigger.Value
		}
		events = append(events, properties)
	}
	return events
}

func TestTheFeedHasTheProjectsReservationsAsEvents(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A"), machine("B"), machine("C"), machine("D")}})
	c.other.bookAt("theirs", 0)
	begun := c.demo.book(`{"name": "begun, \"or\" so; \\n yes\nsecond line", "quantity": 2, "duration": 7200, "before_end": "30m"}`)
	ahead := c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60, "kind": "instance", "quantity": 3, "resources": {"vcpus": 1}}`, at(86400)))
	c.demo.delete("/v1/reservations/" + c.demo.bookAt("given up", 90000).ID)
	c.wait(10)
	changed := c.demo.patch("/v1/reservations/"+ahead.ID, `{"name": "ahead"}`)
	want[v1.Reservation](t, changed, http.StatusOK)

	got := readCalendar(t, c.reader.get("/v1/reservations.ics"))
	stored := make(map[string]reservation.Reservation)
	for _, r := range c.stored() {
		stored[r.ID] = r
	}
	events := []event{{
		"UID": begun.ID + "@almanac", "SEQUENCE": fmt.Sprint(stored[begun.ID].Version), "STATUS": "CONFIRMED",
		"SUMMARY": "begun, \"or\" so; \\n yes\nsecond line", "DESCRIPTION": "2 hosts, active\nHosts: B, C",
		"DTSTART": "20261120T120000Z", "DTEND": "20261120T140000Z", "DTSTAMP": "20261120T120010Z", "LAST-MODIFIED": "20261120T120010Z",
		"CREATED": "20261120T120000Z", "alarm": "END-PT1800S",
	}, {
		"UID": ahead.ID + "@almanac", "SEQUENCE": "2", "STATUS": "CONFIRMED",
		"SUMMARY": "ahead", "DESCRIPTION": "3 instances, pending",
		"DTSTART": "20261121T120000Z", "DTEND": "20261121T120100Z", "DTSTAMP": "20261120T120010Z", "LAST-MODIFIED": "20261120T120010Z",
		"CREATED": "20261120T120000Z", "alarm": "END-PT30S",
	}}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	again := c.reader.get("/v1/reservations.ics")
	if first := c.reader.get("/v1/reservations.ics"); string(first.body) != string(again.body) {
		t.Error("the same reservations make another text")
	}
}

func TestTheFeedForgetsWhatIsLongOver(t *testing.T) {
	c := start(t, setup{})
	c.demo.bookAt("old", 0)
	c.wait(0)
	c.wait(60)
	month := int64(30 * 24 * 3600)
	for _, test := range []struct{ after, want int64 }{{month - 1, 1}, {1, 0}} {
		c.wait(test.after)
		if got := readCalendar(t, c.demo.get("/v1/reservations.ics")); int64(len(got)) != test.want {
			t.Errorf("%d seconds later: got %v", test.after, got)
		}
	}
}

//make:test-drawn
func TestAnyNameIsReadBackFromTheFeed(t *testing.T) {
	c := start(t, setup{})
	rapid.Check(t, func(rt *rapid.T) {
		c.t = rt
		name := rapid.StringN(1, 200, 255).Draw(rt, "name")
		a := c.demo.post("/v1/reservations", encode(rt, map[string]any{"name": name, "duration": 60}))
		if a.status == http.StatusBadRequest {
			return // not a valid name
		}
		r := want[v1.Reservation](rt, a, http.StatusCreated)
		events := readCalendar(rt, c.demo.get("/v1/reservations.ics"))
		c.demo.delete("/v1/reservations/" + r.ID)
		if len(events) != 1 || events[0]["UID"] != r.ID+"@almanac" {
			rt.Fatalf("got %v", events)
		}
		if want := printable(name); events[0]["SUMMARY"] != want {
			rt.Errorf("got %q, want %q", events[0]["SUMMARY"], want)
		}
	})
}

// printable removes the characters from a text that iCalendar cannot contain.
func printable(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case r == '\r':
			out.WriteRune('\n')
		case r >= ' ' && (r < 0x7f || r > 0x9f) || r == '\n' || r == '\t':
			out.WriteRune(r)
		}
	}
	return out.String()
}

func TestASignedFeedIsReadByWhoeverHasItsLink(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret = "the secret" }})
	c.demo.bookAt("ours", 600)
	c.other.bookAt("theirs", 600)
	link := want[v1.Feed](t, c.reader.get("/v1/feed"), http.StatusOK).URL
	if again := want[v1.Feed](t, c.admin.get("/v1/feed"), http.StatusOK).URL; again != link {
		t.Errorf("the link was %s and is %s", link, again)
	}
	mac := hmac.New(sha256.New, []byte("the secret"))
	mac.Write([]byte("demo"))
	signature := hex.EncodeToString(mac.Sum(nil))
	if link != c.url+"/feeds/demo/"+signature+".ics" {
		t.Errorf("the link is %s", link)
	}
	path := strings.TrimPrefix(link, c.url)
	got := readCalendar(t, c.nobody.get(path))
	if len(got) != 1 || got[0]["SUMMARY"] != "ours" || strings.Contains(got[0]["DESCRIPTION"], "Hosts") {
		t.Errorf("got %v", got)
	}
	if strings.Contains(c.log.String(), signature) {
		t.Error("the log has the link")
	}
	for name, wrong := range map[string]string{
		"another project": strings.Replace(path, "demo", "other", 1), "no signature": "/feeds/demo/.ics",
		"cut": path[:len(path)-6] + ".ics", "upper case": "/feeds/demo/" + strings.ToUpper(signature) + ".ics", "no project": "/feeds//" + signature + ".ics", "more": "/feeds/demo/x/" + signature + ".ics",
	} {
		if wantError(t, c.nobody.get(wrong), http.StatusNotFound); strings.Contains(c.log.String(), signature) {
			t.Errorf("%s: the log has the signature", name)
		}
	}
}

// The link is a secret, whatever stands before it in the path: a client that joins a base URL with a slash at its end
// sends two slashes, a proxy may leave its prefix, and a user may change the address of the page.
func TestTheLinkToAFeedIsNeverLogged(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret, o.Dashboard = "secret", http.NotFoundHandler() }})
	_, link, _ := strings.Cut(want[v1.Feed](t, c.demo.get("/v1/feed"), http.StatusOK).URL, "/feeds/")
	_, signature, _ := strings.Cut(strings.TrimSuffix(link, ".ics"), "/")
	if len(signature) != 64 {
		t.Fatalf("the link is %q", link)
	}
	for _, before := range []string{
		"/feeds/", "//feeds/", "/almanac/feeds/", "/./feeds/", "/v1/feeds/", "/dashboard/feeds/", "/FEEDS/", "/feeds//", "/feeds/x/", "/x%2Ffeeds%2F",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/", nil)
			r.URL.Path = before + link
			c.handler.ServeHTTP(httptest.NewRecorder(), r)
			if strings.Contains(c.log.String(), signature[:60]) {
				t.Fatalf("%s %s: the log has the signature", method, before)
			}
		}
	}
	if !strings.Contains(c.log.String(), "/almanac/feeds***") {
		t.Error("the log lacks the path before the link")
	}
}

func TestANewSecretEndsAllLinks(t *testing.T) {
	old := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret = "old" }})
	link, err := url.Parse(want[v1.Feed](t, old.demo.get("/v1/feed"), http.StatusOK).URL)
	must(t, err)
	for name, secret := range map[string]string{"new": "new", "none": ""} {
		c := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret = secret }})
		if a := c.nobody.get(link.Path); a.status != http.StatusNotFound {
			t.Errorf("%s: got %v", name, a)
		}
	}
}

func TestWithoutASecretThereAreNoLinks(t *testing.T) {
	c := start(t, setup{})
	if e := wantError(t, c.demo.get("/v1/feed"), http.StatusNotFound); !strings.Contains(e.Message, "secret") {
		t.Errorf("got %q", e.Message)
	}
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte("demo"))
	wantError(t, c.nobody.get("/feeds/demo/"+hex.EncodeToString(mac.Sum(nil))+".ics"), http.StatusNotFound)
}

// The page asks for a link only where there is one.
func TestThePageLearnsWhetherThereAreLinks(t *testing.T) {
	for secret, there := range map[string]bool{"secret": true, "": false} {
		v, _ := startDoor(t, func(o *api.Options) { o.FeedSecret = secret })
		if v.session().Feeds {
			t.Error("a visitor who has not signed in learns of links")
		}
		v.call(http.MethodPost, "/dashboard/session", `{"username": "alice", "password": "right"}`)
		if got := v.session(); !got.SignedIn || got.Feeds != there {
			t.Errorf("with the secret %q: %+v", secret, got)
		}
	}
}

// A calendar program deletes what a feed no longer has.
func TestALongFeedHasWhatIsToComeAndThenTheLastThatIsPast(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A")}})
	for i := range 1101 {
		_, err := c.bookings.Book(t.Context(), memberOf("demo"), oneMinute(noon.Add(int64(60*i))), nil)
		must(t, err)
	}
	for passed, want := range map[int64]struct{ first, last, events int64 }{
		0:        {0, 999, 1000},    // of what is to come, the earliest
		600 * 60: {101, 1100, 1000}, // 501 to come, the last 499 past ones
	} {
		c.seconds.Store(int64(noon) + passed)
		got := readCalendar(t, c.demo.get("/v1/reservations.ics"))
		first, last := noon.Add(60*want.first).Time().Format("20060102T150405Z"), noon.Add(60*want.last).Time().Format("20060102T150405Z")
		if int64(len(got)) != want.events || got[0]["DTSTART"] != first || got[len(got)-1]["DTSTART"] != last {
			t.Errorf("after %d s: %d events from %s to %s, want %+v", passed, len(got), got[0]["DTSTART"], got[len(got)-1]["DTSTART"], want)
		}
	}
}

func TestAFeedThatHasNotChangedIsNotSentAgain(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret = "the secret" }})
	for i := range 20 {
		c.demo.bookAt(fmt.Sprint("r", i), int64(600+100*i))
	}
	link := strings.TrimPrefix(want[v1.Feed](t, c.reader.get("/v1/feed"), http.StatusOK).URL, c.url)
	booked := 0
	for path, by := range map[string]caller{"/v1/reservations.ics": c.demo, link: c.nobody} {
		booked++
		whole := by.send("GET", path, "")
		tag := whole.header.Get("ETag")
		if a := by.send("GET", path, "", "If-None-Match", tag); a.status != http.StatusNotModified || len(a.body) > 0 ||
			!slices.Equal(a.header.Values("Vary"), whole.header.Values("Vary")) {
			t.Errorf("%s: got %v, and Vary was %v", path, a, whole.header.Values("Vary"))
		}
		small := by.send("GET", path, "", "Accept-Encoding", "gzip")
		if small.header.Get("Content-Encoding") != "gzip" || len(small.body) > len(whole.body)/3 || small.header.Get("ETag") != tag {
			t.Errorf("%s: %d bytes of %d, %v", path, len(small.body), len(whole.body), small.header)
		}
		if a := by.ask(t, http.MethodHead, path, ""); a.Code != http.StatusOK || a.Header().Get("ETag") != tag {
			t.Errorf("HEAD %s: got %d %v", path, a.Code, a.Header())
		}
		c.demo.bookAt("another", int64(6000*booked))
		if a := by.send("GET", path, "", "If-None-Match", tag); a.status != http.StatusOK {
			t.Errorf("%s: got %v after a booking", path, a)
		}
	}
}

func memberOf(project string) booking.Caller { return booking.Caller{ProjectID: project} }

// oneMinute is a request for one host for a minute from start.
func oneMinute(start span.Instant) reservation.Request {
	return reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: start, Duration: 60}
}
