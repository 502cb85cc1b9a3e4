// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

type object = map[string]any

// send sends a request to a service without any of the code under test, and returns the
// status and body of the answer.
func (s *scene) send(session *keystone.Session, method, address, version string, body any) (status int, answer []byte) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx := context.WithoutCancel(s.t.Context()) // cleanup runs after the end of the test's context
	token, err := session.Token(ctx, "")
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("OpenStack-API-Version", version)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	if answer, err = io.ReadAll(got.Body); err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, answer
}

// call sends a request to Nova and returns the answer's body.
func (s *scene) call(session *keystone.Session, method, path string, body any) object {
	s.t.Helper()
	status, text := s.send(session, method, s.nova+path, "compute 2.87", body)
	if status >= 300 && status != http.StatusNotFound {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	var o object
	_ = json.Unmarshal(text, &o) // some answers have no body
	return o
}

// tell changes something in Placement.
func (s *scene) tell(method, path string, body any) {
	s.t.Helper()
	if status, text := s.send(s.session, method, s.placement+path, "placement 1.36", body); status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
}

// boot creates a server of project demo, which is deleted when the test ends. The next test begins
// when Placement has no allocations for it.
func (s *scene) boot(extra object) (id string) {
	s.t.Helper()
	flavors := s.call(s.tenant, http.MethodGet, "/flavors", nil)["flavors"].([]any)
	flavor := flavors[0].(object)["id"]
	for _, f := range flavors {
		if f.(object)["name"] == "m1.tiny" {
			flavor = f.(object)["id"]
		}
	}
	request := object{
		"name": s.prefix, "flavorRef": flavor, "networks": "none", "imageRef": s.image(), "metadata": object{"made by": s.prefix},
	}
	body := object{"server": request}
	for key, value := range extra {
		body[key] = value
	}
	id = s.call(s.tenant, http.MethodPost, "/servers", body)["server"].(object)["id"].(string)
	s.t.Cleanup(func() {
		s.remove(id)
		if !labtest.Poll(patience, 100*time.Millisecond, func() bool { return len(s.ask("/allocations/" + id)["allocations"].(object)) == 0 }) {
			s.t.Errorf("Placement still has allocations for the deleted server %s", id)
		}
	})
	return id
}

// image returns the id of the lab's image.
func (s *scene) image() string {
	s.t.Helper()
	address, err := s.tenant.Endpoint(s.t.Context(), "image", "", []string{"public"})
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := s.tenant.Token(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, strings.TrimRight(address, "/")+"/v2/images?name=tiny", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var list struct{ Images []struct{ ID string } }
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || len(list.Images) == 0 {
		s.t.Fatalf("the lab has no image tiny: %v", err)
	}
	return list.Images[0].ID
}

// remove deletes a server. A missing server is no error.
func (s *scene) remove(id string) { s.call(s.session, http.MethodDelete, "/servers/"+id, nil) }

// ask reads a path of Placement's API.
func (s *scene) ask(path string) object {
	s.t.Helper()
	status, text := s.send(s.session, http.MethodGet, s.placement+path, "placement 1.29", nil)
	var o object
	if err := json.Unmarshal(text, &o); err != nil || status != http.StatusOK {
		s.t.Fatalf("GET %s: %d, %v", path, status, err)
	}
	return o
}

func (s *scene) usedMemory(provider string) int64 {
	s.t.Helper()
	return int64(s.ask("/resource_providers/" + provider + "/usages")["usages"].(object)["MEMORY_MB"].(float64))
}

// number formats a number of a JSON document.
func number(n any) string { return strconv.Itoa(int(n.(float64))) }
