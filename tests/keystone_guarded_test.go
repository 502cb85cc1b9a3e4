// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// guarded is an almanacd on MariaDB with Keystone's users as callers.
type guarded struct {
	*service
	t        *testing.T
	keystone labtest.Identity
	door     *door // the way from the service to Keystone
	settings []string
}

func startGuarded(t *testing.T, settings ...string) *guarded {
	t.Helper()
	g := &guarded{t: t, keystone: labtest.Keystone(t)}
	g.door = newDoor(t, g.keystone.AuthURL)
	connection := labtest.Database(t)
	migrate(t, connection)
	g.settings = append([]string{
		"OS_DATABASE__CONNECTION=" + connection, "OS_API__AUTH_STRATEGY=keystone", "OS_API__FEED_SECRET=the key of the feeds",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL=" + g.door.url, "OS_KEYSTONE_AUTHTOKEN__USERNAME=" + labtest.Almanac.Name,
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD=" + labtest.Almanac.Password, "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME=" + labtest.Almanac.Project,
	}, settings...)
	g.service = startOn(t, tenHosts, g.settings...)
	return g
}

// token returns a token that the openstack client gets for the user.
func (g *guarded) token(u labtest.User) string {
	g.t.Helper()
	return strings.TrimSpace(g.keystone.Openstack(g.t, u, "token", "issue", "-f", "value", "-c", "id"))
}

// reply is an answer of the service.
type reply struct {
	status int
	header http.Header
	text   string
}

// send sends a request with a token, or without one if token is empty.
func (g *guarded) send(token, method, path, body string) reply {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

// tomorrow returns the body of a booking of one host for an hour.
func tomorrow(name string) string {
	return fmt.Sprintf(`{"name": %q, "start_time": %q, "duration": 3600}`, name, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339))
}

// as runs the command line as the user, without the catalog.
func (g *guarded) as(u labtest.User, arguments ...string) (stdout, stderr string, exit int) {
	g.t.Helper()
	return almanac(g.t, g.folder, append(g.keystone.Environment(u), "ALMANAC_URL="+g.url), arguments...)
}

// wantExit fails the test unless the exit code is want and stderr contains all mentions.
func wantExit(t *testing.T, what, stderr string, exit, want int, mentions ...string) {
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
