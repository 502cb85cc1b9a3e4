// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

func projectsOf(t *testing.T, c *cloud, a account) keystone.Projects {
	t.Helper()
	s, err := keystone.NewSession(keystone.Connection{
		AuthURL: c.url, Username: a.name, Password: a.password, ProjectName: a.projectName,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return keystone.Projects{Session: s}
}

func TestAProjectExistsUntilItIsDeleted(t *testing.T) {
	c := newCloud(t)
	projects := projectsOf(t, c, c.account("admin", "service"))
	gone := c.account("member").project
	for _, step := range []struct {
		method string
		body   object
		want   bool
	}{
		{http.MethodPatch, object{"project": object{"description": "is used"}}, true},
		{http.MethodPatch, object{"project": object{"enabled": false}}, true},
		{http.MethodDelete, object{}, false},
	} {
		c.call(c.admin, step.method, "/projects/"+gone, step.body, http.StatusOK, http.StatusNoContent)
		if is, err := projects.Exists(t.Context(), gone); err != nil || is != step.want {
			t.Errorf("after %s it exists: %v, %v; want %v", step.body, is, err, step.want)
		}
	}
}

func TestWhoMayNotAskForAProjectDoesNotTakeItForGone(t *testing.T) {
	c := newCloud(t)
	projects := projectsOf(t, c, c.account("member"))
	other := c.account("member").project
	if is, err := projects.Exists(t.Context(), other); err == nil {
		t.Errorf("it exists: %v, %v; want a failure", is, err)
	}
	if is, err := projects.Exists(t.Context(), "0123456789abcdef0123456789abcdef"); err == nil {
		t.Errorf("a project that does not exist: %v, %v; want a failure, because Keystone cannot tell", is, err)
	}
}

func TestAKeystoneThatDoesNotFindTheServiceProjectIsNotBelieved(t *testing.T) {
	c := newCloud(t)
	projects := projectsOf(t, c, c.account("admin", "service"))
	const nobody = "0123456789abcdef0123456789abcdef"
	if is, err := projects.Exists(t.Context(), nobody); err != nil || is {
		t.Fatalf("one that there is not exists: %v, %v", is, err)
	}
	f := newFront(c)
	user := c.account("admin", "service")
	behind := *c
	behind.url = f.URL + "/v3"
	projects = projectsOf(t, &behind, user)
	if is, err := projects.Exists(t.Context(), user.project); err != nil || !is {
		t.Fatalf("the service project exists: %v, %v", is, err)
	}
	f.set(func(f *front) { f.instead = http.StatusNotFound })
	if is, err := projects.Exists(t.Context(), nobody); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it exists: %v, %v; want a failure", is, err)
	}
}
