// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// newSession returns a session of the scene's service user, through the front.
func (s *scene) newSession() *keystone.Session {
	s.t.Helper()
	session, err := keystone.NewSession(s.options.Connection, s.clock.now, slog.New(slog.NewTextHandler(s.log, nil)))
	if err != nil {
		s.t.Fatal(err)
	}
	return session
}

func TestThoseWhoseTokenWasRefusedLogInTogether(t *testing.T) {
	s := newScene(t, nil)
	session := s.newSession()
	first, err := session.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if next, err := session.Token(t.Context(), first); err != nil || next == first {
				t.Errorf("the same token, or %v", err)
			}
		})
	}
	all.Wait()
	if got := s.front.logins(); got != 2 {
		t.Errorf("%d logins", got)
	}
}

func TestARefusedSessionLeavesKeystoneAlone(t *testing.T) {
	s := newScene(t, nil)
	s.options.Password = "not-the-password"
	session := s.newSession()
	for range 20 {
		_, err := session.Token(t.Context(), "")
		if f := fault.Of(err); f.Kind != fault.Unavailable || !strings.Contains(err.Error(), "Almanac gets no token") || strings.Contains(err.Error(), "not-the-password") {
			t.Fatalf("got %v", err)
		}
	}
	if got := s.front.logins(); got != 1 {
		t.Errorf("%d logins", got)
	}
	_, err := session.Token(t.Context(), "")
	if got := fault.Of(err).RetryAfter; got != 30*time.Second {
		t.Errorf("retry after %v", got)
	}
}

func TestATokenOfTheSystemIsOfNoProject(t *testing.T) {
	s := newScene(t, nil)
	_, s.options.Username, s.options.Password = lab(t)
	s.options.ProjectName, s.options.SystemScope = "", "all"
	token, err := s.newSession().Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.validate(token); err != nil || !got.System || got.ProjectID != "" {
		t.Errorf("got %+v, %v; want a token of the system", got, err)
	}
	s.options.SystemScope = "some"
	if err := s.options.Connection.Check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("a part of the system: %v", err)
	}
}

func TestALoginThatIsGivenUpIsNoRefusal(t *testing.T) {
	s := newScene(t, nil)
	session := s.newSession()
	hold := make(chan struct{})
	s.front.set(func(f *front) { f.hold = hold })
	ctx, giveUp := context.WithCancelCause(t.Context())
	gone := make(chan error)
	go func() {
		_, err := session.Token(ctx, "")
		gone <- err
	}()
	s.front.awaitLogins(1)
	giveUp(&openstack.Answer{Service: "nova", Status: http.StatusUnauthorized})
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(hold)
	if _, err := session.Token(t.Context(), ""); err != nil || s.log.String() != "" {
		t.Errorf("got %v; the log:\n%s", err, s.log)
	}
}

func TestALoginWhoseAnswerWasCutIsRepeatedOnce(t *testing.T) {
	s := newScene(t, nil)
	s.front.set(func(f *front) { f.cut = 1 })
	if _, err := s.newSession().Token(t.Context(), ""); err != nil {
		t.Error(err)
	}
	s.front.set(func(f *front) { f.cut = 2 })
	if _, err := s.newSession().Token(t.Context(), ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if got := s.front.logins(); got != 4 {
		t.Errorf("%d logins, want 4", got)
	}
}

func TestAServiceIsFoundByRegionAndByTheBestInterface(t *testing.T) {
	s := newScene(t, nil)
	session := s.newSession()
	kind := "t-" + strings.ToLower(rand.Text())
	ask := func(region string, interfaces ...string) (string, error) {
		return session.Endpoint(t.Context(), kind, region, interfaces)
	}
	if _, err := ask("", "internal"); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "there is no service "+kind) {
		t.Errorf("before the service is registered: %v", err)
	}
	service := s.create("service", object{"type": kind, "name": kind})
	t.Cleanup(func() {
		s.context = context.Background() // the context of the test has ended
		s.call(s.admin, http.MethodDelete, "/services/"+service, nil, http.StatusNoContent)
	})
	add := func(region, face, address string) {
		s.create("endpoint", object{"service_id": service, "region": region, "interface": face, "url": address})
	}
	add("RegionOne", "public", "http://one/")
	if got, err := ask("", "internal", "public"); err != nil || got != "http://one/" {
		t.Errorf("as soon as the service is registered: %q, %v", got, err)
	}
	if _, err := ask("RegionOne", "internal", "admin"); err == nil || !strings.Contains(err.Error(), "with interface internal or admin; there is public in RegionOne") {
		t.Errorf("another interface: %v", err)
	}
	if _, err := ask("RegionTwo", "public"); err == nil || !strings.Contains(err.Error(), "the catalog of region RegionTwo") {
		t.Errorf("another region: %v", err)
	}
	add("RegionOne", "internal", "http://inside/")
	add("RegionTwo", "public", "http://two/")
	session = s.newSession()
	if got, err := ask("RegionOne", "internal", "public"); err != nil || got != "http://inside/" {
		t.Errorf("the best interface: %q, %v", got, err)
	}
	if _, err := ask("", "public"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "RegionOne, RegionTwo") {
		t.Errorf("two regions: %v", err)
	}
}
