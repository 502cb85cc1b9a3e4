// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/energy/openstack"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	rest "github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// lab is the real cloud with an empty host.
type lab struct {
	*openstack.ComputeServices
	t     *testing.T
	nova  *nova.Client
	admin *labtest.REST
	host  string
	// provider is the host's in Placement; between is a proxy in front of Placement.
	provider string
	between  *labtest.Meddler
}

func newLab(t *testing.T) *lab {
	t.Helper()
	identity := labtest.OpenStack(t).Identity
	l := &lab{t: t, admin: identity.REST(t, labtest.Almanac)}
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: identity.AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	l.must(err)
	l.nova, err = nova.New(session, rest.Options{})
	l.must(err)
	l.between = labtest.Interpose(t, l.admin.Endpoint("placement"))
	p, err := placement.New(session, rest.Options{Override: l.between.URL})
	l.must(err)
	l.ComputeServices = openstack.New(l.nova, p)
	l.host, l.provider = l.empty()
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// empty returns the last host that is up, open and empty.
func (l *lab) empty() (host, provider string) {
	l.t.Helper()
	services, err := l.Services(l.t.Context())
	l.must(err)
	hypervisors, err := l.nova.Hypervisors(l.t.Context())
	l.must(err)
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(services))) {
		if s := services[name]; !s.Up || s.Disabled || l.occupied(name) != "" {
			continue
		}
		for _, h := range hypervisors {
			if h.Host == name {
				return name, h.ID
			}
		}
	}
	l.t.Fatalf("no host of the lab is empty: %+v", services)
	return "", ""
}

func (l *lab) occupied(host string) string {
	l.t.Helper()
	by, err := l.Occupied(l.t.Context(), host)
	l.must(err)
	return by
}

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

// await waits until a condition holds.
func (l *lab) await(what string, is func() bool) {
	l.t.Helper()
	if !labtest.Poll(patience, 100*time.Millisecond, is) {
		l.t.Fatalf("waited %v until %s", patience, what)
	}
}

// ask lets Nova build a server on the host and returns its id. The server is gone after the test.
func (l *lab) ask() string {
	l.t.Helper()
	var images struct{ Images []struct{ ID string } }
	l.admin.Must("GET", "image", "/v2/images?name=tiny", nil, &images)
	var made struct{ Server struct{ ID string } }
	l.admin.Must("POST", "compute", "/servers", map[string]any{"server": map[string]any{
		"name": "test-energy", "flavorRef": "1", "imageRef": images.Images[0].ID, "networks": "none", "host": l.host,
	}}, &made)
	l.t.Cleanup(func() { l.remove(made.Server.ID) })
	return made.Server.ID
}

func (l *lab) remove(id string) {
	l.t.Helper()
	l.must(l.nova.DeleteServer(context.Background(), id))
	l.await("the server is gone", func() bool {
		return l.admin.Do("GET", "compute", "/servers/"+id, nil, nil) == http.StatusNotFound
	})
}

// is waits until a server has the status.
func (l *lab) is(id, status string) {
	l.t.Helper()
	l.await("the server is "+status, func() bool {
		s, err := l.nova.Server(l.t.Context(), id)
		l.must(err)
		return s.Status == status && s.Task == ""
	})
}

func (l *lab) act(id string, action map[string]any) {
	l.t.Helper()
	l.admin.Must("POST", "compute", "/servers/"+id+"/action", action, nil)
}

func TestAHostIsOccupiedByAServerInEveryState(t *testing.T) {
	cloud, l := labtest.OpenStack(t), newLab(t)
	id := l.ask()
	l.is(id, "ACTIVE")
	for state, make := range map[string]func(){ // in any order
		"ACTIVE":       func() { cloud.StoreServer(t, id, map[string]any{"vm_state": "active"}) },
		"ERROR":        func() { l.act(id, map[string]any{"os-resetState": map[string]string{"state": "error"}}) },
		"SHELVED":      func() { cloud.StoreServer(t, id, map[string]any{"vm_state": "shelved"}) },
		"SOFT_DELETED": func() { cloud.StoreServer(t, id, map[string]any{"vm_state": "soft-delete"}) },
		"SHUTOFF":      func() { cloud.StoreServer(t, id, map[string]any{"vm_state": "stopped"}) },
	} {
		make()
		if by, want := l.occupied(l.host), "server "+id+" (test-energy) is on it, "+state; by != want {
			t.Errorf("got %q, want %q", by, want)
		}
	}
	cloud.StoreServer(t, id, map[string]any{"vm_state": "active"})
	l.remove(id)
	l.await("the host is empty", func() bool { return l.occupied(l.host) == "" })
}

