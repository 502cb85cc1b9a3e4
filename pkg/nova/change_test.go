// SPDX-License-Identifier: Apache-2.0

package nova_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// changer changes the lab's Nova as Almanac, and checks and acts without Almanac's code.
type changer struct {
	t      *testing.T
	client *nova.Client
	rest   *labtest.REST
	host   string
}

func newChanger(t *testing.T) *changer {
	t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.OpenStack(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := nova.New(session, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &changer{t: t, client: client, rest: labtest.Keystone(t).REST(t, labtest.Almanac)}
	var services struct {
		Services []struct{ Host, Status, State string }
	}
	c.rest.Must("GET", "compute", "/os-services?binary=nova-compute", nil, &services)
	for _, s := range services.Services {
		if s.State == "up" && s.Status == "enabled" {
			c.host = max(c.host, s.Host)
		}
	}
	if c.host == "" {
		t.Fatal("no compute of the lab is up")
	}
	return c
}

func (c *changer) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *changer) aggregate(metadata map[string]string) inventory.Aggregate {
	c.t.Helper()
	a, err := c.client.CreateAggregate(c.t.Context(), "test-"+uuid.NewString(), metadata)
	c.must(err)
	c.t.Cleanup(func() {
		ctx := context.Background()
		c.must(c.client.RemoveHost(ctx, a, c.host))
		c.must(c.client.DeleteAggregate(ctx, a))
	})
	return a
}

func TestAnAggregateIsChangedOnceAndForAll(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	a := c.aggregate(map[string]string{"one": "1", "theirs": "x"})
	again, err := c.client.CreateAggregate(ctx, a.Name, map[string]string{"one": "1"})
	if err != nil || again.ID != a.ID {
		t.Errorf("created again: got id %d (%v), want %d", again.ID, err, a.ID)
	}
	for range 2 {
		c.must(c.client.SetMetadata(ctx, a, map[string]string{"two": "2"}, []string{"one"}))
		c.must(c.client.AddHost(ctx, a, c.host))
	}
	is, err := c.client.AggregateNamed(ctx, a.Name)
	c.must(err)
	if len(is.Metadata) != 2 || is.Metadata["two"] != "2" || is.Metadata["theirs"] != "x" || is.Zone != "" || !slices.Equal(is.Hosts, []string{c.host}) {
		t.Errorf("the aggregate is %+v", is)
	}
	if err := c.client.DeleteAggregate(ctx, a); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "still has hosts") {
		t.Errorf("deleted with a host in it: %v", err)
	}
	for range 2 {
		c.must(c.client.RemoveHost(ctx, a, c.host))
	}
	for range 2 {
		c.must(c.client.DeleteAggregate(ctx, a))
	}
	c.must(c.client.RemoveHost(ctx, a, c.host))
	if _, err := c.client.AggregateNamed(ctx, a.Name); !fault.Is(err, fault.NotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	err = c.client.AddHost(ctx, a, c.host)
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), c.host) || !strings.Contains(err.Error(), a.Name) {
		t.Errorf("a host for an aggregate that is gone: %v", err)
	}
}

func TestSeveralWhoCreateOneAggregateAtOnceGetTheSame(t *testing.T) {
	c := newChanger(t)
	a := c.aggregate(nil)
	c.must(c.client.DeleteAggregate(t.Context(), a))
	made := make([]inventory.Aggregate, 4)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = c.client.CreateAggregate(t.Context(), a.Name, map[string]string{"of": a.Name}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c.must(c.client.DeleteAggregate(t.Context(), made[0]))
	if _, err := c.client.AggregateNamed(t.Context(), a.Name); !fault.Is(err, fault.NotFound) {
		t.Errorf("there was more than one: %v", err)
	}
	for _, one := range made {
		if one.ID != made[0].ID || one.UUID == "" {
			t.Errorf("they got %+v", made)
		}
	}
}

func TestAHostThatNovaDoesNotKnowComesIntoNoAggregate(t *testing.T) {
	c := newChanger(t)
	if err := c.client.AddHost(t.Context(), c.aggregate(nil), "test-"+uuid.NewString()); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want a not found fault", err)
	}
}

func (c *changer) flavor(id string) inventory.Flavor {
	c.t.Cleanup(func() { c.must(c.client.DeleteFlavor(context.Background(), id)) })
	return inventory.Flavor{ID: id, Name: "test:" + id, Resources: resource.Vector{VCPUs: 1, MemoryMB: 64, DiskGB: 1},
		ExtraSpecs: map[string]string{inventory.ReservationMark: id, "trait:CUSTOM_TEST": "required"}}
}

