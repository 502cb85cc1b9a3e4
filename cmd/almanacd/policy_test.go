// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// tried runs `policy` with args. The token "reader's" belongs to a reader of project p.
func tried(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := newPolicyCommand(
		func() (*policy.Enforcer, error) { return policy.Load(policy.Options{}) },
		func(_ context.Context, token string) (policy.Credentials, error) {
			if token != "reader's" {
				return policy.Credentials{}, fault.New(fault.Unauthorized, "your token is not valid")
			}
			return policy.Credentials{ProjectID: "p", Roles: []string{"reader"}, IsAdminProject: true}, nil
		})
	var out strings.Builder
	command.SetOut(&out)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestPolicyCheckSaysWhetherAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string // in the output
		err  string
	}{
		"a member": {[]string{"--rule", "reservations:create", "--project-id", "p", "--roles", "member"}, []string{
			"reservations:create allowed\n", `true   project_member_api: "role:member and project_id:%(project_id)s"`, `false  context_is_admin: "role:admin`}, ""},
		"a reader's token": {[]string{"--rule", "reservations:create", "--token", "reader's"}, []string{
			"reservations:create denied\n", `false  project_member_api`}, "policy does not allow reservations:create"},
		"another project": {[]string{"--rule", "reservations:get", "--token", "reader's", "--target", "project_id=q"}, []string{
			"reservations:get denied\n"}, "policy does not allow reservations:get"},
		"an admin of the system": {[]string{"--rule", "reservations:create", "--system", "--roles", "admin"}, []string{
			"reservations:create denied\n"}, "get one for a project"},
		"every rule": {[]string{"--rule", "all", "--token", "reader's"}, []string{
			"denied   hosts:update\n", "allowed  hosts:list\n"}, ""},
		"a mistyped rule":      {[]string{"--rule", "host:list", "--token", "reader's"}, nil, `did you mean "hosts:list"`},
		"a mistyped attribute": {[]string{"--rule", "hosts:list", "--token", "reader's", "--target", "project=q"}, nil, `did you mean "project_id"`},
		"a bad token":          {[]string{"--rule", "hosts:list", "--token", "x"}, nil, "not valid"},
		"nobody":               {[]string{"--rule", "hosts:list"}, nil, "at least one of the flags"},
		"a token and roles":    {[]string{"--rule", "hosts:list", "--token", "x", "--roles", "admin"}, nil, "none of the others can be"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := tried(t, append([]string{"check"}, c.args...)...)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

func TestPolicySampleIsTheShippedFile(t *testing.T) {
	out, err := tried(t, "sample")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../etc/almanac/policy.yaml")
	if err != nil || string(shipped) != out {
		t.Errorf("etc/almanac/policy.yaml differs from the sample: %v", err)
	}
}
