// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

type variables map[string]string

// with returns the variables, overridden by more; an empty value means unset.
func (v variables) with(more variables) variables {
	all := maps.Clone(v)
	maps.Copy(all, more)
	return all
}

func (v variables) get(name string) string { return v[name] }

// openrc returns the variables of an openrc file of the account.
func (s *scene) openrc(a account) variables {
	return variables{
		"OS_AUTH_URL": s.front.URL + "/v3", "OS_USERNAME": a.name, "OS_PASSWORD": a.password, "OS_PROJECT_NAME": a.projectName,
	}
}

// stay returns a login of the user that the variables name.
func (s *scene) stay(v variables) *keystone.Login {
	s.t.Helper()
	user, found, err := keystone.FindUser(v.get, keystone.Choice{})
	if err != nil || !found {
		s.t.Fatalf("found %v, %v", found, err)
	}
	l, err := keystone.NewLogin(user, time.Minute, s.clock.now)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// scope is what a token is for.
type scope struct {
	User, Project, Domain string
	System                bool
}

func (s *scene) scopeOf(l *keystone.Login) scope {
	s.t.Helper()
	token, err := l.Token(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	t, err := s.validate(token)
	if err != nil {
		s.t.Fatal(err)
	}
	return scope{t.UserID, t.ProjectID, t.DomainID, t.System}
}

// credential creates an application credential and returns its id and secret.
func (s *scene) credential(a account, name string) (id, secret string) {
	body, _ := s.call(s.token(a), http.MethodPost, "/users/"+a.id+"/application_credentials",
		object{"application_credential": object{"name": name}}, http.StatusCreated)
	made := body["application_credential"].(object)
	return made["id"].(string), made["secret"].(string)
}

func TestTheVariablesSayWhoLogsInAndWhatFor(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	for _, where := range []string{"/domains/default", "/system"} {
		s.call(s.admin, http.MethodPut, where+"/users/"+a.id+"/roles/"+s.role("reader"), nil, http.StatusNoContent)
	}
	id, secret := s.credential(a, "mine")
	rc, inProject := s.openrc(a), scope{User: a.id, Project: a.project}
	bare := variables{"OS_AUTH_URL": s.front.URL} // without /v3
	for name, tc := range map[string]struct {
		variables variables
		want      scope
	}{
		"password":         {rc, inProject},
		"ids":              {bare.with(variables{"OS_USER_ID": a.id, "OS_PASSWORD": a.password, "OS_PROJECT_ID": a.project}), inProject},
		"names of domains": {rc.with(variables{"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}), inProject},
		"default domain":   {rc.with(variables{"OS_DEFAULT_DOMAIN": "default"}), inProject},
		"domain":           {rc.with(variables{"OS_PROJECT_NAME": "", "OS_DOMAIN_NAME": "Default"}), scope{User: a.id, Domain: "default"}},
		"system":           {rc.with(variables{"OS_SYSTEM_SCOPE": "all"}), scope{User: a.id, System: true}},
		"token":            {bare.with(variables{"OS_TOKEN": s.token(a), "OS_PROJECT_NAME": a.projectName, "OS_USERNAME": a.name}), inProject},
		"the password where a token is not asked for": {rc.with(variables{"OS_TOKEN": "none", "OS_AUTH_TYPE": "password"}), inProject},
		"application credential": {bare.with(variables{
			"OS_AUTH_TYPE": "v3applicationcredential", "OS_APPLICATION_CREDENTIAL_ID": id, "OS_APPLICATION_CREDENTIAL_SECRET": secret,
		}), inProject},
		"application credential by name, before a password": {rc.with(variables{
			"OS_APPLICATION_CREDENTIAL_NAME": "mine", "OS_APPLICATION_CREDENTIAL_SECRET": secret,
		}), inProject},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.scopeOf(s.stay(tc.variables))); diff != "" {
				t.Errorf("scope (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACloudIsReadFromCloudsYAMLAndItsSecretFromSecureYAML(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	id, secret := s.credential(a, "mine")
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("clouds.yaml", `clouds:
  person:
    auth: {auth_url: "`+s.front.URL+`", username: `+a.name+`, project_name: `+a.projectName+`}
  robot:
    auth_type: v3applicationcredential
    auth: {auth_url: "`+s.front.URL+`/v3", application_credential_id: `+id+`}
`)
	write("secure.yaml", `clouds:
  person: {auth: {password: `+a.password+`}}
  robot: {auth: {application_credential_secret: `+secret+`}}
`)
	for _, cloud := range []string{"person", "robot"} {
		l := s.stay(variables{"OS_CLOUD": cloud, "OS_CLIENT_CONFIG_FILE": filepath.Join(folder, "clouds.yaml"), "OS_PASSWORD": "another cloud's"})
		if diff := cmp.Diff(scope{User: a.id, Project: a.project}, s.scopeOf(l)); diff != "" {
			t.Errorf("%s: scope (-want +got):\n%s", cloud, diff)
		}
	}
}

func TestARefusedUserIsToldWhereAndWhoWithoutTheSecret(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	rc := s.openrc(a)
	for name, tc := range map[string]struct {
		variables variables
		wantWho   string
	}{
		"wrong password":    {rc.with(variables{"OS_PASSWORD": "hush"}), "user " + a.name},
		"unknown user":      {rc.with(variables{"OS_USER_ID": "nobody", "OS_PASSWORD": "hush"}), "user nobody"},
		"another's project": {rc.with(variables{"OS_PROJECT_NAME": "service"}), "user " + a.name},
		"invalid token":     {rc.with(variables{"OS_TOKEN": "hush"}), "your token"},
		"unknown credential": {rc.with(variables{
			"OS_APPLICATION_CREDENTIAL_ID": "c1", "OS_APPLICATION_CREDENTIAL_SECRET": "hush",
		}), "application credential c1"},
	} {
		_, err := s.stay(tc.variables).Token(t.Context())
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for _, want := range []string{s.front.URL, tc.wantWho, "the OS_* variables"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the message does not contain %q: %v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), a.password) {
			t.Errorf("%s: the message reveals a secret: %v", name, err)
		}
	}
}

func TestATokenIsUsedUntilShortlyBeforeItsEnd(t *testing.T) {
	s := newScene(t, nil)
	l := s.stay(s.openrc(s.account("member")))
	take := func() string {
		token, err := l.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := take()
	if again := take(); again != first || s.front.logins() != 1 {
		t.Errorf("%d logins; the same token: %v", s.front.logins(), again == first)
	}
	s.clock.advance(24*time.Hour - 30*time.Second) // the lab's tokens are valid for a day
	if take(); s.front.logins() != 2 {
		t.Errorf("%d logins after the end", s.front.logins())
	}
}

func TestARefusedTokenIsRenewedOnceForEverybody(t *testing.T) {
	s := newScene(t, nil)
	l := s.stay(s.openrc(s.account("member")))
	old, err := l.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if token := r.Header.Get("X-Auth-Token"); token == old || string(body) != "all of it" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: l.Renewing(http.DefaultTransport)}
	send := func(body string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("X-Auth-Token", old)
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	before := s.front.logins()
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			if got := send("all of it"); got != http.StatusOK {
				t.Errorf("got %d", got)
			}
		})
	}
	senders.Wait()
	if got := s.front.logins() - before; got != 1 {
		t.Errorf("%d logins for eight refused requests, want 1", got)
	}
	if got := send("part of it"); got != http.StatusUnauthorized {
		t.Errorf("what is refused with a new token too: got %d", got)
	}
}
