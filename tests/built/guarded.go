// SPDX-License-Identifier: Apache-2.0

package built

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Guarded is an almanacd on MariaDB with Keystone's users as callers.
type Guarded struct {
	*Service
	T        *testing.T
	Keystone labtest.Identity
	Door     *Door // the way from the service to Keystone
	Settings []string
}

// StartGuarded starts such an almanacd on TenHosts.
func StartGuarded(t *testing.T, settings ...string) *Guarded {
	t.Helper()
	g := &Guarded{T: t, Keystone: labtest.Keystone(t)}
	g.Door = newDoor(t, g.Keystone.AuthURL)
	connection := labtest.Database(t)
	Migrate(t, connection)
	g.Settings = append([]string{
		"OS_DATABASE__CONNECTION=" + connection, "OS_API__AUTH_STRATEGY=keystone", "OS_API__FEED_SECRET=the key of the feeds",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL=" + g.Door.URL, "OS_KEYSTONE_AUTHTOKEN__USERNAME=" + labtest.Almanac.Name,
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD=" + labtest.Almanac.Password, "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME=" + labtest.Almanac.Project,
	}, settings...)
	g.Service = StartOn(t, TenHosts, g.Settings...)
	return g
}

// Token returns a token that the openstack client gets for the user.
func (g *Guarded) Token(u labtest.User) string {
	g.T.Helper()
	return strings.TrimSpace(g.Keystone.Openstack(g.T, u, "token", "issue", "-f", "value", "-c", "id"))
}

// Reply is an answer of the service.
type Reply struct {
	Status int
	Header http.Header
	Text   string
}

// Send sends a request with a token, or without one if token is empty.
func (g *Guarded) Send(token, method, path, body string) Reply {
	g.T.Helper()
	r, err := http.NewRequestWithContext(g.T.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.T.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		g.T.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.T.Fatal(err)
	}
	return Reply{answer.StatusCode, answer.Header, string(text)}
}

// Tomorrow returns the body of a booking of one host for an hour.
func Tomorrow(name string) string {
	return fmt.Sprintf(`{"name": %q, "start_time": %q, "duration": 3600}`, name, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339))
}

// As runs the command line as the user, without the catalog.
func (g *Guarded) As(u labtest.User, arguments ...string) (stdout, stderr string, exit int) {
	g.T.Helper()
	return Almanac(g.T, g.Folder, append(g.Keystone.Environment(u), "ALMANAC_URL="+g.URL), arguments...)
}

// WantExit fails the test unless the exit code is want and stderr contains all mentions.
func WantExit(t *testing.T, what, stderr string, exit, want int, mentions ...string) {
	t.Helper()
	if exit != want {
		t.Errorf("%s: exit code %d, want %d\n%s", what, exit, want, stderr)
	}
	for _, mention := range mentions {
		if !strings.Contains(stderr, mention) {
			t.Errorf("%s: the message does not contain %q:\n%s", what, mention, stderr)
		}
	}
}
