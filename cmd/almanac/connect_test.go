// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// almanacAs runs a command line with only this environment.
func almanacAs(t *testing.T, environment map[string]string, line string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := func(name string) string { return environment[name] }
	code := run(t.Context(), strings.Fields(line), strings.NewReader(""), &stdout, &stderr, env, time.Now)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestWhoCannotLogInIsToldWhatIsMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	text := "clouds:\n" +
		"  empty: {}\n" +
		"  secretless: {auth: {auth_url: \"http://127.0.0.1:5000\", application_credential_id: a1}}\n" +
		"  nowhere: {auth: {username: u, password: hush}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "OS_AUTH_URL=http://127.0.0.1:5000 "
	for name, tc := range map[string]struct {
		variables string
		want      string
	}{
		"no address":           {"OS_USERNAME=u OS_PASSWORD=hush", "OS_AUTH_URL"},
		"no address of http":   {"OS_AUTH_URL=keystone OS_USERNAME=u OS_PASSWORD=hush", "https://keystone.example.org:5000/v3"},
		"no password":          {at + "OS_USERNAME=u", "a user with a password"},
		"no user":              {at + "OS_PASSWORD=hush", "a user with a password"},
		"no secret":            {at + "OS_APPLICATION_CREDENTIAL_ID=a1", "the secret of the application credential"},
		"a credential's owner": {at + "OS_APPLICATION_CREDENTIAL_NAME=n OS_APPLICATION_CREDENTIAL_SECRET=hush", "its user"},
		"another kind of user": {at + "OS_AUTH_TYPE=v3oidcpassword OS_PASSWORD=hush", "v3oidcpassword"},
		"token without one":    {at + "OS_AUTH_TYPE=v3token OS_USERNAME=u OS_PASSWORD=hush", "a token"},
		"interface":            {at + "OS_USERNAME=u OS_PASSWORD=hush OS_INTERFACE=outside", "OS_INTERFACE: must be one of public, internal, admin"},
		"authorities":          {at + "OS_USERNAME=u OS_PASSWORD=hush OS_CACERT=/no/such/file", "OS_CACERT: read the certificates: open /no/such/file"},
		"insecure":             {at + "OS_USERNAME=u OS_PASSWORD=hush OS_INSECURE=perhaps", "OS_INSECURE"},
		"unknown cloud":        {"OS_CLOUD=elsewhere", `"elsewhere" not found`},
		"cloud without auth":   {"OS_CLOUD=empty", "no section auth"},
		"cloud without secret": {"OS_CLOUD=secretless", "in cloud secretless of clouds.yaml"},
		"cloud without place":  {"OS_CLOUD=nowhere", "the address of Keystone in cloud nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			environment := map[string]string{"OS_CLIENT_CONFIG_FILE": file}
			for _, variable := range strings.Fields(tc.variables) {
				name, value, _ := strings.Cut(variable, "=")
				environment[name] = value
			}
			got := almanacAs(t, environment, "host list")
			got.wantFailure(t, exitUsage, tc.want)
			if strings.Contains(got.stderr, "hush") {
				t.Errorf("stderr contains a secret:\n%s", got.stderr)
			}
		})
	}
}

func TestAKeystoneThatIsAwayIsNamed(t *testing.T) {
	a := newAPI(t)
	a.Close()
	got := almanacAs(t, map[string]string{"OS_AUTH_URL": a.URL, "OS_USERNAME": "u", "OS_PASSWORD": "hush"}, "host list")
	got.wantFailure(t, exitFailed, "Keystone at "+a.URL, "connection refused")
	if strings.Contains(got.stderr, "hush") {
		t.Errorf("stderr contains a secret:\n%s", got.stderr)
	}
}