// Once Almanac has seen a server that Nova was asked for, it sees it until the server runs: the
// server is in Placement before it has a host in Nova.
func TestAHostIsOccupiedAllTheWhileAServerIsBuilt(t *testing.T) {
	l := newLab(t)
	id := l.ask()
	l.await("the host is chosen", func() bool { return l.occupied(l.host) != "" })
	l.await("the server runs", func() bool {
		s, err := l.nova.Server(t.Context(), id)
		l.must(err)
		if l.occupied(l.host) == "" {
			t.Fatalf("the host is empty while the server is %s on %q", s.Status, s.Host)
		}
		return s.Status == "ACTIVE"
	})
}

func TestAHostIsOccupiedByAnAllocationOfWhichNovaKnowsNothing(t *testing.T) {
	l := newLab(t)
	consumer, child := uuid.NewString(), uuid.NewString()
	l.admin.Must("POST", "placement", "/resource_providers", map[string]any{
		"uuid": child, "name": "test-" + child, "parent_provider_uuid": l.provider,
	}, nil)
	t.Cleanup(func() { l.admin.Must("DELETE", "placement", "/resource_providers/"+child, nil, nil) })
	l.admin.Must("PUT", "placement", "/resource_providers/"+child+"/inventories", map[string]any{
		"resource_provider_generation": 0, "inventories": map[string]any{"VGPU": map[string]int{"total": 1}},
	}, nil)
	for provider, class := range map[string]string{l.provider: "VCPU", child: "VGPU"} {
		l.admin.Must("PUT", "placement", "/allocations/"+consumer, map[string]any{
			"allocations": map[string]any{provider: map[string]any{"resources": map[string]int64{class: 1}}},
			"project_id":  "test", "user_id": "test", "consumer_generation": nil, "consumer_type": "INSTANCE",
		}, nil)
		if by := l.occupied(l.host); !strings.HasPrefix(by, fmt.Sprintf("consumer %s holds %s of its provider ", consumer, class)) {
			t.Errorf("with an allocation of %s: %q", class, by)
		}
		l.admin.Must("DELETE", "placement", "/allocations/"+consumer, nil, nil)
		if by := l.occupied(l.host); by != "" {
			t.Errorf("without it: %q", by)
		}
	}
}

func TestBothHostsOfAMigrationAreOccupiedUntilItIsConfirmed(t *testing.T) {
	l := newLab(t)
	source := l.host
	id := l.ask()
	l.is(id, "ACTIVE")
	l.act(id, map[string]any{"migrate": nil})
	l.is(id, "VERIFY_RESIZE")
	moved, err := l.nova.Server(t.Context(), id)
	l.must(err)
	if by := l.occupied(moved.Host); !strings.HasPrefix(by, "server "+id) {
		t.Errorf("the destination: %q", by)
	}
	want := fmt.Sprintf("the migration of server %s from %s to %s is under way, finished", id, source, moved.Host)
	if by := l.occupied(source); by != want {
		t.Errorf("the source: %q, want %q", by, want)
	}
	l.must(l.nova.ConfirmMigration(t.Context(), id))
	l.await("the source is empty", func() bool { return l.occupied(source) == "" })
}

