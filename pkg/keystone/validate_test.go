// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

func TestATokenTellsItsOwner(t *testing.T) {
	s := newScene(t, nil)
	member, reader, admin := s.account("member"), s.account("reader"), s.account("admin")
	s.call(s.cloud.admin, http.MethodPut, "/system/users/"+admin.id+"/roles/"+s.role("admin"), nil, http.StatusNoContent)
	s.call(s.cloud.admin, http.MethodPut, "/domains/default/users/"+admin.id+"/roles/"+s.role("admin"), nil, http.StatusNoContent)
	ofProject := func(a account, roles ...string) keystone.Token {
		return keystone.Token{
			UserID: a.id, UserName: a.name, UserDomainID: "default", UserDomainName: "Default",
			ProjectID: a.project, ProjectName: a.projectName, ProjectDomainID: "default", ProjectDomainName: "Default",
			IsAdminProject: true, Roles: roles,
		}
	}
	ofAdmin := keystone.Token{
		UserID: admin.id, UserName: admin.name, UserDomainID: "default", UserDomainName: "Default",
		IsAdminProject: true, Roles: []string{"admin", "member", "reader"},
	}
	ofSystem, ofDomain := ofAdmin, ofAdmin
	ofSystem.System = true
	ofDomain.DomainID, ofDomain.DomainName = "default", "Default"
	for name, c := range map[string]struct {
		token string
		want  keystone.Token
	}{
		"member":                         {s.token(member), ofProject(member, "member", "reader")},
		"reader":                         {s.token(reader), ofProject(reader, "reader")},
		"admin":                          {s.token(admin), ofProject(admin, "admin", "member", "reader")},
		"admin of the system":            {s.login(admin.identity(), object{"system": object{"all": true}}), ofSystem},
		"admin of a domain":              {s.login(admin.identity(), object{"domain": object{"id": "default"}}), ofDomain},
		"application credential":         {s.applicationCredential(member, object{}), ofProject(member, "member", "reader")},
		"one that may make others":       {s.applicationCredential(member, object{"unrestricted": true}), ofProject(member, "member", "reader")},
		"one with fewer roles":           {s.applicationCredential(member, object{"roles": []object{{"name": "reader"}}}), ofProject(member, "reader")},
		"with white space from a header": {" " + s.token(reader) + "\r\n", ofProject(reader, "reader")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Validate(t.Context(), c.token, "")
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got.Roles)
			got.Roles = slices.DeleteFunc(got.Roles, func(role string) bool { return role == "manager" }) // since Bobcat, admin implies it
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(keystone.Token{}, "Expires"), cmpopts.IgnoreUnexported(keystone.Token{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !got.Expires.After(s.clock.now()) {
				t.Errorf("it expires at %v", got.Expires)
			}
		})
	}
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	s := newScene(t, nil)
	revoked := s.token(s.account("member"))
	s.revoke(revoked)
	for name, c := range map[string]struct {
		token string
		asked int
	}{
		"none":                     {"", 0},
		"blank":                    {" \t", 0},
		"one with a line break":    {"gAAAA\r\nX-Note: x", 0},
		"one with strange letters": {"gAAAAé", 0},
		"a very long one":          {strings.Repeat("a", 100_000), 0},
		"garbage":                  {"garbage", 1},
		"garbage, Fernet-like":     {"gAAAAABl" + strings.Repeat("x", 200), 1},
		"a revoked one":            {revoked, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.front.validations()
			_, err := s.Validate(t.Context(), c.token, "")
			if !fault.Is(err, fault.Unauthorized) {
				t.Errorf("got %v", err)
			}
			if asked := s.front.validations() - before; asked != c.asked {
				t.Errorf("Keystone was asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

func TestAServiceTokenMustComeFromAService(t *testing.T) {
	s := newScene(t, nil)
	lenient := s.options
	lenient.ServiceTokenRolesRequired = false
	tolerant, err := keystone.New(lenient)
	if err != nil {
		t.Fatal(err)
	}
	user, member, service := s.token(s.account("reader")), s.token(s.account("member")), s.token(s.account("service"))
	for name, c := range map[string]struct {
		by      *keystone.Validator
		service string
		want    []string // the roles of the service; nil means refused
	}{
		"a service":                 {s.Validator, service, []string{"service"}},
		"a member":                  {s.Validator, member, nil},
		"a member, not required":    {tolerant, member, []string{"member", "reader"}},
		"nobody":                    {s.Validator, "garbage", nil},
		"nobody, not even required": {tolerant, "garbage", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.by.Validate(t.Context(), user, c.service)
			if c.want == nil {
				if !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "X-Service-Token") {
					t.Errorf("got %v, want an error about the service token", err)
				}
				return
			}
			slices.Sort(got.ServiceRoles)
			if err != nil || !slices.Equal(got.ServiceRoles, c.want) || !slices.Equal(got.Roles, []string{"reader"}) {
				t.Errorf("got %v, roles %v, of the service %v", err, got.Roles, got.ServiceRoles)
			}
		})
	}
}

func TestAnExpiredTokenIsGoodInTheHandsOfAService(t *testing.T) {
	s := newScene(t, func(o *keystone.Options) { o.ServiceTokenRolesRequired = false })
	user, service, member := s.account("reader"), s.account("service"), s.account("member")
	token, expires := s.loginUntil(user.identity(), inProject(user.projectName))
	later := func(a account) string {
		for {
			if token, until := s.loginUntil(a.identity(), inProject(a.projectName)); until.After(expires) {
				return token // Keystone counts whole seconds
			}
		}
	}
	fresh, members := later(service), later(member)
	s.clock.advance(expires.Sub(s.clock.now()))
	if _, err := s.validate(token); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("alone: %v", err)
	}
	if _, err := s.Validate(t.Context(), token, members); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("with the token of a member: %v", err)
	}
	if got, err := s.Validate(t.Context(), token, fresh); err != nil || got.UserID != user.id {
		t.Errorf("with the token of a service: %v", err)
	}
}

func TestAccessRulesLimitAnApplicationCredential(t *testing.T) {
	s := newScene(t, nil)
	rule := func(service, method, path string) object {
		return object{"service": service, "method": method, "path": path}
	}
	a := s.account("member")
	token := s.applicationCredential(a, object{"access_rules": []object{
		rule("reservation", "GET", "/v1/reservations/*"), rule("reservation", "GET", "/v1/hosts/{name}"),
		rule("reservation", "PATCH", "/v1/**"), rule("compute", "GET", "/v1/calendar"), rule("reservation", "GET", "/v1.0"),
	}})
	service := s.token(s.account("service"))
	for name, c := range map[string]struct {
		method, path, service string
		want                  fault.Kind
	}{
		"one segment":                   {"GET", "/v1/reservations/r1", "", ""},
		"no segment":                    {"GET", "/v1/reservations", "", fault.Denied},
		"two segments":                  {"GET", "/v1/reservations/r1/x", "", fault.Denied},
		"a named segment":               {"GET", "/v1/hosts/h1", "", ""},
		"any number":                    {"PATCH", "/v1/a/b/c", "", ""},
		"another method":                {"DELETE", "/v1/reservations/r1", "", fault.Denied},
		"the rule of another service":   {"GET", "/v1/calendar", "", fault.Denied},
		"a dot is a dot":                {"GET", "/v1x0", "", fault.Denied},
		"anything that a service sends": {"DELETE", "/v1/reservations/r1", service, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1"+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Auth-Token", token)
			r.Header.Set("X-Service-Token", c.service)
			got, err := s.Authenticate(r)
			if c.want == "" && (err != nil || got.UserID != a.id) || c.want != "" && !fault.Is(err, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
