package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// HostSettings keeps what operators have set for hosts by hand.
type HostSettings interface {
	// Overrides gives all of them by host name.
	Overrides(ctx context.Context) (map[string]Override, error)
	// ChangeOverride replaces the override of a host by what change makes of all that
	// are stored; nobody else changes one meanwhile. Where change fails nothing is
	// stored. It may be called again.
	ChangeOverride(ctx context.Context, host string, change func(stored map[string]Override) (Override, error)) error
}

// PropertySettings keeps which properties only an admin may use.
type PropertySettings interface {
	// Hidden gives them; each is true.
	Hidden(ctx context.Context) (map[string]bool, error)
	SaveHidden(ctx context.Context, property string, hidden bool) error
}

// Keeper keeps the current snapshot: the hosts of a Source under the settings of
// operators. It is safe for concurrent use. Several processes may each have one on
// the same settings: what one sets, the others have from their next Refresh on.
type Keeper struct {
	source     Source
	hostwise   HostSettings
	properties PropertySettings
	follow     func(*Snapshot)

	current atomic.Pointer[Snapshot]

	mu        sync.Mutex // held while a snapshot is made and what led to it is stored
	hosts     []Host
	overrides map[string]Override
	hidden    map[string]bool
}

// OpenKeeper reads hosts and settings. It fails where the hosts cannot be read or
// contradict each other or the settings, or where there are none.
func OpenKeeper(ctx context.Context, source Source, hosts HostSettings, properties PropertySettings) (*Keeper, error) {
	k := &Keeper{source: source, hostwise: hosts, properties: properties, follow: func(*Snapshot) {}}
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Follow calls fn with every snapshot from the next on. It is called once, before
// the keeper is shared.
func (k *Keeper) Follow(fn func(*Snapshot)) { k.follow = fn }

// Snapshot gives the current snapshot.
func (k *Keeper) Snapshot() *Snapshot {
	return k.current.Load()
}

// Refresh reads the hosts anew, and the settings, which other processes may have
// changed. After an error, and where the source has no hosts at all, the last good
// snapshot stays.
func (k *Keeper) Refresh(ctx context.Context) error {
	hosts, err := k.source.Hosts(ctx)
	if err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	if len(hosts) == 0 {
		return fault.New(fault.Unavailable, "the inventory lists no hosts; the hosts known before stay")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	overrides, err := k.hostwise.Overrides(ctx)
	if err != nil {
		return fmt.Errorf("read host settings: %w", err)
	}
	hidden, err := k.properties.Hidden(ctx)
	if err != nil {
		return fmt.Errorf("read property settings: %w", err)
	}
	if k.current.Load() != nil && reflect.DeepEqual(hosts, k.hosts) &&
		maps.EqualFunc(overrides, k.overrides, Override.equal) && maps.Equal(hidden, k.hidden) {
		return nil
	}
	return k.publish(hosts, overrides, hidden, func() error { return nil })
}

// SetHost lays change over what is stored for the host now, by whichever process,
// and stores that. It fails with a NotFound fault for a host that is not there, and
// with an Invalid one where a property would change its type.
func (k *Keeper) SetHost(ctx context.Context, name string, change Override) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.Snapshot().Index(name); !ok {
		return fault.New(fault.NotFound, "there is no host %s", name)
	}
	for property := range change.Properties {
		if builtInNamed(property) != nil {
			return fault.Field("properties."+property, "is built in: it is what the host is, and cannot be set")
		}
	}
	if change.Reservable == nil && len(change.Properties) == 0 {
		return nil
	}
	var overrides map[string]Override
	var next *Snapshot
	err := k.hostwise.ChangeOverride(ctx, name, func(stored map[string]Override) (_ Override, err error) {
		overrides = make(map[string]Override, len(stored)+1)
		maps.Copy(overrides, stored)
		overrides[name] = stored[name].with(change)
		next, err = NewSnapshot(k.hosts, overrides, k.hidden)
		return overrides[name], err
	})
	if err != nil {
		return fmt.Errorf("store the setting: %w", err)
	}
	k.put(next, k.hosts, overrides, k.hidden)
	return nil
}

// with gives o with change laid over it.
func (o Override) with(change Override) Override {
	properties := make(map[string]*Value, len(o.Properties)+len(change.Properties))
	maps.Copy(properties, o.Properties)
	maps.Copy(properties, change.Properties)
	return Override{Properties: properties, Reservable: cmp.Or(change.Reservable, o.Reservable)}
}

// equal says whether both set the same.
func (o Override) equal(other Override) bool {
	return equalOrNil(o.Reservable, other.Reservable, func(a, b bool) bool { return a == b }) &&
		maps.EqualFunc(o.Properties, other.Properties, func(a, b *Value) bool { return equalOrNil(a, b, Value.Equal) })
}

func equalOrNil[T any](a, b *T, equal func(a, b T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(*a, *b)
}

// SetHidden hides a property from all but admins, or shows it again, and stores
// that. It fails with a NotFound fault for a property that no host has.
func (k *Keeper) SetHidden(ctx context.Context, name string, hidden bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.Snapshot().Properties(), func(p Property) bool { return p.Name == name }) {
		return fault.New(fault.NotFound, "there is no property %s", name)
	}
	all := make(map[string]bool, len(k.hidden)+1)
	maps.Copy(all, k.hidden)
	if all[name] = hidden; !hidden {
		delete(all, name)
	}
	return k.publish(k.hosts, k.overrides, all, func() error { return k.properties.SaveHidden(ctx, name, hidden) })
}

// publish makes the snapshot, stores what led to it, and only then lets it stand.
func (k *Keeper) publish(hosts []Host, overrides map[string]Override, hidden map[string]bool, store func() error) error {
	next, err := NewSnapshot(hosts, overrides, hidden)
	if err != nil {
		return err
	}
	if err := store(); err != nil {
		return fmt.Errorf("store the setting: %w", err)
	}
	k.put(next, hosts, overrides, hidden)
	return nil
}

func (k *Keeper) put(next *Snapshot, hosts []Host, overrides map[string]Override, hidden map[string]bool) {
	k.hosts, k.overrides, k.hidden = hosts, overrides, hidden
	k.current.Store(next)
	k.follow(next)
}