func TestAKeystoneThatDoesNotAnswerTimesOut(t *testing.T) {
	a := newAPI(t)
	a.mux.HandleFunc("POST /v3/auth/tokens", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	environment := map[string]string{"OS_AUTH_URL": a.URL, "OS_USERNAME": "u", "OS_PASSWORD": "hush"}
	almanacAs(t, environment, "host list --timeout 1").wantFailure(t, exitTimedOut, "Keystone at "+a.URL)
}

func TestWithoutAUserNoTokenIsSent(t *testing.T) {
	a := newAPI(t)
	a.mux.HandleFunc("GET /v1/hosts", func(w http.ResponseWriter, r *http.Request) {
		if _, sent := r.Header["X-Auth-Token"]; sent {
			t.Error("a token was sent")
		}
		answerWith(http.StatusOK, v1.HostList{})(w, r)
	})
	almanacAs(t, nil, "host list --url "+a.URL).wantDone(t)
	almanacAs(t, map[string]string{"OS_AUTH_TYPE": "none", "OS_AUTH_URL": "http://127.0.0.1:1", "ALMANAC_URL": a.URL}, "host list").wantDone(t)
	if len(a.asked()) != 2 {
		t.Errorf("the requests are %v", a.lines())
	}
}

func TestWhoIsNotKnownIsToldHowToSayWhoTheyAre(t *testing.T) {
	a := newAPI(t)
	a.mux.HandleFunc("GET /v1/hosts", fail(http.StatusUnauthorized, "unauthorized", "there is no token"))
	almanac(t, a, "host", "list").wantFailure(t, exitDenied, "there is no token", "--os-cloud", "OS_CLOUD", "OS_*")
}

func TestARedirectIsNotFollowed(t *testing.T) {
	a, other := newAPI(t), newAPI(t)
	a.mux.HandleFunc("GET /v1/hosts", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/hosts", http.StatusFound)
	})
	almanac(t, a, "host", "list").wantFailure(t, exitFailed, "redirects to "+other.URL)
	if asked := other.lines(); len(asked) > 0 {
		t.Errorf("the other server got the requests %v", asked)
	}
}

func TestReadinessIsPrintedAlsoWhereAPartIsNotWell(t *testing.T) {
	a := newAPI(t)
	well := v1.Readiness{Ready: true, Parts: []v1.Part{{Name: "database", OK: true, Since: morning}}}
	a.on("GET /v1/readiness", http.StatusOK, well)
	got := almanac(t, a, "readiness", "-f", "value")
	got.wantDone(t)
	if want := "database true 2026-12-01T09:00:00Z \n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}

	b := newAPI(t)
	b.on("GET /v1/readiness", http.StatusServiceUnavailable, v1.Readiness{Parts: append(well.Parts,
		v1.Part{Name: "messaging broker", Since: morning, Reason: "refused" + strings.Repeat(" by one node after the other", 9)})})
	got = almanac(t, b, "readiness", "-f", "value")
	if got.code != exitFailed || !strings.Contains(got.stdout, "messaging broker false 2026-12-01T09:00:00Z refused by one node") {
		t.Errorf("exit code %d, stdout:\n%s", got.code, got.stdout)
	}
	if !strings.Contains(got.stderr, "not healthy: messaging broker") || strings.Contains(got.stderr, "refused") {
		t.Errorf("stderr does not name the part, or repeats the reason:\n%s", got.stderr)
	}
	for line := range strings.Lines(almanac(t, b, "readiness").stdout) {
		if wide := utf8.RuneCountInString(line); wide > 120 {
			t.Errorf("a line of the table has %d characters:\n%s", wide, line)
		}
	}

	stopping := newAPI(t)
	stopping.on("GET /v1/readiness", http.StatusServiceUnavailable, v1.Readiness{Draining: true, Parts: well.Parts})
	if got := almanac(t, stopping, "readiness"); got.code != exitFailed || !strings.Contains(got.stderr, "about to stop") {
		t.Errorf("exit code %d, stderr:\n%s", got.code, got.stderr)
	}

	c := newAPI(t)
	c.mux.HandleFunc("GET /v1/readiness", fail(http.StatusServiceUnavailable, "unavailable", "Keystone is away"))
	almanac(t, c, "readiness").wantFailure(t, exitFailed, "Keystone is away")
}

func TestTheFeedLinkIsPrintedByItself(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/feed", http.StatusOK, v1.Feed{URL: "http://almanac/feeds/p/s.ics"})
	got := almanac(t, a, "reservation", "feed", "--url-only")
	got.wantDone(t)
	if got.stdout != "http://almanac/feeds/p/s.ics\n" {
		t.Errorf("got %q", got.stdout)
	}
}
