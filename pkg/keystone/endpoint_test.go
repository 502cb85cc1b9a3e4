// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestTheEndpointIsThatOfTheRegionAndTheInterface(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	kind := "t-" + strings.ToLower(rand.Text())
	service := s.create("service", object{"type": kind, "name": kind})
	t.Cleanup(func() {
		s.context = context.Background() // the context of the test has ended
		s.call(s.admin, http.MethodDelete, "/services/"+service, nil, http.StatusNoContent)
	})
	add := func(region, face, address string) {
		s.create("endpoint", object{"service_id": service, "region": region, "interface": face, "url": address})
	}
	ask := func(v variables, kind string) (string, error) {
		return s.stay(s.openrc(a).with(v)).Endpoint(t.Context(), kind)
	}
	add("RegionOne", "public", "http://one/v1")
	add("RegionOne", "internal", "http://inside/v1")
	for want, v := range map[string]variables{
		"http://one/v1":    nil,
		"http://inside/v1": {"OS_INTERFACE": "internalURL", "OS_REGION_NAME": "RegionOne"},
	} {
		if got, err := ask(v, kind); err != nil || got != want {
			t.Errorf("%v: got %q, %v; want %q", v, got, err, want)
		}
	}
	for name, tc := range map[string]struct {
		variables  variables
		kind       string
		wantKind   fault.Kind
		wantInside string
	}{
		"no service":      {variables{"OS_REGION_NAME": "RegionOne"}, "nothing", fault.Unavailable, "no service nothing in the catalog of region RegionOne"},
		"another region":  {variables{"OS_REGION_NAME": "RegionTwo"}, kind, fault.Unavailable, "public in RegionOne"},
		"no such address": {variables{"OS_INTERFACE": "admin"}, kind, fault.Unavailable, "with interface admin"},
		"no project":      {variables{"OS_PROJECT_NAME": ""}, kind, fault.Unavailable, "for which project"},
	} {
		if _, err := ask(tc.variables, tc.kind); !fault.Is(err, tc.wantKind) || !strings.Contains(err.Error(), tc.wantInside) {
			t.Errorf("%s: got %v, want %q", name, err, tc.wantInside)
		}
	}
	add("RegionTwo", "public", "http://two/v1")
	if _, err := ask(nil, kind); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "RegionOne, RegionTwo") {
		t.Errorf("two regions: got %v", err)
	}
}

func TestKeystoneIsBelievedOnlyWithACertificateOfTheNamedAuthorities(t *testing.T) {
	s := newScene(t, nil)
	target, err := url.Parse(s.front.URL)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that must fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	rc := s.openrc(s.account("member")).with(variables{"OS_AUTH_URL": secure.URL})
	if _, err := s.stay(rc).Token(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: got %v", err)
	}
	for _, trust := range []variables{{"OS_CACERT": file}, {"OS_INSECURE": "true"}} {
		if _, err := s.stay(rc.with(trust)).Token(t.Context()); err != nil {
			t.Errorf("%v: %v", trust, err)
		}
	}
}
