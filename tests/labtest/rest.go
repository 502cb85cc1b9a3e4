// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// REST calls the services of the lab as one of its users, for changes that a test makes behind the
// back of the code under test.
type REST struct {
	ProjectID string // of the user

	t         testing.TB
	token     string
	endpoints map[string]string // public, by the type of the service
}

// versions are the microversions of requests to the lab's services.
var versions = map[string]string{"compute": "compute 2.87", "placement": "placement 1.39"}

// ironicVersion goes in a header of Ironic's own: Ironic ignores the common one.
const ironicVersion = "1.82"

// REST logs the user in.
func (i Identity) REST(t testing.TB, u User) *REST {
	t.Helper()
	domain := map[string]string{"id": "default"}
	login := map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": u.Name, "password": u.Password, "domain": domain}}},
		"scope": map[string]any{"project": map[string]any{"name": u.Project, "domain": domain}},
	}}
	r := &REST{t: t, endpoints: map[string]string{"identity": i.AuthURL}}
	var body struct {
		Token struct {
			Project struct{ ID string }
			Catalog []struct {
				Type      string
				Endpoints []struct{ Interface, URL string }
			}
		}
	}
	status, header := r.send(http.MethodPost, i.AuthURL+"/auth/tokens", "", login, &body)
	if status != http.StatusCreated {
		t.Fatalf("log in as %s: status %d", u.Name, status)
	}
	r.token, r.ProjectID = header.Get("X-Subject-Token"), body.Token.Project.ID
	for _, service := range body.Token.Catalog {
		for _, e := range service.Endpoints {
			if e.Interface == "public" {
				r.endpoints[service.Type] = strings.TrimSuffix(e.URL, "/")
			}
		}
	}
	return r
}

// Endpoint returns the address of a service by its type: compute, placement, ….
func (r *REST) Endpoint(service string) string { return r.endpoints[service] }

// Do sends a request to a service (compute, placement, …) and returns its status; body and into,
// which may be nil, are JSON.
func (r *REST) Do(method, service, path string, body, into any) (status int) {
	r.t.Helper()
	status, _ = r.send(method, r.endpoints[service]+path, versions[service], body, into)
	return status
}

// Must is Do for a request that must succeed.
func (r *REST) Must(method, service, path string, body, into any) {
	r.t.Helper()
	if status := r.Do(method, service, path, body, into); status >= http.StatusBadRequest {
		r.t.Fatalf("%s %s%s: status %d", method, service, path, status)
	}
}

func (r *REST) send(method, url, version string, body, into any) (int, http.Header) {
	r.t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, url, content)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json") // Blazar refuses requests without it
	request.Header.Set("X-Auth-Token", r.token)
	request.Header.Set("OpenStack-API-Version", version)
	request.Header.Set("X-OpenStack-Ironic-API-Version", ironicVersion)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(fmt.Errorf("%s %s: %w", method, url, err))
	}
	defer answer.Body.Close()
	if into != nil && answer.StatusCode < http.StatusBadRequest {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			r.t.Fatalf("%s %s: %v", method, url, err)
		}
	}
	return answer.StatusCode, answer.Header
}
