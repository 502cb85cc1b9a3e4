// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// HostNumbers stores the numbers of hosts.
type HostNumbers interface {
	// HostNumbers returns the number of each host by its name. A host that has none gets the next
	// one, from 1; a number is never used again.
	HostNumbers(ctx context.Context, hosts []string) (map[string]int64, error)
}

// numbered returns the hosts as they enter the cache: with their numbers, and outside the pool if
// only enrolled hosts are in it.
func (k *SnapshotCache) numbered(ctx context.Context, hosts []Host) ([]Host, error) {
	if k.options.Numbers == nil && !k.options.OnlyEnrolled {
		return hosts, nil
	}
	if k.options.Numbers != nil && slices.ContainsFunc(hosts, func(h Host) bool { return k.numbers[h.Name] == 0 }) {
		numbers, err := k.options.Numbers.HostNumbers(ctx, namesOf(hosts))
		if err != nil {
			return nil, err
		}
		k.numbers = numbers
	}
	hosts = slices.Clone(hosts) // the source may keep using them
	for i := range hosts {
		hosts[i].Number = k.numbers[hosts[i].Name]
		hosts[i].Reservable = hosts[i].Reservable && !k.options.OnlyEnrolled
	}
	return hosts, nil
}

// Enrollment changes what Blazar's API sets for a host.
type Enrollment struct {
	// Texts are new values of capabilities, by name; nil removes what either API has set, so that the
	// value of the inventory counts again.
	Texts map[string]*string
	// Reservable adds the host to the pool or removes it; nil changes nothing. A host that is removed
	// loses its capabilities.
	Reservable *bool
	// Allow decides whether the change may be made, from the snapshots before and after it, which it
	// must not keep. If it fails, nothing is stored. It may be called more than once.
	Allow func(before, after *Snapshot) error
}

// Enroll makes the change for the host, on what is currently stored, by any process. It returns a
// NotFound fault for an unknown host, an Invalid fault for a capability with the name of a built-in
// property or of a list, a Conflict fault for the removal of what the inventory alone has, and the
// error of Allow.
func (k *SnapshotCache) Enroll(ctx context.Context, name string, e Enrollment) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.hosts, func(h Host) bool { return h.Name == name })
	if at < 0 {
		return fault.New(fault.NotFound, "there is no host %s", name)
	}
	for _, property := range slices.Sorted(maps.Keys(e.Texts)) {
		if builtInNamed(property) != nil {
			return fault.New(fault.Invalid, "%s cannot be a capability: it is a property that Almanac computes from the host; choose another name", property)
		}
	}
	return k.store(ctx, name, func(stored map[string]Override) (Override, error) {
		h, err := k.hostWith(name, stored)
		if err != nil {
			return Override{}, err
		}
		e := e.differing(h)
		for _, property := range slices.Sorted(maps.Keys(e.Texts)) {
			if k.Snapshot().kinds[property] == KindList && e.Texts[property] != nil {
				return Override{}, fault.New(fault.Invalid, "%s cannot be a capability: it is a property whose values are lists; choose another name", property)
			}
		}
		if len(e.Texts) == 0 && e.Reservable == nil {
			return stored[name], nil
		}
		return stored[name].enrolled(e, k.hosts[at].Properties, k.options.Now())
	}, e.Allow)
}

// differing returns a change of capabilities without the texts that the host h has already. A change
// that adds the host to the pool stays whole.
func (e Enrollment) differing(h *Host) Enrollment {
	if e.Reservable != nil {
		return e
	}
	e.Texts = maps.Clone(e.Texts)
	maps.DeleteFunc(e.Texts, func(name string, text *string) bool {
		_, has := h.Properties[name]
		return has && text != nil && *text == h.Text(name)
	})
	return e
}

// enrolled returns o with the change, made at now, on a host whose source has the properties source.
func (o Override) enrolled(e Enrollment, source map[string]Value, now span.Instant) (Override, error) {
	o.Reservable = cmp.Or(e.Reservable, o.Reservable)
	if e.Reservable != nil && !*e.Reservable {
		o.Capabilities = nil
		return o, nil
	}
	next := Capabilities{Texts: make(map[string]string), Created: now}
	if before := o.Capabilities; before != nil {
		next.Created, next.Updated = before.Created, now
		maps.Copy(next.Texts, before.Texts)
	}
	properties := make(map[string]*Value, len(o.Properties)+len(e.Texts))
	maps.Copy(properties, o.Properties)
	for _, name := range slices.Sorted(maps.Keys(e.Texts)) {
		text := e.Texts[name]
		if text != nil {
			delete(properties, name)
			next.Texts[name] = *text
			continue
		}
		_, given := next.Texts[name]
		value, set := properties[name]
		if _, there := source[name]; there && !given && !set {
			return o, fault.New(fault.Conflict, "%s comes from the inventory, not from this API; "+
				"remove it there, in the hosts file or the metadata of the aggregate, or hide it with almanac host set HOST --unset %[1]s", name)
		}
		delete(next.Texts, name)
		if value != nil {
			delete(properties, name) // a nil value hides that of the inventory, as an operator wants it
		}
	}
	o.Properties, o.Capabilities = properties, &next
	return o, nil
}
