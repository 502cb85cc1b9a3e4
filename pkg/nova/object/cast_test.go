package object_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

const uuid = "754d7203-feaf-465d-8eaa-1b5f4801ba50"

// said is what a cast about instances says.
type said struct {
	Host string
	IDs  []string
}

// casts reads each cast into one value.
var casts = map[string]func(json.RawMessage) (any, error){
	"update_aggregates": func(args json.RawMessage) (any, error) { return object.ReadUpdateAggregates(args) },
	"delete_aggregate":  func(args json.RawMessage) (any, error) { return object.ReadDeleteAggregate(args) },
	"update_instance_info": func(args json.RawMessage) (any, error) {
		host, ids, err := object.ReadUpdateInstanceInfo(args)
		return said{host, ids}, err
	},
	"delete_instance_info": func(args json.RawMessage) (any, error) {
		host, id, err := object.ReadDeleteInstanceInfo(args)
		return said{host, []string{id}}, err
	},
	"sync_instance_info": func(args json.RawMessage) (any, error) {
		host, ids, err := object.ReadSyncInstanceInfo(args)
		return said{host, ids}, err
	},
}

func TestEveryCapturedCastIsRead(t *testing.T) {
	aggregate := inventory.Aggregate{ID: 1, UUID: "81365a9f-1df8-417b-89a8-61a7ba961e46", Name: "agg1", Hosts: []string{}, Metadata: map[string]string{}}
	last := aggregate
	last.Metadata = map[string]string{"blazar": "yes", "probe": "1"}
	for method, want := range map[string]any{
		"update_aggregates":    []inventory.Aggregate{aggregate},
		"delete_aggregate":     last,
		"update_instance_info": said{"cmp-008", []string{uuid}},
		"delete_instance_info": said{"cmp-008", []string{uuid}},
		"sync_instance_info":   said{"cmp-006", []string{}},
	} {
		got, err := casts[method](capture(t, "scheduler_fanout-"+method).Args)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
}

func TestCastsMayNameOneOrAList(t *testing.T) {
	a := novaObject("Aggregate", "1.3", map[string]any{
		"id": 2, "uuid": "u", "hosts": []string{"b", "a"}, "metadata": map[string]string{"availability_zone": "z"},
	})
	one := novaObject("Instance", "2.7", map[string]any{"uuid": uuid})
	wantAggregate := inventory.Aggregate{ID: 2, UUID: "u", Zone: "z", Hosts: []string{"a", "b"}, Metadata: map[string]string{"availability_zone": "z"}}
	for method, args := range map[string][]any{
		"update_aggregates": {
			map[string]any{"aggregates": a},
			map[string]any{"aggregates": novaObject("AggregateList", "1.3", map[string]any{"objects": []any{a}})},
		},
		"update_instance_info": {map[string]any{"host_name": "h", "instance_info": one}},
	} {
		want := map[string]any{"update_aggregates": []inventory.Aggregate{wantAggregate}, "update_instance_info": said{"h", []string{uuid}}}[method]
		for _, args := range args {
			got, err := casts[method](encode(t, args))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", method, err, diff)
			}
		}
	}
}

func TestACastWithWrongArgumentsIsRefused(t *testing.T) {
	for method, readCast := range casts {
		for _, args := range []any{
			nil, 7, map[string]any{}, map[string]any{"host_name": 7}, map[string]any{"host_name": "h"},
			map[string]any{"host_name": "h", "instance_uuids": "u", "instance_uuid": 7, "instance_info": 7, "aggregates": 7, "aggregate": 7},
			map[string]any{
				"host_name": "h", "instance_info": novaObject("InstanceList", "3.0", map[string]any{"objects": []any{}}),
				"instance_uuids": map[string]any{}, "aggregate": novaObject("Aggregate", "2.0", nil), "aggregates": []any{nil},
			},
			map[string]any{
				"host_name": "h", "instance_info": novaObject("Instance", "2.7", map[string]any{"uuid": []any{}}),
				"aggregate": novaObject("Aggregate", "1.3", map[string]any{"hosts": "h"}), "aggregates": novaObject("AggregateList", "1.3", map[string]any{"objects": 7}),
			},
		} {
			if got, err := readCast(encode(t, args)); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s %v: got %v, %v", method, args, got, err)
			}
		}
	}
}
