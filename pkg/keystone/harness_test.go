// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// cloud calls the lab's Keystone without Almanac's code.
type cloud struct {
	t     testing.TB
	url   string // ends in /v3
	admin string // a token of the cloud's admin

	context context.Context
}

func newCloud(t testing.TB) *cloud {
	t.Helper()
	address, user, password := lab(t)
	c := &cloud{t: t, context: t.Context(), url: strings.TrimSuffix(strings.TrimRight(address, "/"), "/v3") + "/v3"}
	c.admin = c.login(byPassword(user, password), inProject("admin"))
	return c
}

type object = map[string]any

// call sends a request and returns the body and headers of the answer; its status must be one of
// want.
func (c *cloud) call(token, method, path string, body any, want ...int) (object, http.Header) {
	c.t.Helper()
	var text []byte
	var err error
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			c.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(c.context, method, c.url+path, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, status := range want {
		if answer.StatusCode == status {
			var o object
			_ = json.Unmarshal(text, &o) // some answers have no body
			return o, answer.Header
		}
	}
	c.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	return nil, nil
}

func byPassword(user, password string) object {
	return object{"methods": []string{"password"}, "password": object{"user": object{
		"name": user, "password": password, "domain": object{"id": "default"}}}}
}

func inProject(name string) object {
	return object{"project": object{"name": name, "domain": object{"id": "default"}}}
}

// login returns a token; scope may be nil.
func (c *cloud) login(identity, scope object) string {
	c.t.Helper()
	token, _ := c.loginUntil(identity, scope)
	return token
}

func (c *cloud) loginUntil(identity, scope object) (string, time.Time) {
	c.t.Helper()
	auth := object{"identity": identity}
	if scope != nil {
		auth["scope"] = scope
	}
	body, header := c.call("", http.MethodPost, "/auth/tokens", object{"auth": auth}, http.StatusCreated)
	expires, err := time.Parse(time.RFC3339, body["token"].(object)["expires_at"].(string))
	if err != nil {
		c.t.Fatal(err)
	}
	return header.Get("X-Subject-Token"), expires
}

func (c *cloud) revoke(token string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodDelete, c.url+"/auth/tokens", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", c.admin)
	r.Header.Set("X-Subject-Token", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		c.t.Fatalf("revoke: %d", answer.StatusCode)
	}
}

// account is a user of the test's own, in a project of its own.
type account struct {
	name, password, id   string
	project, projectName string
}

func (a account) identity() object { return byPassword(a.name, a.password) }

// account creates a user with roles in a new project.
func (c *cloud) account(roles ...string) account {
	c.t.Helper()
	name := "t-" + strings.ToLower(rand.Text())
	a := account{name: name, password: "secret-" + rand.Text(), projectName: name}
	a.project = c.create("project", object{"name": name, "domain_id": "default"})
	a.id = c.create("user", object{"name": name, "domain_id": "default", "password": a.password})
	for _, role := range roles {
		c.call(c.admin, http.MethodPut, "/projects/"+a.project+"/users/"+a.id+"/roles/"+c.role(role), nil, http.StatusNoContent)
	}
	return a
}

func (c *cloud) create(kind string, attributes object) string {
	c.t.Helper()
	body, _ := c.call(c.admin, http.MethodPost, "/"+kind+"s", object{kind: attributes}, http.StatusCreated)
	return body[kind].(object)["id"].(string)
}

func (c *cloud) role(name string) string {
	c.t.Helper()
	body, _ := c.call(c.admin, http.MethodGet, "/roles?name="+name, nil, http.StatusOK)
	for _, r := range body["roles"].([]any) {
		return r.(object)["id"].(string)
	}
	return c.create("role", object{"name": name})
}

// token returns a token of the account for its project.
func (c *cloud) token(a account) string {
	c.t.Helper()
	return c.login(a.identity(), inProject(a.projectName))
}

// applicationCredential creates an application credential and returns a token of it.
func (c *cloud) applicationCredential(a account, attributes object) string {
	c.t.Helper()
	attributes["name"] = rand.Text()
	body, _ := c.call(c.token(a), http.MethodPost, "/users/"+a.id+"/application_credentials",
		object{"application_credential": attributes}, http.StatusCreated)
	made := body["application_credential"].(object)
	return c.login(object{"methods": []string{"application_credential"}, "application_credential": object{
		"id": made["id"], "secret": made["secret"]}}, nil)
}

// clock is a clock that the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// logbook is a log that the test reads.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// scene is a validator behind a front, with a service user of its own.
type scene struct {
	*cloud
	front   *front
	clock   *clock
	log     *logbook
	service account
	options keystone.Options
	*keystone.Validator
}

func newScene(t *testing.T, change func(o *keystone.Options)) *scene {
	t.Helper()
	s := &scene{cloud: newCloud(t), clock: &clock{at: time.Now()}, log: &logbook{}}
	s.front, s.service = newFront(s.cloud), s.account("admin", "service")
	s.options = keystone.Options{
		Connection: keystone.Connection{
			AuthURL: s.front.URL + "/v3", Username: s.service.name, Password: s.service.password, ProjectName: s.service.projectName,
			Timeout: patience,
		},
		TokenCacheTime: 5 * time.Minute, ServiceTokenRoles: []string{"service"}, ServiceTokenRolesRequired: true,
		ServiceType: "reservation", Now: s.clock.now, Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if change != nil {
		change(&s.options)
	}
	v, err := keystone.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	s.Validator = v
	return s
}

// validate validates a token without a service token.
func (s *scene) validate(token string) (keystone.Token, error) {
	return s.Validate(s.t.Context(), token, "")
}
