// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// session returns the tokens secret-1, secret-2, …, each until it is stale.
type session struct {
	mu     sync.Mutex
	logins int
	err    error
}

func (s *session) Token(_ context.Context, stale string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token := fmt.Sprintf("secret-%d", s.logins); s.logins == 0 || stale == token {
		s.logins++
	}
	return fmt.Sprintf("secret-%d", s.logins), s.err
}

func (s *session) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no service compute in the catalog")
}

// stand is a server in the place of a service; the test writes its answers.
type stand struct {
	*openstack.Service
	session *session
	asked   atomic.Int64 // except for the versions
	waits   []time.Duration
	document,
	path string
}

const usual = `{"version": {"id": "v2.1", "version": "2.95", "min_version": "2.1"}}`

func newStand(t *testing.T, change func(o *openstack.Options), answer http.HandlerFunc) *stand {
	t.Helper()
	s := &stand{session: &session{}, document: usual}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v2.1/") {
			s.path = r.URL.Path
			_, _ = io.WriteString(w, s.document)
			return
		}
		s.asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	o := openstack.Options{Override: server.URL + "/v2.1", Wait: func(_ context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return nil
	}}
	if change != nil {
		change(&o)
	}
	var err error
	s.Service, err = openstack.NewService(s.session, openstack.Kind{
		Name: "nova", Type: "compute", Path: "v2.1",
		Least: openstack.Microversion{Major: 2, Minor: 53}, Most: openstack.Microversion{Major: 2, Minor: 100},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func (s *stand) get(t *testing.T) error {
	var into map[string]any
	return s.Get(t.Context(), "list the things", "things", &into)
}

func (s *stand) post(t *testing.T) error {
	return s.Change(t.Context(), "make a thing", func(ctx context.Context, c *gophercloud.ServiceClient) error {
		_, err := c.Post(ctx, c.ServiceURL("things"), map[string]string{"name": "x"}, nil, nil)
		return err
	})
}
