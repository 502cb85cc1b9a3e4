package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestBootstrapDryRunSaysWhatItWouldDo(t *testing.T) {
	identity := labtest.Keystone(t)
	user := "b-" + strings.ToLower(rand.Text())
	command := newBootstrapCommand(func() (keystone.Connection, error) {
		return keystone.Connection{Username: user, Password: "a-password"}, nil
	}, config.Environment(identity.Environment(labtest.Admin)))
	var said strings.Builder
	command.SetErr(&said)
	command.SetArgs([]string{"keystone", "--dry-run", "--public-url", "http://almanac.example.org:1234/v1"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"would be created: user " + user + "\n", "there already: project service\n", "role service of user " + user} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "a-password") {
		t.Error("it prints the password")
	}
	if users := identity.Openstack(t, labtest.Admin, "user", "list", "-f", "value", "-c", "Name"); strings.Contains(users, user) {
		t.Error("the dry run made the user")
	}
}

func TestBootstrapNeedsAnAdmin(t *testing.T) {
	command := newBootstrapCommand(func() (keystone.Connection, error) { return keystone.Connection{}, nil }, nil)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"keystone"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "OS_AUTH_URL") {
		t.Errorf("got %v", err)
	}
}
