// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestOnlyWhoHasAValidTokenIsLetIn(t *testing.T) {
	g := built.StartGuarded(t)
	for name, token := range map[string]string{"no token": "", "garbage": "gAAAAABnot-a-token"} {
		r := g.Send(token, http.MethodGet, "/v1/reservations", "")
		if challenge := r.Header.Get("WWW-Authenticate"); r.Status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Keystone") {
			t.Errorf("%s: %d, WWW-Authenticate %q: %s", name, r.Status, challenge, r.Text)
		}
	}
	if r := g.Send("", http.MethodGet, "/healthcheck", ""); r.Status != http.StatusOK {
		t.Errorf("health needs no token: %d", r.Status)
	}
	_, stderr, exit := built.Almanac(t, g.Folder, []string{"ALMANAC_URL=" + g.URL}, "reservation", "list")
	built.WantExit(t, "without a user", stderr, exit, 4, "OS_CLOUD")
	nobody := labtest.Demo
	nobody.Password = "hush-hush"
	_, stderr, exit = g.As(nobody, "reservation", "list")
	built.WantExit(t, "a wrong password", stderr, exit, 4, g.Keystone.AuthURL, "user demo")
	if strings.Contains(stderr, "hush-hush") {
		t.Errorf("stderr contains the password:\n%s", stderr)
	}

	token := g.Token(labtest.Demo)
	for range 3 {
		if r := g.Send(token, http.MethodGet, "/v1/reservations", ""); r.Status != http.StatusOK {
			t.Fatalf("an issued token: %d %s", r.Status, r.Text)
		}
	}
	out, stderr, exit := g.As(labtest.Demo, "reservation", "list", "--debug")
	built.WantExit(t, "demo", stderr, exit, 0, "X-Auth-Token: ***")
	if strings.Contains(stderr+out, "gAAAA") {
		t.Errorf("--debug prints the token:\n%s", stderr)
	}
}

func TestAProjectSeesAndChangesOnlyItsOwn(t *testing.T) {
	g := built.StartGuarded(t)
	reader := g.Token(labtest.Reader)
	if r := g.Send(reader, http.MethodPost, "/v1/reservations", built.Tomorrow("no")); r.Status != http.StatusForbidden || !strings.Contains(r.Text, "reservations:create") {
		t.Errorf("a reader books: %d %s", r.Status, r.Text)
	}
	_, stderr, exit := g.As(labtest.Reader, "reservation", "create", "no", "--start", "+1d", "--duration", "1h")
	built.WantExit(t, "a reader books", stderr, exit, 4, "reservations:create")

	id, stderr, exit := g.As(labtest.Demo, "reservation", "create", "training", "--start", "+1d", "--duration", "1h", "-f", "value", "-c", "ID")
	built.WantExit(t, "a member books", stderr, exit, 0)
	id = strings.TrimSpace(id)
	path := "/v1/reservations/" + id
	if r := g.Send(reader, http.MethodGet, "/v1/reservations", ""); r.Status != http.StatusOK || !strings.Contains(r.Text, id) {
		t.Errorf("a reader of the project lists: %d %s", r.Status, r.Text)
	}

	foreign := g.Token(labtest.Demo2)
	for _, call := range []struct{ method, body string }{{http.MethodGet, ""}, {http.MethodPatch, `{"name": "mine"}`}, {http.MethodDelete, ""}} {
		r := g.Send(foreign, call.method, path, call.body)
		invented := g.Send(foreign, call.method, "/v1/reservations/6ba7b810-9dad-11d1-80b4-00c04fd430c8", call.body)
		if r.Status != http.StatusNotFound || invented.Status != http.StatusNotFound {
			t.Errorf("%s of another project's reservation: %d, of an unknown one: %d", call.method, r.Status, invented.Status)
		}
	}
	_, stderr, exit = g.As(labtest.Demo2, "reservation", "show", id)
	built.WantExit(t, "another project's", stderr, exit, 3)
	for _, query := range []string{"", "?name=training"} {
		if r := g.Send(foreign, http.MethodGet, "/v1/reservations"+query, ""); r.Status != http.StatusOK || strings.Contains(r.Text, id) {
			t.Errorf("the list of another project: %d %s", r.Status, r.Text)
		}
	}
	if r := g.Send(foreign, http.MethodGet, "/v1/reservations?all_projects=true", ""); r.Status != http.StatusForbidden {
		t.Errorf("a member lists all projects: %d %s", r.Status, r.Text)
	}
	list, stderr, exit := g.As(labtest.Admin, "reservation", "list", "--all-projects", "-f", "value", "-c", "ID")
	built.WantExit(t, "an admin lists all", stderr, exit, 0)
	if strings.TrimSpace(list) != id {
		t.Errorf("the admin sees %q, want %s", list, id)
	}
	_, stderr, exit = g.As(labtest.Demo, "reservation", "create", "too-much", "--quantity", "10", "--start", "+1d", "--duration", "1h")
	built.WantExit(t, "more than there is", stderr, exit, 5)
	_, stderr, exit = g.As(labtest.Demo, "reservation", "delete", "training")
	built.WantExit(t, "the owner cancels", stderr, exit, 0)
}

