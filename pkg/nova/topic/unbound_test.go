// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// bound returns the extra specs of flavors for reservations of hosts and of instances, in one map.
// quota:cpu_shares belongs to the flavor itself, and stays.
func bound(id string) map[string]string {
	return map[string]string{
		inventory.ReservationMark: id, fence.ProjectMark: demo, "trait:" + fence.Reserved: "required",
		"trait:" + fence.OwnName(id): "required", "resources:" + fence.OwnName(id): "1", fence.PoolSpec: id, "quota:cpu_shares": "10",
	}
}

// remembering is a placer that keeps its requests.
type remembering struct {
	placer
	asked []placing.Request
}

func (p *remembering) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	p.asked = append(p.asked, *r)
	return p.placer.Place(ctx, r)
}

func overByName(_ context.Context, id string) (bool, error) { return id == "gone", nil }

func TestAServerThatOutlivesItsReservationIsBoundToNoHost(t *testing.T) {
	open := narrowed{Forbidden: []string{"agg-fence"}, Ignored: []string{"cmp-001", "cmp-002", "cmp-003", "cmp-004", "cmp-005", "cmp-006"}}
	stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }}
	if _, err := serve(t, topic.Options{Behind: stock, Over: overByName}).ask(t, args(t, nil, bound("gone"))); err != nil {
		t.Fatalf("passed on: %v", err)
	}
	if diff := cmp.Diff(open, narrowing(t, stock.specs[0])); diff != "" {
		t.Errorf("it is not passed on like an ordinary request (-want +got):\n%s", diff)
	}
	if got := read(t, stock.specs[0]).ExtraSpecs; !cmp.Equal(got, map[string]string{"quota:cpu_shares": "10"}) {
		t.Errorf("the flavor is passed on with %v", got)
	}

	here := &remembering{}
	if _, err := serve(t, topic.Options{Placer: here, Over: overByName}).ask(t, args(t, nil, bound("gone"))); err != nil {
		t.Fatalf("decided here: %v", err)
	}
	if r := here.asked[0]; len(r.Required) > 0 || r.Resources[fence.OwnName("gone")] != 0 {
		t.Errorf("the request is decided with traits %v and resources %v", r.Required, r.Resources)
	}
}

func TestAFlavorBindsWhileItsReservationMayBeLive(t *testing.T) {
	unknown := func(context.Context, string) (bool, error) { return false, errors.New("the database is away") }
	for name, tc := range map[string]struct {
		id   string
		over func(context.Context, string) (bool, error)
	}{
		"no record has it":         {"never", overByName},
		"the records do not tell":  {"gone", unknown},
		"nobody can be asked":      {"gone", nil},
		"it is live, not over yet": {"ending", func(context.Context, string) (bool, error) { return true, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			here := &remembering{}
			if _, err := serve(t, topic.Options{Placer: here, Over: tc.over}).ask(t, args(t, nil, bound(tc.id))); err == nil || len(here.asked) > 0 {
				t.Errorf("the request is placed: %v", here.asked)
			}
		})
	}
}

func TestAFlavorOfAReservationThatIsOverDoesNotOpenTheFence(t *testing.T) {
	stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }}
	hinted := args(t, hint("own"), bound("gone"))
	if _, err := serve(t, topic.Options{Behind: stock, Over: overByName}).ask(t, hinted); err != nil {
		t.Fatal(err)
	}
	if got := narrowing(t, stock.specs[0]); len(got.Aggregates) != 1 || got.Aggregates[0][0] != "agg-own" {
		t.Errorf("with the hint of another reservation the request is narrowed to %+v, want the hosts of that reservation", got)
	}
}
