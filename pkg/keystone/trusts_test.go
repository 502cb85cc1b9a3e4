// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// The test uses a server that answers like Keystone: other tests need the lab's owners.
func TestTheTrustOfAnOwnerWhoIsDisabledIsRefusedAndCanBeEnded(t *testing.T) {
	ended := ""
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodDelete:
			ended += r.Header.Get("X-Auth-Token")
			w.WriteHeader(http.StatusNoContent)
		case strings.Contains(string(body), "OS-TRUST"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error": {"code": 403, "message": "Trustor is disabled.", "title": "Forbidden"}}`)
		default:
			w.Header().Set("X-Subject-Token", "own")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "user": {"id": "u", "name": "u"}, "catalog": []}}`)
		}
	}))
	defer server.Close()
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: server.URL + "/v3", Username: "u", Password: "p", UserDomainName: "d", ProjectName: "p", ProjectDomainName: "d",
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	trusts := keystone.Trusts{Session: session}
	if _, err := trusts.Enter(t.Context(), "trust"); !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "was deleted or disabled") {
		t.Errorf("Enter: %v", err)
	}
	for _, trust := range []string{"trust", "gone"} {
		if err := trusts.End(t.Context(), trust); err != nil {
			t.Errorf("End %s: %v", trust, err)
		}
	}
	if ended != "own" {
		t.Errorf("the trust was ended with token %q, want that of the service user", ended)
	}
}
