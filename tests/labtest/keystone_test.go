// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestEveryUserOfTheLabGetsATokenForItsProject(t *testing.T) {
	keystone := labtest.Keystone(t)
	for _, user := range []labtest.User{labtest.Admin, labtest.Demo, labtest.Demo2, labtest.Reader, labtest.Almanac} {
		t.Run(user.Name, func(t *testing.T) {
			var token struct {
				ID      string `json:"id"`
				Project string `json:"project_id"`
			}
			issued := keystone.Openstack(t, user, "token", "issue", "-f", "json")
			if err := json.Unmarshal([]byte(issued), &token); err != nil {
				t.Fatal(err)
			}
			if token.ID == "" || token.Project == "" {
				t.Errorf("token issue printed %s, want a token for a project", issued)
			}
		})
	}
}

func TestUsersHaveTheRolesTheLabNames(t *testing.T) {
	var assigned []struct{ Role, User, Project string }
	out := labtest.Keystone(t).Openstack(t, labtest.Admin, "role", "assignment", "list", "--names", "-f", "json")
	if err := json.Unmarshal([]byte(out), &assigned); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range assigned {
		if a.Project != "" {
			got = append(got, a.User+" "+a.Role+" "+a.Project)
		}
	}
	slices.Sort(got)
	want := []string{
		"admin@Default admin admin@Default",
		"almanac@Default admin service@Default",
		"almanac@Default service service@Default",
		"demo2@Default member demo2@Default",
		"demo@Default member demo@Default",
		"reader@Default reader demo@Default",
	}
	for _, one := range want {
		if !slices.Contains(got, one) {
			t.Errorf("role assignments (-want +got):\n%s", cmp.Diff(want, got))
			break
		}
	}
}
