package openstack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/keystone"
)

type object = map[string]any

// call asks Nova, without any of the code under test, and gives the answer's body.
func (s *scene) call(session *keystone.Session, method, path string, body any) object {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx := context.WithoutCancel(s.t.Context()) // what a test has made is removed after its end
	token, err := session.Token(ctx, "")
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.nova+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("OpenStack-API-Version", "compute 2.87")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, text, err)
	}
	var o object
	_ = json.Unmarshal(text, &o) // some answers have no body
	return o
}

// boot asks for a server of project demo. It is deleted with the test.
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
	s.t.Cleanup(func() { s.remove(id) })
	return id
}

// image gives the id of the lab's image.
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

// remove deletes a server. One that is gone already is no error.
func (s *scene) remove(id string) { s.call(s.session, http.MethodDelete, "/servers/"+id, nil) }

// ask asks Placement, without any of the code under test.
func (s *scene) ask(path string) object {
	s.t.Helper()
	token, err := s.session.Token(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.placement+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("OpenStack-API-Version", "placement 1.29")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var o object
	if err := json.NewDecoder(answer.Body).Decode(&o); err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %d, %v", path, answer.StatusCode, err)
	}
	return o
}

func (s *scene) usedMemory(provider string) int64 {
	s.t.Helper()
	return int64(s.ask("/resource_providers/" + provider + "/usages")["usages"].(object)["MEMORY_MB"].(float64))
}

// number writes a number out of a JSON document.
func number(n any) string { return strconv.Itoa(int(n.(float64))) }
