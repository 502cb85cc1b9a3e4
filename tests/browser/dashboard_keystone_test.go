// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A user signs in with Keystone, changes the project and signs out. Scripts never see the token.
func TestUsersSignInWithKeystoneInTheBrowser(t *testing.T) {
	browser := labtest.StartBrowser(t)
	g := built.StartGuarded(t)
	g.Keystone.Openstack(t, labtest.Admin, "role", "add", "--user", labtest.Demo.Name, "--project", labtest.Demo2.Project, "member")
	t.Cleanup(func() {
		g.Keystone.Openstack(t, labtest.Admin, "role", "remove", "--user", labtest.Demo.Name, "--project", labtest.Demo2.Project, "member")
	})
	_, stderr, exit := g.As(labtest.Demo2, "reservation", "create", "of the other project", "--start", "+1d", "--duration", "1d")
	built.WantExit(t, "a booking of the other project", stderr, exit, 0)

	p := &page{Browser: browser, t: t, url: g.URL}
	p.Look(1440, 900, false)
	p.open("calendar", "#sign-in")
	signIn := func(password string) {
		t.Helper()
		p.Fill("input[name=username]", labtest.Demo.Name)
		p.Fill("input[name=password]", password)
		p.Click("#sign-in")
	}
	signIn("wrong")
	p.Eventually("the page refuses a wrong password", `document.querySelector('form .bad').textContent.includes('Keystone refuses')`)
	signIn(labtest.Demo.Password)
	p.Await(".picture")
	project := func(name string) {
		t.Helper()
		p.Eventually("the page shows project "+name, `document.querySelector('#project').selectedOptions[0].textContent === '`+name+`'`)
	}
	project(labtest.Demo.Project)
	p.claims(1)
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#table-switch').click(), true)`)
	p.Await(".table-view table")
	if text := p.Text(".table-view"); strings.Contains(text, "of the other project") || !strings.Contains(text, "Reserved by another project") {
		t.Errorf("a tenant sees\n%s", text)
	}

	cookies := p.Cookies()
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != "Strict" || !cookies[0].Session || cookies[0].Secure {
		t.Errorf("the cookies are %+v", cookies)
	}
	seen := labtest.Evaluate[string](p.Browser, `document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`)
	if strings.Contains(seen, cookies[0].Value) || strings.Contains(seen, labtest.Demo.Password) {
		t.Errorf("scripts see %s", seen)
	}

	other := strings.TrimSpace(g.Keystone.Openstack(t, labtest.Admin, "project", "show", labtest.Demo2.Project, "-f", "value", "-c", "id"))
	p.Choose("#project", other)
	project(labtest.Demo2.Project)
	p.Eventually("the project's own reservation has its name", `document.querySelector('.table-view').textContent.includes('of the other project')`)
	token := p.Cookies()[0].Value
	if token == cookies[0].Value {
		t.Error("the token is that of the first project")
	}
	p.wellBehaved()

	p.Click("#sign-out")
	p.Await("#sign-in")
	p.Eventually("the tab keeps nothing of the user who left", `sessionStorage.length === 0`)
	if left := p.Cookies(); len(left) != 0 {
		t.Errorf("after the sign-out there are %+v", left)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Keystone.AuthURL+"/auth/tokens", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Subject-Token", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		t.Error("Keystone still accepts the token")
	}
	p.wellBehaved()
}

// An application credential and a token are ways in, too.
func TestCredentialsAndTokensOpenThePage(t *testing.T) {
	browser := labtest.StartBrowser(t)
	g := built.StartGuarded(t)
	fields := strings.Fields(g.Keystone.Openstack(t, labtest.Demo, "application", "credential", "create", "page", "--secret", "hush", "-f", "value", "-c", "id"))
	t.Cleanup(func() { g.Keystone.Openstack(t, labtest.Demo, "application", "credential", "delete", fields[0]) })
	_, stderr, exit := g.As(labtest.Demo2, "reservation", "create", "of another project", "--start", "+1d", "--duration", "1d")
	built.WantExit(t, "a booking of another project", stderr, exit, 0)
	p := &page{Browser: browser, t: t, url: g.URL}
	p.Look(1024, 800, true)
	p.open("calendar", "#sign-in")
	p.Click(".tab:nth-child(2)")
	p.Fill("input[name=application_credential_id]", fields[0])
	p.Fill("input[name=secret]", "hush")
	p.Click("#sign-in")
	p.Await(".picture")
	p.Click("#sign-out")
	p.Await("#sign-in")
	p.Click(".tab:nth-child(3)")
	p.Fill("input[name=token]", g.Token(labtest.Admin))
	p.Click("#sign-in")
	p.Await(".picture")
	p.open("operator/doctor", ".box.good")
	p.open("reservations", "#all-projects")
	p.Click("#all-projects")
	p.Eventually("a project in which the operator has no role has its name", `[...document.querySelectorAll('td')].some(one => one.textContent === '`+labtest.Demo2.Project+`')`)
	p.wellBehaved()
}
