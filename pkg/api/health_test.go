// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestTheHealthCheckSpeaksEachForm(t *testing.T) {
	c := start(t, setup{})
	hold := func(text, json string, status, head int) {
		t.Helper()
		for name, form := range map[string]struct {
			accept, want string
		}{
			"text": {"text/plain", text}, "anything": {"*/*", text}, "json": {"application/json", json}, "something else": {"image/png", text},
		} {
			a := c.nobody.send("GET", "/healthcheck", "", "Accept", form.accept)
			if a.status != status || string(a.body) != form.want {
				t.Errorf("%s: got %v", name, a)
			}
		}
		if a := c.nobody.send("HEAD", "/healthcheck", ""); a.status != head || len(a.body) > 0 {
			t.Errorf("HEAD: got %v", a)
		}
	}
	hold("OK\n", `{"detailed":false,"reasons":["OK"]}`+"\n", 200, 204)
	must(t, c.store.Close())
	c.wait(1)
	hold("the database does not answer\n", `{"detailed":false,"reasons":["the database does not answer"]}`+"\n", 503, 503)
	if log := c.log.String(); strings.Count(log, "a part is not healthy") != 1 || !strings.Contains(log, "closed") {
		t.Errorf("the log does not contain the reason once:\n%s", log)
	}
}

func TestAHealthCheckIsLoggedForThoseWhoDebugAlone(t *testing.T) {
	c := start(t, setup{})
	c.nobody.get("/healthcheck")
	c.nobody.get("/")
	var levels []string
	for line := range strings.Lines(c.log.String()) {
		if m := regexp.MustCompile(`level=(\w+) msg=answered .*path=(\S+)`).FindStringSubmatch(line); m != nil {
			levels = append(levels, m[1]+" "+m[2])
		}
	}
	if diff := cmp.Diff([]string{"DEBUG /healthcheck", "INFO /"}, levels); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, c.log.String())
	}
}

func TestTheDatabaseIsUpWhileItAnswers(t *testing.T) {
	c := start(t, setup{})
	for _, want := range []string{"almanac_database_up 1\n", "almanac_database_up 0\n"} {
		if metrics := string(c.nobody.get("/metrics").body); !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
		must(t, c.store.Close())
		c.wait(1)
	}
}

func TestTheHealthCheckAsksTheDatabaseOnceASecond(t *testing.T) {
	var asked atomic.Int64
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Ping = func(context.Context) error { asked.Add(1); return nil }
	}})
	for range 3 {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { c.nobody.get("/healthcheck") })
		}
		all.Wait()
		c.wait(1)
	}
	if got := asked.Load(); got != 3 {
		t.Errorf("the part was checked %d times in three seconds", got)
	}
}

func TestADatabaseThatHangsDoesNotHoldTheHealthCheckUp(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Ping = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	}})
	synctest.Test(t, func(t *testing.T) {
		begun, recorder := time.Now(), httptest.NewRecorder()
		c.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), "GET", "/healthcheck", nil))
		if took := time.Since(begun); recorder.Code != http.StatusServiceUnavailable || took != 3*time.Second {
			t.Errorf("%d after %v", recorder.Code, took)
		}
	})
}

func TestAPartThatOnlyBeginsIsNotReadyAndNoWarning(t *testing.T) {
	var broken atomic.Pointer[error]
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Probes = []api.Probe{{Name: "broker", Check: func(context.Context) error { return *broken.Load() }}}
	}})
	for _, step := range []struct {
		err                error
		status, bad, again int
	}{
		{api.ErrStarting, 503, 0, 0}, {nil, 200, 0, 0}, {errors.New("it is away"), 503, 1, 0}, {nil, 200, 1, 1},
		{api.ErrStarting, 503, 1, 1}, {errors.New("it is away"), 503, 2, 1}, {nil, 200, 2, 2},
	} {
		broken.Store(&step.err)
		c.wait(1)
		if a := c.admin.get("/v1/readiness"); a.status != step.status {
			t.Errorf("%v: %v", step.err, a)
		}
		log := c.log.String()
		if bad, again := strings.Count(log, "a part is not healthy"), strings.Count(log, "a part is healthy again"); bad != step.bad || again != step.again {
			t.Errorf("%v: the log reports %d failures and %d recoveries, want %d and %d", step.err, bad, again, step.bad, step.again)
		}
	}
}

