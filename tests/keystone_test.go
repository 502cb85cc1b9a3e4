// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestOnlyWhoHasAValidTokenIsLetIn(t *testing.T) {
	g := startGuarded(t)
	for name, token := range map[string]string{"no token": "", "garbage": "gAAAAABnot-a-token"} {
		r := g.send(token, http.MethodGet, "/v1/reservations", "")
		if challenge := r.header.Get("WWW-Authenticate"); r.status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Keystone") {
			t.Errorf("%s: %d, WWW-Authenticate %q: %s", name, r.status, challenge, r.text)
		}
	}
	if r := g.send("", http.MethodGet, "/healthcheck", ""); r.status != http.StatusOK {
		t.Errorf("health needs no token: %d", r.status)
	}
	_, stderr, exit := almanac(t, g.folder, []string{"ALMANAC_URL=" + g.url}, "reservation", "list")
	wantExit(t, "without a user", stderr, exit, 4, "OS_CLOUD")
	nobody := labtest.Demo
	nobody.Password = "hush-hush"
	_, stderr, exit = g.as(nobody, "reservation", "list")
	wantExit(t, "a wrong password", stderr, exit, 4, g.keystone.AuthURL, "user demo")
	if strings.Contains(stderr, "hush-hush") {
		t.Errorf("stderr contains the password:\n%s", stderr)
	}

	token := g.token(labtest.Demo)
	for range 3 {
		if r := g.send(token, http.MethodGet, "/v1/reservations", ""); r.status != http.StatusOK {
			t.Fatalf("an issued token: %d %s", r.status, r.text)
		}
	}
	out, stderr, exit := g.as(labtest.Demo, "reservation", "list", "--debug")
	wantExit(t, "demo", stderr, exit, 0, "X-Auth-Token: ***")
	if strings.Contains(stderr+out, "gAAAA") {
		t.Errorf("--debug prints the token:\n%s", stderr)
	}
}

func TestAProjectSeesAndChangesOnlyItsOwn(t *testing.T) {
	g := startGuarded(t)
	reader := g.token(labtest.Reader)
	if r := g.send(reader, http.MethodPost, "/v1/reservations", tomorrow("no")); r.status != http.StatusForbidden || !strings.Contains(r.text, "reservations:create") {
		t.Errorf("a reader books: %d %s", r.status, r.text)
	}
	_, stderr, exit := g.as(labtest.Reader, "reservation", "create", "no", "--start", "+1d", "--duration", "1h")
	wantExit(t, "a reader books", stderr, exit, 4, "reservations:create")

	id, stderr, exit := g.as(labtest.Demo, "reservation", "create", "training", "--start", "+1d", "--duration", "1h", "-f", "value", "-c", "ID")
	wantExit(t, "a member books", stderr, exit, 0)
	id = strings.TrimSpace(id)
	path := "/v1/reservations/" + id
	if r := g.send(reader, http.MethodGet, "/v1/reservations", ""); r.status != http.StatusOK || !strings.Contains(r.text, id) {
		t.Errorf("a reader of the project lists: %d %s", r.status, r.text)
	}

	foreign := g.token(labtest.Demo2)
	for _, call := range []struct{ method, body string }{{http.MethodGet, ""}, {http.MethodPatch, `{"name": "mine"}`}, {http.MethodDelete, ""}} {
		r := g.send(foreign, call.method, path, call.body)
		invented := g.send(foreign, call.method, "/v1/reservations/6ba7b810-9dad-11d1-80b4-00c04fd430c8", call.body)
		if r.status != http.StatusNotFound || invented.status != http.StatusNotFound {
			t.Errorf("%s of another project's reservation: %d, of an unknown one: %d", call.method, r.status, invented.status)
		}
	}
	_, stderr, exit = g.as(labtest.Demo2, "reservation", "show", id)
	wantExit(t, "another project's", stderr, exit, 3)
	for _, query := range []string{"", "?name=training"} {
		if r := g.send(foreign, http.MethodGet, "/v1/reservations"+query, ""); r.status != http.StatusOK || strings.Contains(r.text, id) {
			t.Errorf("the list of another project: %d %s", r.status, r.text)
		}
	}
	if r := g.send(foreign, http.MethodGet, "/v1/reservations?all_projects=true", ""); r.status != http.StatusForbidden {
		t.Errorf("a member lists all projects: %d %s", r.status, r.text)
	}
	list, stderr, exit := g.as(labtest.Admin, "reservation", "list", "--all-projects", "-f", "value", "-c", "ID")
	wantExit(t, "an admin lists all", stderr, exit, 0)
	if strings.TrimSpace(list) != id {
		t.Errorf("the admin sees %q, want %s", list, id)
	}
	_, stderr, exit = g.as(labtest.Demo, "reservation", "create", "too-much", "--quantity", "10", "--start", "+1d", "--duration", "1h")
	wantExit(t, "more than there is", stderr, exit, 5)
	_, stderr, exit = g.as(labtest.Demo, "reservation", "delete", "training")
	wantExit(t, "the owner cancels", stderr, exit, 0)
}

