// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Selection is a host for an instance, or an alternate (nova/objects/selection.py Selection
// 1.1).
type Selection struct {
	ComputeNode string // UUID of the compute node and its root provider
	Host, Node  string
	Cell        string // UUID
	// AllocationRequest claims the host: the body of PUT /allocations/{instance} without
	// project, user and generation. nil is null, if nothing is claimed.
	AllocationRequest json.RawMessage
	// Version is the microversion of AllocationRequest, Zone the availability zone of the host.
	// Empty is null.
	Version, Zone string
}

// selectionFields are the fields of a Selection; Nova always lists all of them as changed.
var selectionFields = []string{
	"allocation_request", "allocation_request_version", "availability_zone", "cell_uuid",
	"compute_node_uuid", "limits", "nodename", "service_host",
}

// noLimits is the limits of a host for its nova-compute; only NUMA topologies have any
// (nova/objects/request_spec.py SchedulerLimits).
var noLimits = json.RawMessage(`{"nova_object.name":"SchedulerLimits","nova_object.namespace":"nova","nova_object.version":"1.0",` +
	`"nova_object.data":{"numa_topology":null,"vcpu":null,"disk_gb":null,"memory_mb":null},` +
	`"nova_object.changes":["disk_gb","memory_mb","numa_topology","vcpu"]}`)

// MarshalJSON writes the Selection as a versioned object.
func (s Selection) MarshalJSON() ([]byte, error) {
	request := s.AllocationRequest
	if request == nil {
		request = json.RawMessage("null")
	}
	o := Object{
		Name: "Selection", Namespace: "nova", Version: "1.1", Changes: selectionFields,
		Data: map[string]json.RawMessage{"limits": noLimits},
	}
	for _, field := range []struct {
		name  string
		value any
	}{
		{"compute_node_uuid", s.ComputeNode}, {"service_host", s.Host}, {"nodename", s.Node}, {"cell_uuid", s.Cell},
		{"allocation_request", string(request)}, {"allocation_request_version", orNull(s.Version)}, {"availability_zone", orNull(s.Zone)},
	} {
		if err := o.set(field.name, field.value); err != nil {
			return nil, err
		}
	}
	return oslo.Marshal(o)
}

// orNull returns nil for an empty text, which becomes null in JSON.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Answer returns the reply of select_destinations, for JSON encoding: for each instance the
// chosen host and then its alternates. Without objects (return_objects) it is the form for
// callers before version 4.5: a map for each instance (nova/scheduler/manager.py
// select_destinations, objects/selection.py to_dict).
func Answer(selections [][]Selection, objects bool) any {
	if objects {
		return selections
	}
	hosts := make([]map[string]any, len(selections))
	for i, chosen := range selections {
		hosts[i] = map[string]any{"host": chosen[0].Host, "nodename": chosen[0].Node, "limits": struct{}{}}
	}
	return hosts
}

// ReadAnswer reads a reply of select_destinations in either form.
func ReadAnswer(raw json.RawMessage) ([][]Selection, error) {
	var instances []json.RawMessage
	if err := json.Unmarshal(raw, &instances); err != nil {
		return nil, fault.Field("result", "must be a list")
	}
	answer := make([][]Selection, len(instances))
	for i, instance := range instances {
		var (
			host struct{ Host, Nodename string }
			all  []json.RawMessage
		)
		if json.Unmarshal(instance, &host) == nil && host.Host != "" {
			answer[i] = []Selection{{Host: host.Host, Node: host.Nodename}}
			continue
		}
		if err := json.Unmarshal(instance, &all); err != nil || len(all) == 0 {
			return nil, fault.Field("result", "must have a list of Selections for each instance")
		}
		for _, one := range all {
			selection, err := readSelection(one)
			if err != nil {
				return nil, fmt.Errorf("read the reply of select_destinations: %w", err)
			}
			answer[i] = append(answer[i], selection)
		}
	}
	return answer, nil
}

// readSelection reads a host that nova-scheduler has selected.
func readSelection(raw json.RawMessage) (Selection, error) {
	r, err := newReader("result", "Selection 1", raw)
	if err != nil {
		return Selection{}, err
	}
	s := Selection{
		ComputeNode: r.text("compute_node_uuid"), Host: r.text("service_host"), Node: r.text("nodename"), Cell: r.text("cell_uuid"),
		Version: r.text("allocation_request_version"), Zone: r.text("availability_zone"),
	}
	if request := json.RawMessage(r.text("allocation_request")); !isNull(request) {
		if !json.Valid(request) {
			r.wrong("allocation_request", "must be JSON")
		}
		s.AllocationRequest = request
	}
	return s, *r.err
}
