// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// echo is a service that answers with method, path and body, and counts requests.
func echo(t *testing.T) (url string, served *atomic.Int32) {
	t.Helper()
	served = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Asked-For", r.Host)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, served
}

// ask sends a request and returns status and body, or the error.
func ask(t *testing.T, ctx context.Context, method, url, body string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(said), err
}

func TestARequestThatArrivedCanBeSentAgain(t *testing.T) {
	target, served := echo(t)
	m := labtest.Interpose(t, target+"/v2.1")
	before := time.Now()
	if _, _, err := ask(t, t.Context(), http.MethodGet, m.URL+"/servers?host=a%2Fb", ""); err != nil {
		t.Fatal(err)
	}
	arrived := m.Since(before)
	if len(arrived) != 1 || arrived[0].At.Before(before) || len(m.Since(arrived[0].At.Add(1))) != 0 {
		t.Fatalf("arrived %v, want one request since then and none after it", arrived)
	}
	answer, err := http.DefaultClient.Do(arrived[0].Request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if want := "GET /v2.1/servers?host=a%2Fb "; err != nil || string(text) != want || served.Load() != 2 {
		t.Errorf("the service was sent %q (%v) and %d requests, want %q and 2", text, err, served.Load(), want)
	}
}

func TestAMeddlerForwardsUntouchedAndCounts(t *testing.T) {
	target, _ := echo(t)
	m := labtest.Interpose(t, target+"/v2.1")
	if !strings.HasSuffix(m.URL, "/v2.1") {
		t.Errorf("URL %s, want the path of the service", m.URL)
	}
	status, body, err := ask(t, t.Context(), http.MethodPost, m.URL+"/servers/7/action?x=%2F", `{"a": 1}`)
	if want := `POST /v2.1/servers/7/action?x=%2F {"a": 1}`; err != nil || status != http.StatusAccepted || body != want {
		t.Errorf("%d %q, %v; want 202 and %q", status, body, err, want)
	}
	if _, _, err := ask(t, t.Context(), http.MethodGet, m.URL+"/servers/detail", ""); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, pattern := range []string{"/", "GET /", "POST /v2.1/servers/{id}/action", "GET /v2.1/servers/", "/v2.1/flavors"} {
		got[pattern] = m.Count(pattern)
	}
	want := map[string]int{"/": 2, "GET /": 1, "POST /v2.1/servers/{id}/action": 1, "GET /v2.1/servers/": 1, "/v2.1/flavors": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if calls := m.Calls(); !slices.Equal(calls, []string{"POST /v2.1/servers/7/action?x=%2F", "GET /v2.1/servers/detail"}) {
		t.Errorf("calls %q", calls)
	}
}

func TestLinksInAnswersLeadBackToTheMeddler(t *testing.T) {
	target, _ := echo(t)
	m := labtest.Interpose(t, target)
	reply, err := http.Get(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if host := reply.Header.Get("X-Asked-For"); "http://"+host != m.URL {
		t.Errorf("the service saw a request for %s, want %s", host, m.URL)
	}
}

func TestAMeddlerAnswersWronglyWhatItIsToldTo(t *testing.T) {
	target, served := echo(t)
	m := labtest.Interpose(t, target)
	m.Meddle("GET /status", labtest.Status(http.StatusServiceUnavailable))
	m.Meddle("GET /text", labtest.Text("<html>"))
	m.Meddle("/cut", labtest.Cut)
	if status, _, err := ask(t, t.Context(), http.MethodGet, m.URL+"/status", ""); status != http.StatusServiceUnavailable {
		t.Errorf("status %d, %v; want 503", status, err)
	}
	if status, body, err := ask(t, t.Context(), http.MethodGet, m.URL+"/text", ""); status != http.StatusOK || body != "<html>" {
		t.Errorf("%d %q, %v; want 200 <html>", status, body, err)
	}
	if status, _, err := ask(t, t.Context(), http.MethodPost, m.URL+"/cut", ""); err == nil {
		t.Errorf("an answer with status %d, want none", status)
	}
	if n := served.Load(); n != 0 {
		t.Errorf("the service got %d requests, want none", n)
	}
	if status, _, err := ask(t, t.Context(), http.MethodPost, m.URL+"/status", ""); status != http.StatusAccepted {
		t.Errorf("another method: status %d, %v; want it forwarded", status, err)
	}
	m.Relent()
	if status, _, err := ask(t, t.Context(), http.MethodGet, m.URL+"/status", ""); status != http.StatusAccepted {
		t.Errorf("after Relent: status %d, %v; want it forwarded", status, err)
	}
}

func TestAMeddlerMeddlesSoManyTimes(t *testing.T) {
	target, _ := echo(t)
	m := labtest.Interpose(t, target)
	m.MeddleTimes(2, "/", labtest.Status(http.StatusInternalServerError))
	var got []int
	for range 3 {
		status, _, err := ask(t, t.Context(), http.MethodGet, m.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{500, 500, 202}, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestALostAnswerIsOfARequestThatWasCarriedOut(t *testing.T) {
	target, served := echo(t)
	m := labtest.Interpose(t, target)
	m.Meddle("POST /aggregates", labtest.Lose)
	if status, _, err := ask(t, t.Context(), http.MethodPost, m.URL+"/aggregates", "{}"); err == nil {
		t.Errorf("an answer with status %d, want none", status)
	}
	if n := served.Load(); n != 1 {
		t.Errorf("the service got %d requests, want 1", n)
	}
}

func TestARequestThatHangsEndsWithItsClient(t *testing.T) {
	target, _ := echo(t)
	m := labtest.Interpose(t, target)
	hangs := make(chan struct{})
	ended := make(chan struct{})
	m.Meddle("/", func(m *labtest.Meddler, w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		close(hangs)
		labtest.Hang(m, w, r)
	})
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-hangs
		giveUp()
	}()
	if _, _, err := ask(t, ctx, http.MethodPost, m.URL, "body"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the error of the client's context", err)
	}
	<-ended
}

func TestAMeddlerTellsForHowLongTheServiceWasAtWork(t *testing.T) {
	const each = 50 * time.Millisecond
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-time.After(each) }))
	t.Cleanup(slow.Close)
	m := labtest.Interpose(t, slow.URL)
	call := func() {
		if _, _, err := ask(t, t.Context(), http.MethodGet, m.URL, ""); err != nil {
			t.Error(err)
		}
	}
	call()
	begun := time.Now()
	var together sync.WaitGroup
	for range 5 {
		together.Go(call)
	}
	together.Wait()
	call()
	requests, took := m.Busy(begun)
	passed := time.Since(begun)
	if requests != 6 || took < 2*each || took > passed {
		t.Errorf("%d requests kept the service at work for %v of %v, want 6 for %v or more", requests, took, passed, 2*each)
	}
}
