// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	rest "github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// lab is the real cloud and those of its hosts that no other test uses.
type lab struct {
	t         *testing.T
	cloud     *openstack.Backend
	compute   *nova.Client
	placement *placement.Client
	admin     *labtest.REST
	owner     *labtest.REST // of the reservations
	snapshot  *inventory.Snapshot
	free      []string // hosts
	guests    remembered
}

// remembered holds guests by the id of their instance.
type remembered map[string]inventory.InstanceRecord

func (r remembered) InstanceRecords(_ context.Context, instances ...string) (map[string]inventory.InstanceRecord, error) {
	some := map[string]inventory.InstanceRecord{}
	for _, id := range instances {
		if g, known := r[id]; known {
			some[id] = g
		}
	}
	return some, nil
}

const now span.Instant = 1_000_000

func newLab(t *testing.T) *lab {
	t.Helper()
	identity := labtest.OpenStack(t).Identity
	l := &lab{t: t, admin: identity.REST(t, labtest.Almanac), owner: identity.REST(t, labtest.Demo), guests: remembered{}}
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: identity.AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	l.must(err)
	l.compute, err = nova.New(session, rest.Options{})
	l.must(err)
	l.placement, err = placement.New(session, rest.Options{})
	l.must(err)
	l.cloud = openstack.New(openstack.Options{
		Compute: l.compute, Placement: l.placement, Hosts: func() *inventory.Snapshot { return l.snapshot },
		Preemptible: inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible"}, Records: l.guests, Now: clock,
	})
	l.look()
	return l
}

func clock() span.Instant { return span.At(time.Now()) }

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// look reads the snapshot and finds the free hosts, the last ones first.
func (l *lab) look() {
	l.t.Helper()
	nodes, err := l.compute.Hypervisors(l.t.Context())
	l.must(err)
	var hosts []inventory.Host
	for _, n := range nodes {
		hosts = append(hosts, inventory.Host{Name: n.Host, Provider: n.ID, Reservable: true, Capacity: resource.Vector{VCPUs: 2, MemoryMB: 256, DiskGB: 2}})
	}
	l.snapshot, err = inventory.NewSnapshot(hosts, nil, nil)
	l.must(err)
	layout, err := l.cloud.Layout(l.t.Context())
	l.must(err)
	for _, n := range nodes {
		guests, err := l.cloud.On(l.t.Context(), n.Host)
		l.must(err)
		if len(guests) == 0 && len(layout.Traits[n.Host]) == 0 {
			l.free = append(l.free, n.Host)
		}
	}
	slices.Sort(l.free)
	slices.Reverse(l.free)
	if len(l.free) < 3 {
		l.t.Fatalf("only the hosts %v of the lab are free", l.free)
	}
}

func (l *lab) provider(host string) string {
	i, _ := l.snapshot.Index(host)
	return l.snapshot.Host(i).Provider
}

// reservation returns an active reservation of the first free hosts.
func (l *lab) reservation(kind reservation.Kind, hosts int) reservation.Reservation {
	r := reservation.Reservation{
		ID: uuid.NewString(), ProjectID: l.owner.ProjectID, Status: reservation.Starting,
		Span:  span.Span{Start: now - 100, End: now + 100_000},
		Terms: reservation.Terms{Kind: kind, Quantity: hosts},
	}
	for _, host := range l.free[:hosts] {
		claim := reservation.Claim{Host: host, Span: r.Span}
		if kind == reservation.Instances {
			claim.Slices = 2
			r.Resources = resource.Vector{VCPUs: 1, MemoryMB: 64, DiskGB: 1}
		}
		r.Claims = append(r.Claims, claim)
	}
	return r
}

var rules = fence.Rules{Flavors: []inventory.Flavor{{Name: "small", Resources: resource.Vector{VCPUs: 1, MemoryMB: 64, DiskGB: 1}}}}

// steps returns the steps after which the reservation is live, or not.
func (l *lab) steps(r reservation.Reservation, live bool) []fence.Step {
	l.t.Helper()
	layout, err := l.cloud.Layout(l.t.Context())
	l.must(err)
	var all []reservation.Reservation
	if live {
		all = append(all, r)
	}
	return fence.For(fence.Diff(layout, fence.Desired(all, l.snapshot, now, rules)), &r)
}

func (l *lab) carry(steps []fence.Step) {
	l.t.Helper()
	for _, step := range steps {
		if err := l.cloud.Carry(l.t.Context(), step); err != nil {
			l.t.Fatalf("%v (%s)", err, step.Reason)
		}
	}
}

