// SPDX-License-Identifier: Apache-2.0

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

// legible is a validator whose tokens state their scope and roles: PROJECT/ROLE,ROLE. Project
// "system" is the system; "" is no project.
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

// rules returns the default policy, overridden by the rules of a YAML file.
func rules(t testing.TB, yaml string) *policy.Enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(file, []byte(yaml), 0o600))
	rules, err := policy.Load(policy.Options{File: file})
	must(t, err)
	return rules
}

// Knows reports true for the tokens of an admin, as if they had been validated before, and false
// for all others.
func (l legible) Knows(r *http.Request) bool {
	if r.Header.Get("X-Auth-Token") == "" {
		return true
	}
	t, err := l.Authenticate(r)
	return err == nil && slices.Contains(t.Roles, "admin")
}