func TestReadinessTellsOfEachPart(t *testing.T) {
	var broken atomic.Pointer[error]
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Probes = []api.Probe{
			{Name: "messaging", Check: func(context.Context) error { return *broken.Load() }},
			{Name: "keystone", Check: func(context.Context) error { return nil }},
		}
	}})
	part := func(name, reason string, seconds int64) v1.Part {
		return v1.Part{Name: name, OK: reason == "", Reason: reason, Since: noon.Add(seconds).Time()}
	}
	for _, step := range []struct {
		after  int64
		err    error
		status int
		want   v1.Part
	}{
		{0, nil, 200, part("messaging", "", 0)},
		{10, errors.New("refused"), 503, part("messaging", "refused", 10)},
		{10, errors.New("no route"), 503, part("messaging", "no route", 10)},
		{10, nil, 200, part("messaging", "", 30)},
	} {
		broken.Store(&step.err)
		c.wait(step.after)
		got := want[v1.Readiness](t, c.admin.get("/v1/readiness"), step.status)
		all := v1.Readiness{Ready: step.status == 200, Parts: []v1.Part{part("database", "", 0), step.want, part("keystone", "", 0)}}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("readiness (-want +got):\n%s", diff)
		}
		if a := c.nobody.get("/healthcheck"); a.status != http.StatusOK || strings.Contains(string(a.body), "messaging") {
			t.Errorf("the health check answers %v", a)
		}
	}
}

func TestAServerThatDrainsSendsClientsAwayAndServesOn(t *testing.T) {
	c := start(t, setup{})
	if a := c.demo.get("/v1/hosts"); a.closed {
		t.Error("a connection is closed before")
	}
	c.handler.Drain()
	if a := c.nobody.get("/healthcheck"); a.status != http.StatusServiceUnavailable || string(a.body) != "draining\n" {
		t.Errorf("got %v", a)
	}
	if got := want[v1.Readiness](t, c.admin.get("/v1/readiness"), http.StatusServiceUnavailable); got.Ready || !got.Draining || !got.Parts[0].OK {
		t.Errorf("got %+v", got)
	}
	c.demo.book(`{"name": "r", "duration": 60}`)
	for _, path := range []string{"/v1/hosts", "/healthcheck", "/v1/nothing"} {
		if a := c.demo.get(path); !a.closed {
			t.Errorf("%s leaves the connection open", path)
		}
	}
}

func TestLinksAreAsTheProxySaysWhereItIsBelieved(t *testing.T) {
	type versions struct {
		Version struct{ Links []struct{ Href string } }
	}
	for name, test := range map[string]struct {
		believed bool
		header   []string
		want     string // HOST stands for the host of the request
	}{
		"not believed": {false, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "cloud.example"}, "http://HOST/v1"},
		"no proxy":     {true, nil, "http://HOST/v1"},
		"scheme":       {true, []string{"X-Forwarded-Proto", "https"}, "https://HOST/v1"},
		"all": {true, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "cloud.example:8443", "X-Forwarded-Prefix", "/reservation/"},
			"https://cloud.example:8443/reservation/v1"},
		"two proxies":  {true, []string{"X-Forwarded-Proto", "https, http", "X-Forwarded-Host", "cloud.example, inner"}, "https://cloud.example/v1"},
		"wrong scheme": {true, []string{"X-Forwarded-Proto", "javascript"}, "http://HOST/v1"},
	} {
		c := start(t, setup{adjust: func(o *api.Options) { o.ProxyHeaders = test.believed }})
		got := want[versions](t, c.nobody.send("GET", "/v1", "", test.header...), http.StatusOK).Version.Links[0].Href
		if link := strings.Replace(test.want, "HOST", strings.TrimPrefix(c.url, "http://"), 1); got != link {
			t.Errorf("%s: got %s, want %s", name, got, link)
		}
	}
}
