package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// These read the arguments of the five casts that tell all schedulers of changes
// (nova/scheduler/rpcapi.py). Of what an instance is they keep its id alone.

// ReadUpdateAggregates reads the aggregates of update_aggregates: a list of them, an
// AggregateList or one Aggregate.
func ReadUpdateAggregates(args json.RawMessage) ([]inventory.Aggregate, error) {
	raws, err := several(args, "aggregates", "AggregateList 1")
	if err != nil {
		return nil, err
	}
	aggregates := make([]inventory.Aggregate, len(raws))
	for i, raw := range raws {
		if aggregates[i], err = readAggregate("aggregates", raw); err != nil {
			return nil, err
		}
	}
	return aggregates, nil
}

// ReadDeleteAggregate reads the aggregate of delete_aggregate.
func ReadDeleteAggregate(args json.RawMessage) (inventory.Aggregate, error) {
	raw, err := argument(args, "aggregate")
	if err != nil {
		return inventory.Aggregate{}, err
	}
	return readAggregate("aggregate", raw)
}

// ReadUpdateInstanceInfo reads a host and those of its instances that are new on it or have
// changed: an InstanceList or one Instance.
func ReadUpdateInstanceInfo(args json.RawMessage) (host string, ids []string, err error) {
	if host, err = textArgument(args, "host_name"); err != nil {
		return "", nil, err
	}
	raws, err := several(args, "instance_info", "InstanceList 2")
	if err != nil {
		return "", nil, err
	}
	for _, raw := range raws {
		r, err := newReader("instance_info", "Instance 2", raw)
		if err != nil {
			return "", nil, err
		}
		ids = append(ids, r.text("uuid"))
		if *r.err != nil {
			return "", nil, *r.err
		}
	}
	return host, ids, nil
}

// ReadDeleteInstanceInfo reads a host and the instance that has left it.
func ReadDeleteInstanceInfo(args json.RawMessage) (host, id string, err error) {
	if host, err = textArgument(args, "host_name"); err != nil {
		return "", "", err
	}
	id, err = textArgument(args, "instance_uuid")
	return host, id, err
}

// ReadSyncInstanceInfo reads a host and all instances on it.
func ReadSyncInstanceInfo(args json.RawMessage) (host string, ids []string, err error) {
	if host, err = textArgument(args, "host_name"); err != nil {
		return "", nil, err
	}
	raw, err := argument(args, "instance_uuids")
	if err != nil {
		return "", nil, err
	}
	if json.Unmarshal(raw, &ids) != nil {
		return "", nil, fault.Field("instance_uuids", "must be a list of strings")
	}
	return host, ids, nil
}

func argument(args json.RawMessage, name string) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return nil, fault.New(fault.Invalid, "the arguments of a call must be a JSON object")
	}
	if isNull(all[name]) {
		return nil, fault.Field(name, "is missing")
	}
	return all[name], nil
}

func textArgument(args json.RawMessage, name string) (text string, err error) {
	raw, err := argument(args, name)
	if err != nil {
		return "", err
	}
	if json.Unmarshal(raw, &text) != nil {
		return "", fault.Field(name, "must be a string")
	}
	return text, nil
}

// several gives the objects of an argument: of a list, of a versioned list of kind, or the
// one that it is.
func several(args json.RawMessage, name, kind string) ([]json.RawMessage, error) {
	raw, err := argument(args, name)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(raw, []byte("[")) {
		var list []json.RawMessage
		err := json.Unmarshal(raw, &list)
		return list, err
	}
	var one Object
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !isNull(one.Data["objects"]) {
		r, err := newReader(name, kind, raw)
		if err != nil {
			return nil, err
		}
		list := r.list("objects")
		return list, *r.err
	}
	return []json.RawMessage{raw}, nil
}

func readAggregate(path string, raw json.RawMessage) (inventory.Aggregate, error) {
	r, err := newReader(path, "Aggregate 1", raw)
	if err != nil {
		return inventory.Aggregate{}, err
	}
	a := inventory.Aggregate{
		ID: int(r.amount("id")), UUID: r.text("uuid"), Name: r.text("name"),
		Metadata: r.textMap("metadata"), Hosts: r.texts("hosts"),
	}
	a.Zone = a.Metadata["availability_zone"]
	slices.Sort(a.Hosts)
	return a, *r.err
}