func TestAFlavorIsChangedOnceAndForAll(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	demo := labtest.Keystone(t).REST(t, labtest.Demo)
	f := c.flavor(uuid.NewString())
	for range 2 {
		c.must(c.client.CreateFlavor(ctx, f))
		c.must(c.client.SetExtraSpecs(ctx, f.ID, f.ExtraSpecs))
		c.must(c.client.SetExtraSpecs(ctx, f.ID, map[string]string{"almanac:more": "1", "almanac:less": "1"}))
	}
	for range 2 {
		c.must(c.client.DeleteExtraSpec(ctx, f.ID, "almanac:less"))
	}
	var is struct {
		Flavor struct {
			VCPUs, RAM, Disk int
			Public           bool              `json:"os-flavor-access:is_public"`
			ExtraSpecs       map[string]string `json:"extra_specs"`
		}
	}
	c.rest.Must("GET", "compute", "/flavors/"+f.ID, nil, &is)
	if got := is.Flavor; got.VCPUs != 1 || got.RAM != 64 || got.Disk != 1 || got.Public || len(got.ExtraSpecs) != 3 || got.ExtraSpecs[inventory.ReservationMark] != f.ID {
		t.Errorf("the flavor is %+v", got)
	}
	sees := func() bool { return demo.Do("GET", "compute", "/flavors/"+f.ID, nil, nil) == http.StatusOK }
	if sees() {
		t.Error("a project may use it to which it was not granted")
	}
	for range 2 {
		c.must(c.client.GrantFlavor(ctx, f.ID, demo.ProjectID))
	}
	if !sees() {
		t.Error("the project may not use it to which it was granted")
	}
	for range 2 {
		c.must(c.client.RevokeFlavor(ctx, f.ID, demo.ProjectID))
	}
	if sees() {
		t.Error("the project may still use it")
	}
	for range 2 {
		c.must(c.client.DeleteFlavor(ctx, f.ID))
	}
	c.must(c.client.RevokeFlavor(ctx, f.ID, demo.ProjectID))
	if err := c.client.DeleteExtraSpec(ctx, f.ID, "almanac:more"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an extra spec of no flavor is deleted: %v", err)
	}
	if err := c.client.GrantFlavor(ctx, f.ID, demo.ProjectID); !fault.Is(err, fault.NotFound) {
		t.Errorf("granted after it was deleted: %v", err)
	}
}

func TestAFlavorIsNotGrantedToAProjectThatKeystoneDoesNotKnow(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	f, project := c.flavor(uuid.NewString()), strings.ReplaceAll(uuid.NewString(), "-", "")
	c.must(c.client.CreateFlavor(ctx, f))
	if err := c.client.GrantFlavor(ctx, f.ID, project); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), project) {
		t.Errorf("got %v, want an invalid fault that names the project", err)
	}
	c.must(c.client.RevokeFlavor(ctx, f.ID, project))
}

func TestAFlavorWhoseNameAnotherHasIsAConflict(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	f := c.flavor(uuid.NewString())
	c.must(c.client.CreateFlavor(ctx, f))
	other := c.flavor(uuid.NewString())
	other.Name = f.Name
	if err := c.client.CreateFlavor(ctx, other); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), other.ID) {
		t.Errorf("got %v, want a conflict that names the flavor", err)
	}
}

func TestTheFlavorsThatFollowOneAreFoundAndNoOthers(t *testing.T) {
	c, ctx := newChanger(t), t.Context()
	id := uuid.NewString()
	if _, err := c.client.FlavorIDs(ctx, id); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a flavor: %v", err)
	}
	want := []string{id}
	for i := range 22 { // more than one page
		want = append(want, id+"-"+string(rune('a'+i)))
	}
	for _, one := range append(slices.Clone(want), id[:len(id)-1]+"-x", id+"x") {
		c.must(c.client.CreateFlavor(ctx, c.flavor(one)))
	}
	got, err := c.client.FlavorIDs(ctx, id)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v (%v), want %v", got, err, want)
	}
	before := c.client.Calls()
	if got, err := c.client.FlavorIDs(ctx, want[22]); err != nil || len(got) != 1 || c.client.Calls() != before+1 {
		t.Errorf("found %v (%v) in %d calls", got, err, c.client.Calls()-before)
	}
}