func TestWhatCannotBeKnownIsDoubt(t *testing.T) {
	l := newLab(t)
	provider := "/resource_providers/" + l.provider
	for _, tc := range []struct{ name, pattern, text, want string }{
		{"no provider", "GET /resource_providers", `{"resource_providers": []}`, "has no provider of its hypervisor"},
		{"no inventory", "GET " + provider + "/inventories", `{"inventories": {}}`, "has no inventory"},
		{"no allocations", "GET " + provider + "/allocations", `{}`, "no allocations"},
	} {
		l.between.MeddleTimes(1, tc.pattern, labtest.Text(tc.text))
		by, err := l.Occupied(t.Context(), l.host)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q, %v; want %q", tc.name, by, err, tc.want)
		}
	}
	if by, err := l.Occupied(t.Context(), "no-such-host"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a host that is not there: %q, %v", by, err)
	}
}

func TestOnlyWhatIsOursIsClosedAndOpened(t *testing.T) {
	l, ctx := newLab(t), t.Context()
	s, err := l.nova.ServiceOf(ctx, l.host)
	l.must(err)
	t.Cleanup(func() { l.must(l.nova.EnableService(context.Background(), s.ID)) })
	is := func(disabled bool, reason string) {
		t.Helper()
		all, err := l.Services(ctx)
		l.must(err)
		got := all[l.host]
		if want := (controller.Service{Up: true, Disabled: disabled, Reason: reason, Reported: got.Reported}); got != want {
			t.Errorf("the service is %+v, want %+v", got, want)
		}
	}
	one, two := controller.ReasonPrefix+"1: idle", controller.ReasonPrefix+"2: idle"

	l.must(l.Enable(ctx, l.host, ""))
	is(false, "")
	for _, reason := range []string{one, one, two} {
		l.must(l.Disable(ctx, l.host, reason))
		is(true, reason)
	}
	l.must(l.Enable(ctx, l.host, ""))
	is(false, "")

	for _, theirs := range []string{"a new disk", "AUTO: Connection to libvirt lost", strings.ToUpper(controller.ReasonPrefix)} {
		l.must(l.nova.DisableService(ctx, s.ID, theirs))
		for what, err := range map[string]error{"Enable": l.Enable(ctx, l.host, ""), "Disable": l.Disable(ctx, l.host, one)} {
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), theirs) {
				t.Errorf("%s of a host that an operator has disabled: %v", what, err)
			}
		}
		is(true, theirs)
	}
	l.must(l.nova.EnableService(ctx, s.ID))
	l.admin.Must("PUT", "compute", "/os-services/"+s.ID, map[string]any{"status": "disabled"}, nil)
	for what, err := range map[string]error{"Enable": l.Enable(ctx, l.host, ""), "Disable": l.Disable(ctx, l.host, one)} {
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s of a host that an operator has disabled without a reason: %v", what, err)
		}
	}
	if err := l.Disable(ctx, l.host, "a new disk"); !fault.Is(err, fault.Invalid) {
		t.Errorf("for a reason that is not ours: %v", err)
	}
	for what, err := range map[string]error{"Enable": l.Enable(ctx, "no-such-host", ""), "Disable": l.Disable(ctx, "no-such-host", one)} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of a host that is not there: %v", what, err)
		}
	}
}

func TestAServiceThatRunsIsHeardOfAgainAndAgain(t *testing.T) {
	l := newLab(t)
	heard := func() span.Instant {
		all, err := l.Services(t.Context())
		l.must(err)
		return all[l.host].Reported
	}
	first := heard()
	if first == 0 || first.Time().Before(time.Now().Add(-patience)) {
		t.Errorf("the last report is from %v, and now it is %v", first, span.At(time.Now()))
	}
	l.await("it reports again", func() bool { return heard() > first })
}

func TestAHostThatIsForcedDownIsNotUp(t *testing.T) {
	l := newLab(t)
	s, err := l.nova.ServiceOf(t.Context(), l.host)
	l.must(err)
	force := func(down bool) {
		l.admin.Must("PUT", "compute", "/os-services/"+s.ID, map[string]any{"forced_down": down}, nil)
	}
	t.Cleanup(func() { force(false) })
	force(true)
	all, err := l.Services(t.Context())
	l.must(err)
	if got := all[l.host]; got != (controller.Service{Reported: got.Reported}) {
		t.Errorf("the service is %+v", got)
	}
	if by := l.occupied(l.host); by != "" {
		t.Errorf("the host is occupied: %s", by)
	}
}
