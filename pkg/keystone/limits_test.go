// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestAClassHasALimitInEachRegionWhereServersHaveOne(t *testing.T) {
	l := newLimited(t)
	class := "CUSTOM_" + rand.Text()
	l.lift(labtest.Admin, class)
	if got := l.regions(class); len(got) > 0 {
		t.Errorf("without limits for servers, the class has limits in %v", got)
	}

	regions := []string{"region-" + strings.ToLower(rand.Text()), "region-" + strings.ToLower(rand.Text())}
	slices.Sort(regions)
	for _, region := range regions {
		l.registers(region)
	}
	for range 2 {
		l.lift(labtest.Admin, class)
		if got := l.regions(class); !slices.Equal(got, regions) {
			t.Errorf("the class has limits in %v, want %v", got, regions)
		}
	}
	for range 2 {
		if err := l.limits(labtest.Admin).Drop(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		if got := l.regions(class); len(got) > 0 {
			t.Errorf("limits remain in %v", got)
		}
	}
}

func TestAUserWhoMayNotRegisterLimitsIsNamedInTheLog(t *testing.T) {
	l := newLimited(t)
	l.registers("region-" + strings.ToLower(rand.Text()))
	l.lift(labtest.Demo, "CUSTOM_"+rand.Text())
	if said := l.log.String(); !strings.Contains(said, "assign the role admin to the user") || !strings.Contains(said, labtest.Demo.Name) {
		t.Errorf("the log has %q", said)
	}
}

// limited is a Keystone with limits.
type limited struct {
	t        *testing.T
	identity labtest.Identity
	admin    *labtest.REST
	compute  string // the ID of Nova's service
	log      bytes.Buffer
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	l := &limited{t: t, identity: labtest.Keystone(t)}
	l.admin = l.identity.REST(t, labtest.Admin)
	var list struct{ Services []struct{ ID string } }
	l.admin.Must(http.MethodGet, "identity", "/services?type=compute", nil, &list)
	l.compute = list.Services[0].ID
	return l
}

func (l *limited) limits(u labtest.User) keystone.Limits {
	l.t.Helper()
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: l.identity.AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.NewTextHandler(&l.log, nil)))
	if err != nil {
		l.t.Fatal(err)
	}
	return keystone.Limits{Session: session}
}

func (l *limited) lift(u labtest.User, class string) {
	l.t.Helper()
	if err := l.limits(u).Lift(l.t.Context(), class); err != nil {
		l.t.Fatal(err)
	}
}

// registers registers a limit for servers in a new region until the test ends.
func (l *limited) registers(region string) {
	l.t.Helper()
	l.admin.Must(http.MethodPost, "identity", "/regions", map[string]any{"region": map[string]any{"id": region}}, nil)
	l.t.Cleanup(func() { l.admin.Must(http.MethodDelete, "identity", "/regions/"+region, nil, nil) })
	var made struct {
		Limits []struct{ ID string } `json:"registered_limits"`
	}
	l.admin.Must(http.MethodPost, "identity", "/registered_limits", map[string]any{"registered_limits": []any{map[string]any{
		"service_id": l.compute, "region_id": region, "resource_name": "servers", "default_limit": 10}}}, &made)
	l.t.Cleanup(func() { l.admin.Must(http.MethodDelete, "identity", "/registered_limits/"+made.Limits[0].ID, nil, nil) })
}

// regions returns the regions in which a class has a limit, sorted.
func (l *limited) regions(class string) (found []string) {
	l.t.Helper()
	var list struct {
		Limits []struct {
			Region *string `json:"region_id"`
		} `json:"registered_limits"`
	}
	l.admin.Must(http.MethodGet, "identity", "/registered_limits?resource_name="+url.QueryEscape("class:"+class), nil, &list)
	for _, one := range list.Limits {
		found = append(found, *cmp.Or(one.Region, new("none")))
	}
	slices.Sort(found)
	return found
}
