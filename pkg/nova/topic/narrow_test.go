// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// narrowed is how a request was narrowed: required and forbidden aggregates, ignored hosts,
// required traits and resource classes of its own.
type narrowed struct {
	Aggregates         [][]string
	Forbidden, Ignored []string
	Traits, Classes    []string
}

func narrowing(t *testing.T, spec json.RawMessage) narrowed {
	t.Helper()
	r := read(t, spec)
	n := narrowed{Aggregates: r.MemberOf, Forbidden: r.NotMemberOf, Ignored: r.IgnoreHosts, Traits: r.Required}
	for class := range r.Resources {
		if strings.HasPrefix(class, fence.OwnPrefix) {
			n.Classes = append(n.Classes, class)
		}
	}
	return n
}

func TestARequestIsNarrowedToTheHostsItMayUse(t *testing.T) {
	own := []string{fence.OwnName("own"), fence.Reserved}
	slices.Sort(own)
	closed := []string{"cmp-001", "cmp-002", "cmp-003", "cmp-004", "cmp-005", "cmp-006"}
	open := narrowed{Forbidden: []string{"agg-fence"}, Ignored: closed}
	outsideOwn := []string{"cmp-003", "cmp-004", "cmp-005", "cmp-006", "cmp-007", "cmp-008"}
	outsideShared := []string{"cmp-001", "cmp-002", "cmp-003", "cmp-004", "cmp-006", "cmp-007", "cmp-008"}
	for name, tc := range map[string]struct {
		args   map[string]any
		states *inventory.States
		want   []narrowed
	}{
		"without a reservation": {args(t, nil, nil), nil, []narrowed{open}},
		// cmp-003 is still in the aggregate, but no longer in the reservation.
		"with the hint": {args(t, hint("own"), nil), nil, []narrowed{{Aggregates: [][]string{{"agg-own"}}, Ignored: outsideOwn, Traits: own}}},
		"with its flavor": {
			args(t, nil, map[string]string{"almanac:reservation": "own", "trait:" + own[0]: "required", "trait:" + own[1]: "required"}), nil,
			[]narrowed{{Aggregates: [][]string{{"agg-own"}}, Ignored: outsideOwn, Traits: own}},
		},
		"of instances": {args(t, hint("shared"), nil), nil, []narrowed{{
			Aggregates: [][]string{{"agg-shared"}}, Ignored: outsideShared, Traits: []string{fence.Reserved, fence.Shared}, Classes: []string{fence.OwnName("shared")},
		}}},
		"with an aggregate that is not known yet": {args(t, hint("own-new"), nil), nil, []narrowed{{
			Ignored: append([]string{"cmp-001"}, outsideOwn...), Traits: []string{fence.Reserved, fence.OwnName("own-new")},
		}}},
		"preemptible": {args(t, nil, map[string]string{"preemptible": "true"}), nil, []narrowed{
			{Forbidden: []string{"agg-fence"}, Ignored: []string{"cmp-001", "cmp-002", "cmp-003", "cmp-005"}},
			{Traits: []string{fence.Reserved}, Ignored: []string{"cmp-001", "cmp-002", "cmp-003", "cmp-005", "cmp-006", "cmp-007", "cmp-008"}},
		}},
		"without a fence": {args(t, nil, nil), withoutFence(t), []narrowed{{Ignored: closed}}},
		"a rebuild":       {args(t, fields{"scheduler_hints": map[string][]string{"_nova_check_type": {"rebuild"}}, "force_hosts": []string{"cmp-001"}}, nil), nil, []narrowed{{}}},
		"with wishes of its own": {args(t, fields{"ignore_hosts": []string{"cmp-001"}}, nil), nil, []narrowed{
			{Forbidden: []string{"agg-fence"}, Ignored: closed},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) {
				return nil, &oslo.RemoteError{Class: "NoValidHost", Module: novaException, Message: "No valid host was found. There are not enough hosts available."}
			}}
			o := topic.Options{Behind: stock}
			if tc.states != nil {
				o.States = func() *inventory.States { return tc.states }
			}
			_, err := serve(t, o).ask(t, tc.args)
			checkRefusal(t, err, "NoValidHost", novaException, "No valid host was found. ")
			var got []narrowed
			for _, spec := range stock.specs {
				got = append(got, narrowing(t, spec))
			}
			sorted := cmp.Transformer("sorted", func(list []string) []string { return slices.Sorted(slices.Values(list)) })
			if diff := cmp.Diff(tc.want, got, cmp.FilterPath(func(p cmp.Path) bool {
				return p.Last().String() == ".Traits"
			}, sorted)); diff != "" {
				t.Errorf("the request is narrowed otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutFence returns the hosts of cloud without any aggregate.
func withoutFence(t *testing.T) *inventory.States {
	t.Helper()
	var rows []inventory.HostState
	whole := cloud(t)
	for i := range whole.Len() {
		rows = append(rows, *whole.Host(i))
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// Placement counts what is left of a reservation of instances, because the states may still
// contain an instance that has left.
func TestWhatIsLeftOfAReservationOfInstancesPlacementCounts(t *testing.T) {
	full, err := inventory.NewStates([]inventory.HostState{{Name: "cmp-005", Instances: []inventory.Instance{
		{ID: "i1", Reservation: "shared"}, {ID: "i2", Reservation: "shared"},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }}
	b := serve(t, topic.Options{Behind: stock, States: func() *inventory.States { return full }})
	if _, err := b.ask(t, args(t, hint("shared"), nil)); err != nil {
		t.Fatal(err)
	}
	if got := narrowing(t, stock.specs[0]); len(got.Ignored) > 0 || len(got.Classes) != 1 {
		t.Errorf("the request is narrowed to %+v, want one of the reservation's class on any of its hosts", got)
	}
	stock.answer = func(json.RawMessage) (json.RawMessage, error) {
		return nil, &oslo.RemoteError{Class: "NoValidHost", Module: novaException, Message: "No valid host was found. "}
	}
	_, err = b.ask(t, args(t, hint("shared"), nil))
	checkRefusal(t, err, "NoValidHost", novaException, "Reservation shared has room for 0 more instances, 1 are requested.")
}

func TestTheAnswerOfNovaSchedulerComesBackAsItIs(t *testing.T) {
	want := `[[{"nova_object.name":"Selection","nova_object.namespace":"nova","nova_object.version":"1.9","nova_object.data":{"service_host":"cmp-007","nodename":"cmp-007","new":1e400}}]]`
	for name, o := range map[string]topic.Options{"interpose": {}, "replace, of what it cannot judge": {Placer: placer{}}} {
		t.Run(name, func(t *testing.T) {
			o.Behind = &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(want), nil }}
			answer, err := serve(t, o).ask(t, args(t, nil, map[string]string{"hw:numa_nodes": "2"}))
			if err != nil || string(answer) != want {
				t.Errorf("the caller gets %s, %v", answer, err)
			}
		})
	}
}

func TestARequestThatNoReservationLeavesAHostToIsNotPassedOn(t *testing.T) {
	states, err := inventory.NewStates([]inventory.HostState{{Name: "cmp-001"}, {Name: "cmp-003"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stock := &behind{}
	_, err = serve(t, topic.Options{Behind: stock, States: func() *inventory.States { return states }}).ask(t, args(t, nil, nil))
	checkRefusal(t, err, "NoValidHost", novaException, "There are not enough hosts available.")
	if len(stock.specs) > 0 {
		t.Error("the request is passed on")
	}
}
