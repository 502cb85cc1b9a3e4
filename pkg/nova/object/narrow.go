// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Narrowing is what Almanac adds to a request before passing it on.
type Narrowing struct {
	// Aggregates requires a host in one aggregate of each list, ForbiddenAggregates a host in
	// none of them; aggregates by UUID.
	Aggregates          [][]string
	ForbiddenAggregates []string
	IgnoreHosts         []string // by name
	// Host is the only acceptable host, by name; empty means any.
	Host       string
	ExtraSpecs map[string]string
}

// Narrow returns the RequestSpec with n added, without the hints that only Nova may use.
// Everything else is unchanged, including credentials: the result is for nova-scheduler and
// must not be logged. A flavor with another value for an extra spec is a Conflict fault, since
// either value would break a promise.
func (s RequestSpec) Narrow(n Narrowing) (json.RawMessage, error) {
	if s.object == nil {
		return nil, fault.New(fault.Invalid, "there is no RequestSpec to narrow")
	}
	o := *s.object()
	o.Data = maps.Clone(o.Data)
	for _, narrow := range []func(*Object, Narrowing) error{dropPrivateHints, narrowDestination, narrowHosts, narrowFlavor} {
		if err := narrow(&o, n); err != nil {
			return nil, err
		}
	}
	return o.MarshalJSON()
}

// privateHint is the prefix of the hints with which Nova's services tell each other the purpose
// of a request. They are not for tenants, and Nova's API does not keep all of them out in every release.
const privateHint = "_nova"

// dropPrivateHints removes private hints from a request that forces no host. Nova itself sends
// one only for a rebuild, and then forces the instance's host (nova/compute/api.py rebuild);
// without that host, nova-scheduler would neither query Placement nor claim anything.
func dropPrivateHints(spec *Object, _ Narrowing) error {
	if forced, err := textsOf(spec, "force_hosts"); err != nil || len(forced) > 0 {
		return err
	}
	const field = "scheduler_hints"
	given, isMap := members(spec.Data[field])
	if !isMap {
		return nil
	}
	kept := maps.Clone(given)
	maps.DeleteFunc(kept, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, privateHint) })
	if len(kept) == len(given) {
		return nil
	}
	return spec.set(field, kept)
}

// narrowDestination narrows requested_destination. A new one contains only what is needed, like
// those of nova-scheduler's own request filters.
func narrowDestination(spec *Object, n Narrowing) error {
	if len(n.Aggregates) == 0 && len(n.ForbiddenAggregates) == 0 && n.Host == "" {
		return nil
	}
	const field = "requested_destination"
	destination := Object{Name: "Destination", Namespace: "nova", Version: "1.4"}
	fresh := isNull(spec.Data[field])
	if !fresh {
		var err error
		if destination, err = splitObject(spec.Data[field]); err != nil {
			return fault.Field(field, "must be a versioned object of Nova")
		}
	}
	all := make([]string, len(n.Aggregates))
	for i, either := range n.Aggregates {
		all[i] = strings.Join(either, ",")
	}
	for _, list := range []struct {
		field string
		texts []string
	}{{"aggregates", all}, {"forbidden_aggregates", n.ForbiddenAggregates}} {
		added, err := appendTexts(&destination, list.field, list.texts)
		if err != nil {
			return err
		}
		if added && fresh {
			destination.Changes = append(destination.Changes, list.field)
		}
	}
	if n.Host != "" {
		// Without a node nova-scheduler accepts any of the host, and may not check whether
		// there is one (nova/scheduler/host_manager.py _get_hosts_matching_request).
		for name, value := range map[string]any{"host": n.Host, "node": nil} {
			if err := destination.set(name, value); err != nil {
				return err
			}
		}
		if fresh {
			destination.Changes = append(destination.Changes, "host", "node")
		}
	}
	return spec.set(field, destination)
}

func narrowHosts(spec *Object, n Narrowing) error {
	_, err := appendTexts(spec, "ignore_hosts", n.IgnoreHosts)
	return err
}

// narrowFlavor adds extra specs to the flavor of the request. It fails with a Conflict if the flavor has
// another value.
func narrowFlavor(spec *Object, n Narrowing) error {
	if len(n.ExtraSpecs) == 0 {
		return nil
	}
	return changeExtraSpecs(spec, func(extraSpecs map[string]string) error {
		for key, value := range n.ExtraSpecs {
			if has, ok := extraSpecs[key]; ok && has != value {
				return fault.New(fault.Conflict, "the flavor has the extra spec %.100s=%.100s, which this request may not have", key, has)
			}
			extraSpecs[key] = value
		}
		return nil
	})
}

// changeExtraSpecs applies change to the extra specs of the RequestSpec's flavor.
func changeExtraSpecs(spec *Object, change func(extraSpecs map[string]string) error) error {
	f, err := splitObject(spec.Data["flavor"])
	if err != nil {
		return fault.Field("flavor", "must be a versioned object of Nova")
	}
	extraSpecs := make(map[string]string)
	if raw := f.Data["extra_specs"]; !isNull(raw) && json.Unmarshal(raw, &extraSpecs) != nil {
		return fault.Field("flavor.extra_specs", "must be a map of strings")
	}
	if err := change(extraSpecs); err != nil {
		return err
	}
	if err := f.set("extra_specs", extraSpecs); err != nil {
		return err
	}
	return spec.set("flavor", f)
}

// WithoutExtraSpecs returns the RequestSpec without the extra specs of its flavor for whose
// keys drop returns true.
func (s RequestSpec) WithoutExtraSpecs(drop func(key string) bool) (RequestSpec, error) {
	if s.object == nil {
		return RequestSpec{}, fault.New(fault.Invalid, "there is no RequestSpec to change")
	}
	o := *s.object()
	o.Data = maps.Clone(o.Data)
	err := changeExtraSpecs(&o, func(extraSpecs map[string]string) error {
		maps.DeleteFunc(extraSpecs, func(key, _ string) bool { return drop(key) })
		return nil
	})
	if err != nil {
		return RequestSpec{}, err
	}
	return RequestSpec{func() *Object { return &o }}, nil
}

// appendTexts adds those texts that are missing in a list of o, and reports whether there were
// any. A list that is unset or null is empty.
func appendTexts(o *Object, field string, texts []string) (added bool, err error) {
	if len(texts) == 0 {
		return false, nil
	}
	has, err := textsOf(o, field)
	if err != nil {
		return false, err
	}
	for _, text := range texts {
		if !slices.Contains(has, text) {
			has, added = append(has, text), true
		}
	}
	if !added {
		return false, nil
	}
	return true, o.set(field, has)
}

// textsOf returns a list of strings of o; empty if it is unset or null.
func textsOf(o *Object, field string) (list []string, err error) {
	if !isNull(o.Data[field]) && json.Unmarshal(o.Data[field], &list) != nil {
		return nil, fault.Field(field, "must be a list of strings")
	}
	return list, nil
}

// set sets a field of the object.
func (o *Object) set(field string, value any) error {
	raw, err := oslo.Marshal(value)
	if err != nil {
		return err
	}
	if o.Data == nil {
		o.Data = make(map[string]json.RawMessage)
	}
	o.Data[field] = raw
	return nil
}
