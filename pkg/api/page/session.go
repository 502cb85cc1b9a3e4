// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/reservation"
)

const (
	// tokenCookie is the name of the cookie that contains the token of a user of the page.
	tokenCookie = "almanac-token"
	// longestSignIn is the largest body of a sign-in in bytes; a token has at most 8 KiB.
	longestSignIn = 16 << 10
)

// ReadCookie lets the cookie of the page stand for the header X-Auth-Token. Only the page itself may use the cookie: a
// browser states where a request comes from, and the service has refused changes from elsewhere.
func (s API) ReadCookie(c *serving.Call) {
	if s.SignIn == nil || c.Token() != "" {
		return
	}
	cookie, err := c.Request.Cookie(tokenCookie)
	if err != nil || cookie.Value == "" {
		return
	}
	from, safe := c.GetHeader("Sec-Fetch-Site"), c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	switch {
	case from == "same-origin":
	case from == "none" && safe: // the user has typed the address
	case from == "" && (safe || c.GetHeader("Origin") != ""): // plain HTTP: browsers send no Sec-Fetch-Site
	default:
		return
	}
	c.Request.Header.Set("X-Auth-Token", cookie.Value)
}

// session is the JSON of the page's session.
type session struct {
	// SignIn is true if callers sign in with Keystone.
	SignIn   bool             `json:"sign_in"`
	SignedIn bool             `json:"signed_in"`
	UserID   string           `json:"user_id"`
	Project  string           `json:"project_id"`
	System   bool             `json:"system"`
	Projects []sessionProject `json:"projects"`
	// May maps the policy rules that the page asks about to whether they allow the user to act.
	May     map[string]bool `json:"may"`
	Version string          `json:"version"`
	// Simulated is true if the cloud is simulated.
	Simulated bool `json:"simulated"`
	// Speed is how many times as fast as real time the service's time passes.
	Speed int `json:"speed"`
	// Feeds is true if GET /v1/feed has a link for the project.
	Feeds bool `json:"feeds"`
	// OnEnd lists what users may choose for the end of a reservation.
	OnEnd []reservation.OnEnd `json:"on_end"`
}

type sessionProject struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// shownRules are the rules on which parts of the page depend.
var shownRules = []string{
	"reservations:create", "offers:create", "reservations:update", "reservations:delete", "reservations:list_all", "reservations:update_all_projects", "reservations:maintain",
	"hosts:list", "hosts:get_instances", "hosts:update", "feed:get", "energy:get", "energy:list_hosts", "energy:get_host", "energy:get_plan",
	"energy:get_audit", "energy:update", "energy:approve", "energy:order", "decisions:get", "preemptible:list", "preemptible:get_cost",
	"besteffort:list", "besteffort:list_all", "images:list", "doctor:get", "doctor:fix", "usage:get_all_projects",
}

// show handles GET /dashboard/session.
func (s API) show(c *serving.Call) (any, error) {
	answer := session{SignIn: s.SignIn != nil, Projects: []sessionProject{}, May: map[string]bool{}, Version: s.Version, Simulated: s.Simulated, Speed: max(1, s.Speed)}
	token := c.Token()
	if answer.SignIn && token == "" {
		return answer, nil
	}
	by := c.Asker()
	answer.SignedIn, answer.UserID, answer.Project, answer.System = true, by.UserID, by.ProjectID, by.System
	answer.Feeds, answer.OnEnd = s.Feeds && by.May("feed:get", by.ProjectID), s.Ends.OnEnds()
	for _, rule := range shownRules {
		answer.May[rule] = by.May(rule, by.ProjectID)
	}
	if s.SignIn == nil {
		answer.Projects = append(answer.Projects, sessionProject{ID: by.ProjectID, Name: by.ProjectID})
		return answer, nil
	}
	projects, err := s.SignIn.Projects(c.Request.Context(), token)
	answer.Projects = shownProjects(projects)
	return answer, err
}

func shownProjects(projects []keystone.Project) []sessionProject {
	shown := make([]sessionProject, 0, len(projects))
	for _, p := range projects {
		shown = append(shown, sessionProject{ID: p.ID, Name: p.Name})
	}
	return shown
}