func TestARevokedTokenIsRefusedAfterTheCacheTime(t *testing.T) {
	g := built.StartGuarded(t, "OS_KEYSTONE_AUTHTOKEN__TOKEN_CACHE_TIME=1")
	token := g.Token(labtest.Demo)
	if r := g.Send(token, http.MethodGet, "/v1/reservations", ""); r.Status != http.StatusOK {
		t.Fatalf("before: %d %s", r.Status, r.Text)
	}
	g.Keystone.Openstack(t, labtest.Admin, "token", "revoke", token)
	built.Eventually(t, "the token is still valid", func() bool {
		return g.Send(token, http.MethodGet, "/v1/reservations", "").Status == http.StatusUnauthorized
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
	g := built.StartGuarded(t, "OS_OSLO_POLICY__POLICY_FILE="+file)
	token := g.Token(labtest.Reader)
	booking := func() int {
		return g.Send(token, http.MethodPost, "/v1/reservations", built.Tomorrow("allowed")).Status
	}
	reload := func(text, said string) {
		write(text)
		if err := g.Process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		built.Eventually(t, "the log does not contain "+said, func() bool { return strings.Contains(g.Log.String(), said) })
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
	g := built.StartGuarded(t)
	known, fresh := g.Token(labtest.Demo), g.Token(labtest.Reader)
	list := func(token string) built.Reply { return g.Send(token, http.MethodGet, "/v1/reservations", "") }
	if r := list(known); r.Status != http.StatusOK {
		t.Fatalf("before: %d %s", r.Status, r.Text)
	}
	asked := g.Door.Passed.Load()
	if r := list(known); r.Status != http.StatusOK || g.Door.Passed.Load() != asked {
		t.Errorf("the second request: %d, with %d more connections to Keystone", r.Status, g.Door.Passed.Load()-asked)
	}
	g.Door.Shut()
	if r := g.Send(known, http.MethodPost, "/v1/reservations", built.Tomorrow("meanwhile")); r.Status != http.StatusCreated {
		t.Errorf("a known token: %d %s", r.Status, r.Text)
	}
	if r := list(fresh); r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(r.Text, `"unavailable"`) {
		t.Errorf("an unknown token: %d, Retry-After %q: %s", r.Status, r.Header.Get("Retry-After"), r.Text)
	}
	away := g.Keystone
	away.AuthURL = g.Door.URL
	_, stderr, exit := built.Almanac(t, g.Folder, append(away.Environment(labtest.Demo), "ALMANAC_URL="+g.URL), "reservation", "list")
	built.WantExit(t, "the command line", stderr, exit, 1, "Keystone at "+g.Door.URL)
	g.Door.Open()
	built.Eventually(t, "the token is invalid after Keystone's return", func() bool { return list(fresh).Status == http.StatusOK })
}

func TestTheFeedIsReadWithoutAToken(t *testing.T) {
	g := built.StartGuarded(t)
	_, stderr, exit := g.As(labtest.Demo, "reservation", "create", "training", "--start", "+1d", "--duration", "1h")
	built.WantExit(t, "book", stderr, exit, 0)
	link := func(u labtest.User) string {
		out, stderr, exit := g.As(u, "reservation", "feed", "--url-only")
		built.WantExit(t, "the link", stderr, exit, 0)
		path, ours := strings.CutPrefix(strings.TrimSpace(out), g.URL)
		if !ours {
			t.Fatalf("the link is %q", out)
		}
		return path
	}
	own, other := link(labtest.Demo), link(labtest.Demo2)
	r := g.Send("", http.MethodGet, own, "")
	if r.Status != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/calendar") || !strings.Contains(r.Text, "SUMMARY:training") {
		t.Errorf("the feed: %d %s", r.Status, r.Text)
	}
	if r := g.Send("", http.MethodGet, other, ""); r.Status != http.StatusOK || strings.Contains(r.Text, "training") {
		t.Errorf("the feed of another project: %d %s", r.Status, r.Text)
	}
	forged := filepath.Dir(own) + "/" + filepath.Base(other)
	if r := g.Send("", http.MethodGet, forged, ""); r.Status != http.StatusNotFound {
		t.Errorf("a forged link: %d %s", r.Status, r.Text)
	}
}
