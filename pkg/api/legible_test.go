package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// legible is a validator whose tokens say what they are for, PROJECT/ROLE,ROLE. The
// project "system" is the system, and "" is none.
type legible struct{}

func (legible) Authenticate(r *http.Request) (keystone.Token, error) {
	project, roles, ok := strings.Cut(r.Header.Get("X-Auth-Token"), "/")
	if !ok {
		return keystone.Token{}, fault.New(fault.Unauthorized, "your token is not valid")
	}
	t := keystone.Token{UserID: project + "-user", ProjectID: project, IsAdminProject: true, Roles: strings.Split(roles, ",")}
	if project == "system" {
		t.ProjectID, t.System = "", true
	}
	return t, nil
}

// rules are the default policy with those of a YAML file over them.
func rules(t *testing.T, yaml string) *policy.Enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(file, []byte(yaml), 0o600))
	rules, err := policy.Load(policy.Options{File: file})
	must(t, err)
	return rules
}

// Knows says yes to the tokens of an admin, as if they had been asked for before, and to
// none.
func (l legible) Knows(r *http.Request) bool {
	if r.Header.Get("X-Auth-Token") == "" {
		return true
	}
	t, err := l.Authenticate(r)
	return err == nil && slices.Contains(t.Roles, "admin")
}
