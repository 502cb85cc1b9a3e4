// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Identity is the shared Keystone of the lab. All its users and projects are in the domain
// `default`.
type Identity struct {
	AuthURL string // with /v3
	Region  string
}

// User is a user of Keystone.
type User struct {
	Name, Password, Project string
}

// The users of the lab, with their roles.
var (
	Admin   = User{"admin", "lab", "admin"}     // admin
	Demo    = User{"demo", "lab", "demo"}       // member
	Demo2   = User{"demo2", "lab", "demo2"}     // member
	Reader  = User{"reader", "lab", "demo"}     // reader
	Almanac = User{"almanac", "lab", "service"} // admin and service
)

// Keystone returns the Keystone of the lab.
func Keystone(t testing.TB) Identity {
	t.Helper()
	return Identity{
		AuthURL: fmt.Sprintf("http://127.0.0.1:%d/v3", port(t, "keystone")),
		Region:  "RegionOne",
	}
}

// Horizon returns the URL of the lab's Horizon, without a slash at its end.
func Horizon(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d", port(t, "horizon"))
}

// Environment returns the OS_ variables for clients that act as the user.
func (i Identity) Environment(u User) []string {
	return []string{
		"OS_AUTH_URL=" + i.AuthURL, "OS_REGION_NAME=" + i.Region, "OS_IDENTITY_API_VERSION=3",
		"OS_USERNAME=" + u.Name, "OS_PASSWORD=" + u.Password, "OS_PROJECT_NAME=" + u.Project,
		"OS_USER_DOMAIN_ID=default", "OS_PROJECT_DOMAIN_ID=default",
		"OS_COMPUTE_API_VERSION=2.90", "OS_PLACEMENT_API_VERSION=1.39",
	}
}

// Openstack runs the openstack client as the user and returns its output. A command that fails ends
// the test. It may run in a cleanup.
func (i Identity) Openstack(t testing.TB, u User, args ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "openstack", args...)
	command.Env = append(ownEnvironment(), i.Environment(u)...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("openstack %s as %s: %v\n%s", strings.Join(args, " "), u.Name, err, complaint.String())
	}
	return string(out)
}

// ownEnvironment returns the environment without another cloud's settings and without proxies,
// which do not lead to loopback.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "OS_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}