// lay creates the reservation's resources on the cloud until the test ends. The fence itself
// stays if it existed before.
func (l *lab) lay(r reservation.Reservation) {
	l.t.Helper()
	before, err := l.cloud.Layout(l.t.Context())
	l.must(err)
	l.t.Cleanup(func() {
		ctx := context.Background()
		layout, err := l.cloud.Layout(ctx)
		l.must(err)
		for _, step := range fence.For(fence.Diff(layout, fence.Desired(nil, l.snapshot, now, rules)), &r) {
			if !step.Adds() {
				l.must(l.cloud.Carry(ctx, step))
			}
		}
		if fenced, there := layout.Aggregates[fence.Aggregate]; there && before.Aggregates[fence.Aggregate].ID == 0 {
			_ = l.compute.DeleteAggregate(ctx, fenced) // others may use it now
		}
		for _, trait := range []string{fence.Reserved, fence.Shared} {
			if !slices.Contains(before.TraitNames, trait) {
				_ = l.placement.DeleteTrait(ctx, trait) // others may use it now
			}
		}
	})
	l.carry(l.steps(r, true))
}

func (l *lab) image() string {
	l.t.Helper()
	var list struct{ Images []struct{ ID, Name string } }
	l.admin.Must("GET", "image", "/v2/images", nil, &list)
	i := slices.IndexFunc(list.Images, func(i struct{ ID, Name string }) bool { return i.Name == "tiny" })
	if i < 0 {
		l.t.Fatal("the lab has no image tiny")
	}
	return list.Images[i].ID
}

func (l *lab) tiny() string {
	l.t.Helper()
	var list struct{ Flavors []struct{ ID, Name string } }
	l.admin.Must("GET", "compute", "/flavors", nil, &list)
	i := slices.IndexFunc(list.Flavors, func(f struct{ ID, Name string }) bool { return f.Name == "m1.tiny" })
	if i < 0 {
		l.t.Fatal("the lab has no flavor m1.tiny")
	}
	return list.Flavors[i].ID
}

// ask requests an instance from Nova as a user, on a host unless host is empty, and returns
// its id, or "" if Nova refuses.
func (l *lab) ask(who *labtest.REST, flavor, host string) string {
	l.t.Helper()
	wanted := map[string]any{"name": "test-upkeep-openstack", "flavorRef": flavor, "imageRef": l.image(), "networks": "none"}
	if host != "" {
		wanted["host"] = host
	}
	var made struct{ Server struct{ ID string } }
	if status := who.Do("POST", "compute", "/servers", map[string]any{"server": wanted}, &made); status != http.StatusAccepted {
		l.t.Logf("Nova answers %d to a request for an instance of flavor %s", status, flavor)
		return ""
	}
	l.t.Cleanup(func() {
		ctx := context.Background()
		l.must(l.compute.DeleteServer(ctx, made.Server.ID))
		l.await("the instance is gone", func() bool {
			return l.admin.Do("GET", "compute", "/servers/"+made.Server.ID, nil, nil) == http.StatusNotFound
		})
	})
	return made.Server.ID
}

// boot requests an instance and waits until it runs or has failed.
func (l *lab) boot(who *labtest.REST, flavor, host string) inventory.Instance {
	l.t.Helper()
	id := l.ask(who, flavor, host)
	if id == "" {
		l.t.Fatalf("Nova refuses an instance of flavor %s", flavor)
	}
	return l.settled(id, func(i inventory.Instance) bool { return i.Status == "ACTIVE" || i.Status == "ERROR" })
}

// settled waits until an instance has no task and wanted accepts it.
func (l *lab) settled(id string, wanted func(inventory.Instance) bool) (i inventory.Instance) {
	l.t.Helper()
	l.await("the instance is as wanted", func() bool {
		s, err := l.compute.Server(context.Background(), id)
		l.must(err)
		i = s.Instance
		return i.Task == "" && wanted(i)
	})
	return i
}

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

func (l *lab) await(what string, done func() bool) {
	l.t.Helper()
	if !labtest.Poll(patience, 100*time.Millisecond, done) {
		l.t.Fatalf("after %v, still waiting until %s", patience, what)
	}
}

func (l *lab) on(host string) []inventory.Instance {
	l.t.Helper()
	guests, err := l.cloud.On(context.Background(), host)
	l.must(err)
	return guests
}

func (l *lab) order(i inventory.Instance, order upkeep.Order) {
	l.t.Helper()
	l.must(l.cloud.Order(context.Background(), i, order))
}

func ids(guests []inventory.Instance) (list []string) {
	for _, i := range guests {
		list = append(list, i.ID)
	}
	return list
}

func ownName(id string) string {
	return "CUSTOM_ALMANAC_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
}
