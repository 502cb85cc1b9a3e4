// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestBootstrapDryRunSaysWhatItWouldDo(t *testing.T) {
	identity := labtest.Keystone(t)
	user := "b-" + strings.ToLower(rand.Text())
	command := newBootstrapCommand(func() (config.Config, error) {
		return config.Config{API: config.API{Port: 5678}, Keystone: config.Keystone{Options: keystone.Options{Connection: keystone.Connection{Username: user, Password: "a-password"}}}}, nil
	}, config.Environment(identity.Environment(labtest.Admin)))
	var said strings.Builder
	command.SetErr(&said)
	command.SetArgs([]string{"keystone", "--dry-run", "--region", user})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"would be created: user " + user + "\n", "there already: project service\n", "role service of user " + user, "http://127.0.0.1:5678/v1"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing in\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "a-password") {
		t.Error("the command prints the password")
	}
	if users := identity.Openstack(t, labtest.Admin, "user", "list", "-f", "value", "-c", "Name"); strings.Contains(users, user) {
		t.Error("the dry run created the user")
	}
}

func TestBootstrapNeedsAnAdmin(t *testing.T) {
	command := newBootstrapCommand(func() (config.Config, error) { return config.Config{API: config.API{Port: 1234}}, nil }, nil)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"keystone"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "OS_AUTH_URL") {
		t.Errorf("got %v", err)
	}
}

func TestBootstrapRegistersTheAddressOfTheConfigurationByDefault(t *testing.T) {
	for want, of := range map[string]config.API{
		"http://127.0.0.1:1234/v1":           {Host: "127.0.0.1", Port: 1234},
		"http://127.0.0.1:5678/v1":           {Host: "0.0.0.0", Port: 5678},
		"http://127.0.0.1:5679/v1":           {Host: "::", Port: 5679},
		"http://[fd00::1]:1234/v1":           {Host: "fd00::1", Port: 1234},
		"http://almanac.example.org:5678/v1": {Host: "almanac.example.org", Port: 5678},
	} {
		if got, err := ownURL(of); got != want || err != nil {
			t.Errorf("%+v: %q, %v; want %q", of, got, err, want)
		}
	}
	if got, err := ownURL(config.API{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("with any port: %q, %v; want an error with --public-url", got, err)
	}
}
