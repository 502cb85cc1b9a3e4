// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
)

const (
	now    = span.Instant(1_796_083_200)
	one    = "start,price\n2026-12-01T00:00:00Z,1\n2026-12-01T01:00:00Z,\n"
	longer = "start,price\n2026-12-01T00:00:00Z,1\n2026-12-01T02:00:00Z,\n"
)

func newFeed(source string) *feed.Feed {
	return feed.New(feed.Options{Source: source, Every: time.Minute, Timeout: 10 * time.Second, MaxAge: 3600, Now: func() span.Instant { return now }})
}

// reads returns how many seconds the newest tariff covers after a reading that succeeds, and when it was written.
func reads(t *testing.T, f *feed.Feed) (seconds int64, written span.Instant) {
	t.Helper()
	if err := f.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.Newest().Known().Seconds(), f.Newest().Written
}

// fails returns the error of a reading, which changes nothing.
func fails(t *testing.T, f *feed.Feed) error {
	t.Helper()
	before := f.Newest()
	err := f.Read(t.Context())
	if err == nil {
		t.Fatal("a reading succeeds that must fail")
	}
	if f.Newest() != before {
		t.Error("a reading that fails replaces the tariff")
	}
	return err
}

func write(t *testing.T, path, text string, at span.Instant) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at.Time(), at.Time()); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReadAgainAndAsOldAsItsLastChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tariff.csv")
	f := newFeed(path)
	if err := fails(t, f); f.Newest() != nil {
		t.Errorf("without a file (%v) there is a tariff", err)
	}
	write(t, path, one, now-100)
	if seconds, written := reads(t, f); seconds != 3600 || written != now-100 {
		t.Errorf("%d s from %v, want an hour from %v", seconds, written, now-100)
	}
	curve := f.Newest().Curve
	write(t, path, one, now-50)
	if _, written := reads(t, f); written != now-50 || f.Newest().Curve != curve {
		t.Errorf("the same text written again is from %v, want %v", written, now-50)
	}
	write(t, path, longer, now-20)
	if seconds, written := reads(t, f); seconds != 7200 || written != now-20 {
		t.Errorf("%d s from %v, want two hours from %v", seconds, written, now-20)
	}
	write(t, path, "start,price\n2026-12-01T00:00:00Z,NaN\n", now)
	if err := fails(t, f); !strings.Contains(err.Error(), "line 2: price") {
		t.Errorf("%v, want the line", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fails(t, f)
	if f.Newest().Written != now-20 {
		t.Errorf("the last good tariff is from %v, want %v", f.Newest().Written, now-20)
	}
}

func TestAStaleTariffIsReadAndAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tariff.csv")
	f := newFeed(path)
	write(t, path, one, now-3601)
	if err := f.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "is stale") || f.Newest() == nil || !f.Newest().Stale(now) {
		t.Errorf("%v, %+v; want a stale tariff and an error that says so", err, f.Newest())
	}
	write(t, path, one, now-3600)
	reads(t, f)
}

func TestWhatIsNoFileOrTooLargeIsRefused(t *testing.T) {
	folder := t.TempDir()
	if err := fails(t, newFeed(folder)); !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("a folder: %v", err)
	}
	large := filepath.Join(folder, "large.csv")
	write(t, large, strings.Repeat(" ", 5<<20), now)
	if err := fails(t, newFeed(large)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("5 MiB: %v, want a TooLarge fault", err)
	}
}

func TestAnAnswerOverHTTPIsAsOldAsItsServerSays(t *testing.T) {
	var answering atomic.Value // a func(http.ResponseWriter); an answer that the feed gave up may still be written
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answering.Load().(func(http.ResponseWriter))(w) }))
	defer server.Close()
	text := func(text string, modified span.Instant) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if modified != 0 {
				w.Header().Set("Last-Modified", modified.Time().Format(http.TimeFormat))
			}
			_, _ = w.Write([]byte(text))
		}
	}
	f := newFeed(server.URL + "/prices?token=hidden")
	for what, c := range map[string]struct{ modified, want span.Instant }{
		"a server that says nothing":      {0, now},
		"a server that says an hour ago":  {now - 3600, now - 3600},
		"a server whose clock runs ahead": {now + 3600, now},
	} {
		answering.Store(text(one, c.modified))
		if _, written := reads(t, f); written != c.want {
			t.Errorf("%s: written %v, want %v", what, written, c.want)
		}
	}
	for what, wrong := range map[string]func(w http.ResponseWriter){
		"an error":               func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a page":                 text("<html>", 0),
		"an answer without end":  func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 5<<20)) },
		"a connection that ends": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		answering.Store(wrong)
		if err := fails(t, f); strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v shows the token", what, err)
		}
	}
	if f.Newest().Known().Seconds() != 3600 {
		t.Error("the last good tariff is gone")
	}
}

func TestAServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	leave := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave }))
	defer server.Close()
	defer close(leave)
	f := feed.New(feed.Options{Source: server.URL, Timeout: time.Millisecond, Now: func() span.Instant { return now }})
	if err := f.Read(context.Background()); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("%v, want that the time is over", err)
	}
}

func TestASourceIsAFileOrAURL(t *testing.T) {
	for source, want := range map[string]bool{
		"": true, "tariff.csv": true, "/etc/almanac/tariff.csv": true, "https://prices.example.org/a?b=c": true, "http://127.0.0.1:80": true,
		"ftp://prices.example.org/a": false, "file:///etc/almanac/tariff.csv": false, "https://": false, "http://[::1": false,
	} {
		if err := (feed.Options{Source: source}).Check(); (err == nil) != want || err != nil && fault.Of(err).Field != "source" {
			t.Errorf("%q: %v, want that it is allowed: %v", source, err, want)
		}
	}
}