func TestARevokedTokenIsRefusedAfterTheCacheTime(t *testing.T) {
	g := startGuarded(t, "OS_KEYSTONE_AUTHTOKEN__TOKEN_CACHE_TIME=1")
	token := g.token(labtest.Demo)
	if r := g.send(token, http.MethodGet, "/v1/reservations", ""); r.status != http.StatusOK {
		t.Fatalf("before: %d %s", r.status, r.text)
	}
	g.keystone.Openstack(t, labtest.Admin, "token", "revoke", token)
	eventually(t, "the token is still valid", func() bool {
		return g.send(token, http.MethodGet, "/v1/reservations", "").status == http.StatusUnauthorized
	})
}

func TestThePolicyIsTakenOverAtAHangup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{}\n")
	g := startGuarded(t, "OS_OSLO_POLICY__POLICY_FILE="+file)
	token := g.token(labtest.Reader)
	booking := func() int { return g.send(token, http.MethodPost, "/v1/reservations", tomorrow("allowed")).status }
	reload := func(text, said string) {
		write(text)
		if err := g.process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the log does not contain "+said, func() bool { return strings.Contains(g.log.String(), said) })
	}
	if got := booking(); got != http.StatusForbidden {
		t.Fatalf("by default: %d", got)
	}
	reload("\"reservations:create\": \"rule:project_reader_api\"\n", "configuration read again")
	if got := booking(); got != http.StatusCreated {
		t.Errorf("by the new policy: %d", got)
	}
	reload("\"reservations:create\": \"role:\"\n", "could not apply the configuration")
	if got := booking(); got != http.StatusCreated {
		t.Errorf("with a wrong policy, which must change nothing: %d", got)
	}
}

func TestWhileKeystoneIsAwayKnownTokensGoOn(t *testing.T) {
	g := startGuarded(t)
	known, fresh := g.token(labtest.Demo), g.token(labtest.Reader)
	list := func(token string) reply { return g.send(token, http.MethodGet, "/v1/reservations", "") }
	if r := list(known); r.status != http.StatusOK {
		t.Fatalf("before: %d %s", r.status, r.text)
	}
	asked := g.door.passed.Load()
	if r := list(known); r.status != http.StatusOK || g.door.passed.Load() != asked {
		t.Errorf("the second request: %d, with %d more connections to Keystone", r.status, g.door.passed.Load()-asked)
	}
	g.door.shut()
	if r := g.send(known, http.MethodPost, "/v1/reservations", tomorrow("meanwhile")); r.status != http.StatusCreated {
		t.Errorf("a known token: %d %s", r.status, r.text)
	}
	if r := list(fresh); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || !strings.Contains(r.text, `"unavailable"`) {
		t.Errorf("an unknown token: %d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.text)
	}
	away := g.keystone
	away.AuthURL = g.door.url
	_, stderr, exit := almanac(t, g.folder, append(away.Environment(labtest.Demo), "ALMANAC_URL="+g.url), "reservation", "list")
	wantExit(t, "the command line", stderr, exit, 1, "Keystone at "+g.door.url)
	g.door.open()
	eventually(t, "the token is invalid after Keystone's return", func() bool { return list(fresh).status == http.StatusOK })
}

func TestTheFeedIsReadWithoutAToken(t *testing.T) {
	g := startGuarded(t)
	_, stderr, exit := g.as(labtest.Demo, "reservation", "create", "training", "--start", "+1d", "--duration", "1h")
	wantExit(t, "book", stderr, exit, 0)
	link := func(u labtest.User) string {
		out, stderr, exit := g.as(u, "reservation", "feed", "--url-only")
		wantExit(t, "the link", stderr, exit, 0)
		path, ours := strings.CutPrefix(strings.TrimSpace(out), g.url)
		if !ours {
			t.Fatalf("the link is %q", out)
		}
		return path
	}
	own, other := link(labtest.Demo), link(labtest.Demo2)
	r := g.send("", http.MethodGet, own, "")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/calendar") || !strings.Contains(r.text, "SUMMARY:training") {
		t.Errorf("the feed: %d %s", r.status, r.text)
	}
	if r := g.send("", http.MethodGet, other, ""); r.status != http.StatusOK || strings.Contains(r.text, "training") {
		t.Errorf("the feed of another project: %d %s", r.status, r.text)
	}
	forged := filepath.Dir(own) + "/" + filepath.Base(other)
	if r := g.send("", http.MethodGet, forged, ""); r.status != http.StatusNotFound {
		t.Errorf("a forged link: %d %s", r.status, r.text)
	}
}
