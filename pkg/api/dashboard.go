// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

const (
	dashboardPath = "/dashboard/"
	sessionPath   = "/dashboard/session"
	// tokenCookie is the name of the cookie that contains the token of a user of the page.
	tokenCookie = "almanac-token"
	// longestSignIn is the largest body of a sign-in in bytes; a token has at most 8 KiB.
	longestSignIn = 16 << 10
)

// SignIn exchanges what users of the page enter for tokens; *keystone.SignIn implements it. It fails with an
// Unauthorized fault for wrong credentials.
type SignIn interface {
	SignIn(ctx context.Context, by keystone.SignInCredentials) (token string, err error)
	// Projects returns the projects for which the owner of the token can get one.
	Projects(ctx context.Context, token string) ([]keystone.Project, error)
	// AllProjects returns the projects that the owner of the token may list.
	AllProjects(ctx context.Context, token string) ([]keystone.Project, error)
	Revoke(ctx context.Context, token string) error
}

// readCookie lets the cookie of the page stand for the header X-Auth-Token. Only the page itself may use the cookie: a
// browser states where a request comes from, and sameOrigin has refused changes from elsewhere.
func (s *server) readCookie(c *gin.Context) {
	if s.SignIn == nil || c.GetHeader("X-Auth-Token") != "" {
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
}

type sessionProject struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// shownRules are the rules on which parts of the page depend.
var shownRules = []string{
	"reservations:create", "reservations:update", "reservations:delete", "reservations:list_all", "reservations:update_all_projects", "reservations:maintain",
	"hosts:list", "hosts:get_instances", "feed:get", "energy:get", "energy:list_hosts", "energy:update", "energy:approve",
	"decisions:get", "preemptible:list", "besteffort:list", "images:list", "doctor:get", "doctor:fix", "usage:get_all_projects",
}

// showSession handles GET /dashboard/session.
func (s *server) showSession(c *gin.Context) (any, error) {
	answer := session{SignIn: s.SignIn != nil, Projects: []sessionProject{}, May: map[string]bool{}, Version: s.Version, Simulated: s.Demo != nil, Speed: max(1, s.Speed)}
	token := c.GetHeader("X-Auth-Token")
	if answer.SignIn && token == "" {
		return answer, nil
	}
	by := asking(c)
	answer.SignedIn, answer.UserID, answer.Project, answer.System = true, by.UserID, by.ProjectID, by.System
	for _, rule := range shownRules {
		answer.May[rule] = by.may(rule, by.ProjectID)
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
func (s *server) nameProjects(c *gin.Context) (any, error) {
	var projects []keystone.Project
	var err error
	if s.SignIn != nil {
		projects, err = s.SignIn.AllProjects(c.Request.Context(), c.GetHeader("X-Auth-Token"))
	}
	return gin.H{"projects": shownProjects(projects)}, err
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
func (s *server) signIn(c *gin.Context) (any, error) {
	if s.SignIn == nil {
		return nil, fault.New(fault.NotFound, "nobody signs in here: Almanac runs without Keystone")
	}
	var body signInBody
	if _, err := s.body(c, &body, longestSignIn); err != nil {
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
func (s *server) switchProject(c *gin.Context) (any, error) {
	if s.SignIn == nil {
		return nil, fault.New(fault.NotFound, "there is one project here: Almanac runs without Keystone")
	}
	var body switchBody
	if _, err := s.body(c, &body, longestSignIn); err != nil {
		return nil, err
	}
	if body.ProjectID == "" {
		return nil, fault.Field("project_id", "is required: the project to which you change")
	}
	token := c.GetHeader("X-Auth-Token")
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
func (s *server) letIn(c *gin.Context, by keystone.SignInCredentials) error {
	from := s.senderOf(c)
	if wait := s.takeFailure(from); wait > 0 {
		return s.tooMany(wait, "too many attempts to sign in came from your address")
	}
	token, err := s.SignIn.SignIn(c.Request.Context(), by)
	if err == nil {
		c.Request.Header.Set("X-Auth-Token", token)
		_, err = s.identified(c)
	}
	if !fault.Is(err, fault.Unauthorized) {
		s.forgive(from)
	}
	if err != nil {
		s.metrics.authFailures.WithLabelValues(string(fault.Of(err).Kind)).Inc()
		return err
	}
	s.setCookie(c, token)
	return nil
}

// setCookie sends the token as a cookie of the browser's session; an empty one removes it.
func (s *server) setCookie(c *gin.Context, token string) {
	base, err := url.Parse(s.base(c))
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
func (s *server) signOut(c *gin.Context) {
	if token := c.GetHeader("X-Auth-Token"); token != "" && s.SignIn != nil {
		from, unknown := s.senderOf(c), !s.Authenticator.Knows(c.Request)
		if unknown {
			if wait := s.takeFailure(from); wait > 0 {
				s.limited(c, wait, "too many requests from your address had a wrong token")
				return
			}
		}
		if err := s.revoke(c, token); unknown && !fault.Is(err, fault.Unauthorized) {
			s.forgive(from)
		}
	}
	s.setCookie(c, "")
	c.Status(http.StatusNoContent)
}

// revoke revokes a token that a visitor no longer has. One that Keystone does not revoke ends at its time.
func (s *server) revoke(c *gin.Context, token string) error {
	err := s.SignIn.Revoke(c.Request.Context(), token)
	if err != nil {
		s.Log.InfoContext(c.Request.Context(), "a token was not revoked", "error", err)
	}
	return err
}
