// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// wrongAnswers lists bad answers that a service may send.
var wrongAnswers = map[string]http.HandlerFunc{
	"500":               status(http.StatusInternalServerError),
	"503":               status(http.StatusServiceUnavailable),
	"a page of a proxy": text(`<html><body>It works!</body></html>`),
	"nothing":           text(``),
	"an empty document": text(`{}`),
	"null":              text(`null`),
	"a list":            text(`[]`),
	"a document that is cut": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"servers": [`)
	},
	"wrong types": text(`{"servers": 7, "services": "none", "aggregates": {}, "resource_providers": true, "hypervisors": 1,
		"usages": [], "traits": {}, "inventories": 0, "provider_summaries": "x"}`),
	"absurd entries": text(`{"servers": [null], "services": [{}], "aggregates": [{"id": -1}], "resource_providers": [{"uuid": "x"}],
		"hypervisors": [{}], "usages": {"VCPU": -1}, "traits": null, "inventories": {"VCPU": {"total": 1e300, "reserved": 0, "allocation_ratio": 1}},
		"provider_summaries": {"x": {}}}`),
	"a redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	},
	"a connection that is cut": func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	},
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// lists holds the calls of a reading: the path of each and the service that answers it.
var lists = []struct{ service, path string }{
	{"nova", "/os-services"}, {"nova", "/os-aggregates"}, {"nova", "/servers/detail"}, {"nova", "/os-hypervisors"},
	{"placement", "/resource_providers"}, {"placement", "/inventories"}, {"placement", "/allocation_candidates"},
}

func TestAReadingThatFailsSaysWhoFailedAndChangesNothing(t *testing.T) {
	s := newScene(t, setting{fullEvery: 1})
	known := len(s.must())
	for _, list := range lists {
		f := s.compute
		if list.service == "placement" {
			f = s.place
		}
		for name, answer := range wrongAnswers {
			f.answer(func(w http.ResponseWriter, r *http.Request) bool {
				wrong := strings.HasSuffix(r.URL.Path, list.path) || list.path == "/os-hypervisors" && strings.Contains(r.URL.Path, list.path)
				if wrong {
					answer(w, r)
				}
				return wrong
			})
			s.fresh() // a new source has to read the inventories
			s.clock.advance(time.Second)
			_, err := s.Hosts(t.Context())
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Of(err).Message, list.service) {
				t.Errorf("%s for %s: got %v", name, list.path, err)
			}
		}
		f.answer(nil)
		s.clock.advance(time.Second)
		if got := len(s.must()); got != known {
			t.Errorf("after %s: %d hosts, want %d", list.path, got, known)
		}
	}
}

func TestWhatHappenedDuringAFailureIsReadAfterIt(t *testing.T) {
	s := newScene(t, setting{})
	s.must()
	id := s.boot(nil)
	s.place.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	if _, err := s.Hosts(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	s.place.answer(nil)
	s.await("it is shown", func(hosts []inventory.Host) bool {
		names, _ := where(hosts, id)
		return names != nil
	})
}

func TestAnEndedTokenIsReplacedInTheMiddle(t *testing.T) {
	s := newScene(t, setting{})
	s.must()
	before, err := s.session.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(w http.ResponseWriter, r *http.Request) bool {
		old := r.Header.Get("X-Auth-Token") == before
		if old {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return old
	}
	s.compute.answer(refused)
	s.place.answer(refused)
	s.must()
	if after, err := s.session.Token(t.Context(), ""); err != nil || after == before {
		t.Errorf("the session still has the old token, error %v", err)
	}
}

func TestNoTokenIsLoggedOrTold(t *testing.T) {
	s := newScene(t, setting{})
	token, err := s.session.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s.compute.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, err = s.Hosts(t.Context())
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "does not accept the token") {
		t.Errorf("got %v", err)
	}
	after, failed := s.session.Token(t.Context(), "")
	if failed != nil {
		t.Fatal(failed)
	}
	if text := err.Error() + s.log.String(); strings.Contains(text, token) || strings.Contains(text, after) {
		t.Errorf("a token is in %v, or in the log", err)
	}
}
