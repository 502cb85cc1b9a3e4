// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// guests holds the saved records, by the instance's id.
type guests struct {
	saved map[string]inventory.InstanceRecord
	err   error
}

func (g *guests) SaveInstanceRecords(ctx context.Context, instances []string, guest inventory.InstanceRecord, at span.Instant) error {
	if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > 2*time.Second || at != now {
		return errors.New("the request would wait, or the time is wrong")
	}
	for _, id := range instances {
		g.saved[id] = guest
	}
	return g.err
}

func (g *guests) InstanceRecords(context.Context, ...string) (map[string]inventory.InstanceRecord, error) {
	return g.saved, g.err
}

// following fails the test if it places instances before their records are saved.
type following struct {
	placer
	t      *testing.T
	guests *guests
}

func (f following) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	if f.guests.err != nil || len(f.guests.saved) == 0 {
		f.t.Error("the instance was placed before its record was stored")
	}
	return f.placer.Place(ctx, r)
}

func TestWhatAHintSaysIsStoredBeforeTheAnswer(t *testing.T) {
	two := args(t, hint("own"), nil)
	two["instance_uuids"] = []string{"i1", "i2"}
	own, foreign := inventory.InstanceRecord{Reservation: "own"}, args(t, hint("foreign"), nil)
	foreign["instance_uuids"] = []string{"i3"}
	g := &guests{saved: map[string]inventory.InstanceRecord{}}
	b := serve(t, topic.Options{Placer: following{t: t, guests: g}, Records: g})
	if _, err := b.ask(t, two); err != nil {
		t.Fatal(err)
	}
	spot := args(t, fields{"scheduler_hints": map[string][]string{"preemptible": {"true"}}}, nil)
	spot["instance_uuids"] = []string{"i4"}
	if _, err := b.ask(t, spot); err != nil {
		t.Fatal(err)
	}
	_, err := b.ask(t, foreign)
	checkRefusal(t, err, "NoValidHost", novaException, "has no reservation foreign")
	for name, other := range map[string]map[string]any{
		"no hint": args(t, nil, nil), "a reservation's flavor": args(t, nil, map[string]string{inventory.ReservationMark: "own"}),
		"a preemptible flavor": args(t, nil, map[string]string{"preemptible": "true"}),
	} {
		if _, err := b.ask(t, other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := cmp.Diff(map[string]inventory.InstanceRecord{"i1": own, "i2": own, "i4": {Preemptible: true}}, g.saved); d != "" {
		t.Errorf("saved are (-want +got):\n%s", d)
	}
}

func TestAPromiseThatCannotBeStoredIsNotGiven(t *testing.T) {
	g := &guests{saved: map[string]inventory.InstanceRecord{}, err: errors.New("the database is away")}
	b := serve(t, topic.Options{Placer: following{t: t, guests: g}, Records: g})
	_, err := b.ask(t, args(t, hint("own"), nil))
	checkRefusal(t, err, "NoValidHost", novaException, "The hints of the request cannot be stored now; try again later.")
}

func TestWhoHasOutlivedHisReservationMayBeMoved(t *testing.T) {
	g := &guests{saved: map[string]inventory.InstanceRecord{"moved": {Reservation: "ended"}, "waits": {Reservation: "ending"}}}
	b := serve(t, topic.Options{Placer: following{t: t, guests: g}, Records: g})
	ask := func(instance, reservation string) error {
		one := args(t, hint(reservation), nil)
		one["instance_uuids"] = []string{instance}
		_, err := b.ask(t, one)
		return err
	}
	checkRefusal(t, ask("new", "ended"), "NoValidHost", novaException, "has no reservation ended, or it is over")
	checkRefusal(t, ask("waits", "ending"), "NoValidHost", novaException, "Reservation ending is ending")
	if err := ask("moved", "ended"); err != nil {
		t.Errorf("a server of a reservation that is over: %v", err)
	}
	if d := cmp.Diff(map[string]inventory.InstanceRecord{"moved": {}, "waits": {Reservation: "ending"}}, g.saved); d != "" {
		t.Errorf("remembered are (-want +got):\n%s", d)
	}
	// Nova sends the hint forever.
	if err := ask("moved", "ended"); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestAnInstanceStaysInTheOneOfItsReservationsInWhichItWasPlaced(t *testing.T) {
	g := &guests{saved: map[string]inventory.InstanceRecord{"moved": {Reservation: "own-new"}}}
	here := &remembering{}
	b := serve(t, topic.Options{Placer: here, Records: g})
	for n, c := range []struct {
		instance string
		hint     []string
		want     string
	}{
		{"new", []string{"later", "own", "own-new"}, "own"}, // the first that is active
		{"moved", []string{"own", "own-new"}, "own-new"},
		{"moved", []string{"own"}, "own"},
	} {
		one := args(t, hint(c.hint...), nil)
		one["instance_uuids"] = []string{c.instance}
		if _, err := b.ask(t, one); err != nil {
			t.Fatal(err)
		}
		if got := here.asked[n].Hints[placing.ReservationHint]; !cmp.Equal(got, []string{c.want}) || g.saved[c.instance].Reservation != c.want {
			t.Errorf("instance %s with the hint %v: the request names %v, stored is %v; want %s", c.instance, c.hint, got, g.saved[c.instance], c.want)
		}
	}
}
