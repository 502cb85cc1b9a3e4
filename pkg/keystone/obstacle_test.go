// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// wantObstacle fails unless neither the command line nor the page gets a token for the account, with
// errors that say why.
func (s *scene) wantObstacle(v variables, want string) {
	s.t.Helper()
	_, atCommandLine := s.stay(v).Token(s.t.Context())
	page, err := keystone.NewSignIn(keystone.Connection{AuthURL: v["OS_AUTH_URL"]})
	if err != nil {
		s.t.Fatal(err)
	}
	_, atPage := page.SignIn(s.t.Context(), keystone.SignInCredentials{Username: v["OS_USERNAME"], Password: v["OS_PASSWORD"]})
	for where, err := range map[string]error{"command line": atCommandLine, "page": atPage} {
		if !fault.Is(err, fault.Unauthorized) || !strings.Contains(fault.Of(err).Message, want) {
			s.t.Errorf("%s: got %v, want %q", where, err, want)
		}
	}
}

func TestAUserWhoNeedsSeveralMethodsIsToldWhich(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	s.call(s.admin, http.MethodPatch, "/users/"+a.id, object{"user": object{"options": object{
		"multi_factor_auth_enabled": true, "multi_factor_auth_rules": [][]string{{"password", "application_credential"}},
	}}}, http.StatusOK)
	s.wantObstacle(s.openrc(a), "application_credential")
	wrong := s.openrc(a).with(variables{"OS_PASSWORD": "another"})
	s.wantObstacle(wrong, "check") // a wrong password learns nothing
}

// The answer is that of Keystone 22 with [security_compliance] change_password_upon_first_use.
func TestAUserWhosePasswordHasExpiredIsTold(t *testing.T) {
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":401,"message":"The password is expired and needs to be changed for user: 2b1e.","title":"Unauthorized"}}`)
	}))
	t.Cleanup(keystone.Close)
	s := newScene(t, nil)
	s.wantObstacle(s.openrc(s.account("member")).with(variables{"OS_AUTH_URL": keystone.URL + "/v3"}), "the password has expired")
}
