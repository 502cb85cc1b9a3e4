// SPDX-License-Identifier: Apache-2.0

package glance_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func lab(t *testing.T) *glance.Client {
	t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.OpenStack(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := glance.New(session, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnImageIsFoundByItsNameAndItsID(t *testing.T) {
	c := lab(t)
	named, err := c.Named(t.Context(), "tiny")
	if err != nil || len(named) != 1 || named[0].Status != glance.StatusActive || named[0].Size == nil || *named[0].Size <= 0 || named[0].Visibility != glance.VisibilityPublic {
		t.Fatalf("tiny is %+v: %v", named, err)
	}
	found, err := c.Image(t.Context(), named[0].ID)
	if err != nil || found.Name != "tiny" || found.Owner == "" {
		t.Errorf("got %+v: %v", found, err)
	}
	if _, err := c.Image(t.Context(), "00000000-0000-4000-8000-000000000000"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an image that is not there: %v", err)
	}
	for _, name := range []string{"none", "in:tiny,none", "tiny&limit=1"} {
		if none, err := c.Named(t.Context(), name); len(none) > 0 || err != nil {
			t.Errorf("%s: %+v: %v", name, none, err)
		}
	}
}

func TestImagesOfANameAreThoseOfAVisibilityAndAnOwner(t *testing.T) {
	c := lab(t)
	tiny, err := c.Among(t.Context(), "tiny", glance.Filter{Visibility: glance.VisibilityPublic})
	if err != nil || len(tiny) != 1 {
		t.Fatalf("found %+v: %v", tiny, err)
	}
	for filter, want := range map[glance.Filter]int{
		{Visibility: glance.VisibilityShared}: 0, {Owner: tiny[0].Owner}: 1, {Owner: "00000000000000000000000000000000"}: 0,
	} {
		if found, err := c.Among(t.Context(), "tiny", filter); len(found) != want || err != nil {
			t.Errorf("%+v: found %d, want %d: %v", filter, len(found), want, err)
		}
	}
	if _, err := c.Named(t.Context(), "gt:5"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a name that is an operator: %v", err)
	}
}

func TestMembersOfASharedImage(t *testing.T) {
	c, rest := lab(t), labtest.Keystone(t).REST(t, labtest.Demo)
	var made struct{ ID string }
	rest.Must("POST", "image", "/v2/images", map[string]any{"name": "shared", "visibility": "shared"}, &made)
	t.Cleanup(func() { rest.Do("DELETE", "image", "/v2/images/"+made.ID, nil, nil) })
	rest.Must("POST", "image", "/v2/images/"+made.ID+"/members", map[string]string{"member": "friend"}, nil)
	for project, want := range map[string]string{"friend": "pending", "stranger": ""} {
		if got, err := c.MemberStatus(t.Context(), made.ID, project); got != want || err != nil {
			t.Errorf("%s is %q: %v", project, got, err)
		}
	}
	if found, err := c.Image(t.Context(), made.ID); err != nil || found.Size != nil || found.Status != "queued" {
		t.Errorf("without data: got %+v: %v", found, err)
	}
}

// anyone requires no login.
type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no catalog")
}

// answering returns a client of a Glance that answers by f.
func answering(t *testing.T, f http.HandlerFunc) *glance.Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c, err := glance.New(anyone{}, openstack.Options{Override: server.URL, Wait: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswersThatMakeNoSenseAreUnavailable(t *testing.T) {
	for _, text := range []string{"", "<html>", "[]", "{}", `{"images": null}`, `{"id": 7}`, `{"images": [{"name": "x"}], "next": "/v2/images"}`} {
		c := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		if _, err := c.Image(t.Context(), "x"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%q as an image: %v", text, err)
		}
		if _, err := c.Named(t.Context(), "x"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%q as a list: %v", text, err)
		}
	}
}

func TestAllPagesAreRead(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("marker") {
		case "":
			fmt.Fprint(w, `{"images": [{"id": "1", "name": "x"}], "next": "/v2/images?marker=1"}`)
		case "1":
			fmt.Fprint(w, `{"images": [{"id": "2", "name": "x"}]}`)
		}
	})
	if found, err := c.Named(t.Context(), "x"); len(found) != 2 || err != nil || c.Calls() != 2 {
		t.Errorf("found %+v with %d calls: %v", found, c.Calls(), err)
	}
}