// nameProjects handles GET /dashboard/projects: the names of the projects whose reservations an operator sees.
func (s API) nameProjects(c *serving.Call) (any, error) {
	var projects []keystone.Project
	var err error
	if s.SignIn != nil {
		projects, err = s.SignIn.AllProjects(c.Request.Context(), c.Token())
	}
	return map[string]any{"projects": shownProjects(projects)}, err
}

// signInBody is the body of POST /dashboard/session: a user's name and password, an application credential, or a
// token.
type signInBody struct {
	Username                string `json:"username"`
	Password                string `json:"password"`
	Domain                  string `json:"domain"`
	ApplicationCredentialID string `json:"application_credential_id"`
	Secret                  string `json:"secret"`
	Token                   string `json:"token"`
}

// signIn handles POST /dashboard/session.
func (s API) signIn(c *serving.Call) (any, error) {
	if s.SignIn == nil {
		return nil, fault.New(fault.NotFound, "nobody signs in here: Almanac runs without Keystone")
	}
	var body signInBody
	if _, err := c.Body(&body, longestSignIn); err != nil {
		return nil, err
	}
	if body.Token == "" && (body.Username == "" || body.Password == "") && (body.ApplicationCredentialID == "" || body.Secret == "") {
		return nil, fault.New(fault.Invalid, "enter a name and a password, an application credential with its secret, or a token")
	}
	return nil, s.letIn(c, keystone.SignInCredentials{
		Username: body.Username, Password: body.Password, Domain: body.Domain,
		ApplicationCredentialID: body.ApplicationCredentialID, Secret: body.Secret, Token: body.Token,
	})
}

// switchBody is the body of PATCH /dashboard/session.
type switchBody struct {
	ProjectID string `json:"project_id"`
}

// switchProject handles PATCH /dashboard/session.
func (s API) switchProject(c *serving.Call) (any, error) {
	if s.SignIn == nil {
		return nil, fault.New(fault.NotFound, "there is one project here: Almanac runs without Keystone")
	}
	var body switchBody
	if _, err := c.Body(&body, longestSignIn); err != nil {
		return nil, err
	}
	if body.ProjectID == "" {
		return nil, fault.Field("project_id", "is required: the project to which you change")
	}
	token := c.Token()
	if err := s.letIn(c, keystone.SignInCredentials{Token: token, ProjectID: body.ProjectID}); err != nil {
		return nil, err
	}
	// A token of the header belongs to the program that sent it.
	if replaced, err := c.Request.Cookie(tokenCookie); err == nil && replaced.Value == token {
		_ = s.revoke(c, token) // which logs it
	}
	return nil, nil
}

// letIn exchanges credentials for a token and sends it as the cookie. Wrong ones count as wrong tokens do.
func (s API) letIn(c *serving.Call, by keystone.SignInCredentials) error {
	var token string
	err := c.SignIn(func() (err error) {
		if token, err = s.SignIn.SignIn(c.Request.Context(), by); err == nil {
			c.Request.Header.Set("X-Auth-Token", token)
			_, err = c.Identify()
		}
		return err
	})
	if err != nil {
		return err
	}
	setCookie(c, token)
	return nil
}

// setCookie sends the token as a cookie of the browser's session; an empty one removes it.
func setCookie(c *serving.Call, token string) {
	base, err := url.Parse(c.BaseURL())
	if err != nil {
		base = &url.URL{}
	}
	cookie := &http.Cookie{
		Name: tokenCookie, Value: token, Path: base.Path + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: base.Scheme == "https",
	}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.Writer, cookie)
}

// signOut handles DELETE /dashboard/session. The cookie is gone even if Keystone does not answer. Anybody may call it, so a
// token that only Keystone knows counts as a wrong one, unless Keystone revokes it.
func (s API) signOut(c *serving.Call) {
	if token := c.Token(); token != "" && s.SignIn != nil {
		refused := true // without the attempt
		err := c.WithToken(func() error {
			refused = false
			return s.revoke(c, token)
		})
		if refused {
			c.Fail(err)
			return
		}
	}
	setCookie(c, "")
	c.Status(http.StatusNoContent)
}

// revoke revokes a token that a visitor no longer has. One that Keystone does not revoke ends at its time.
func (s API) revoke(c *serving.Call, token string) error {
	err := s.SignIn.Revoke(c.Request.Context(), token)
	if err != nil {
		s.Log.InfoContext(c.Request.Context(), "a token was not revoked", "error", err)
	}
	return err
}
