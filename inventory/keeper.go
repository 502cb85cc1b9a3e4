package inventory

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
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

// Dated is a Source that may give hosts which somebody else has read before.
type Dated interface {
	Source
	// Age is how many seconds before the answer the hosts that Hosts gave last had been
	// read.
	Age() int64
}

// Guests remembers of instances what was known when they were placed.
type Guests interface {
	// Guests gives what is remembered, by the instance's id; with instances, of no others.
	Guests(ctx context.Context, instances ...string) (map[string]Guest, error)
}

// KeeperOptions are what a Keeper is made of.
type KeeperOptions struct {
	Hosts      HostSettings
	Properties PropertySettings
	// Guests is asked after each reading: who is on a host by then was placed before. Nil
	// remembers none.
	Guests Guests
	// Powers is asked after each reading too: a host that is seen switched off was stored as
	// such before. Nil tells of none.
	Powers PowerSettings
	Rules  DoubtRules
	Now    func() span.Instant
	Log    *slog.Logger // is told when doubt begins and when it ends
}

// Keeper keeps the current snapshot: the hosts of a Source under the settings of
// operators. It is safe for concurrent use. Several processes may each have one on
// the same settings: what one sets, the others have from their next Refresh on.
// A property of the source that has come to have another type than operators have set
// it with is left out, and the log says so.
//
// A reading that is not believed becomes the snapshot like any other, so that
// nobody is promised a host that may be gone. But Doubt then says so to those who
// would take something away.
type Keeper struct {
	source  Source
	options KeeperOptions
	follow  func(*Snapshot)

	current atomic.Pointer[Snapshot]
	trust   atomic.Pointer[trust]
	read    atomic.Int64 // when the hosts of current were read

	mu        sync.Mutex // held while a snapshot is made and what led to it is stored
	hosts     []Host
	overrides map[string]Override
	hidden    map[string]bool
	doubting  bool // as the log was told
}

// OpenKeeper reads hosts and settings. It fails where the hosts cannot be read or
// contradict each other, or where there are none.
func OpenKeeper(ctx context.Context, source Source, o KeeperOptions) (*Keeper, error) {
	k := &Keeper{source: source, options: o, follow: func(*Snapshot) {}}
	k.trust.Store(&trust{rules: o.Rules})
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

// Doubt says why what the hosts seem to be is not believed now, in a sentence; empty
// where it is.
func (k *Keeper) Doubt(now span.Instant) string { return k.trust.Load().doubt(now) }

// ReadAt is when the hosts were read. A Snapshot that is asked for after it is no
// older.
func (k *Keeper) ReadAt() span.Instant { return span.Instant(k.read.Load()) }

// Refresh reads the hosts anew, and the settings, which other processes may have
// changed. After an error, and where the source has no hosts at all, the last good
// snapshot stays.
func (k *Keeper) Refresh(ctx context.Context) error {
	asked := k.options.Now()
	hosts, err := k.source.Hosts(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		if dated, ok := k.source.(Dated); ok {
			asked = asked.Add(-dated.Age())
		}
		err = k.take(ctx, hosts, asked)
	} else {
		err = fmt.Errorf("read hosts: %w", err)
	}
	k.tell(ctx)
	return err
}

// take makes hosts, read at that time, the current ones.
func (k *Keeper) take(ctx context.Context, hosts []Host, read span.Instant) error {
	if len(hosts) == 0 {
		k.trust.Store(new(k.trust.Load().afterNothing()))
		return fault.New(fault.Unavailable, "the inventory lists no hosts; the hosts known before stay")
	}
	hosts, err := k.recognize(ctx, hosts)
	if err != nil {
		return fmt.Errorf("read what is known of instances: %w", err)
	}
	if k.options.Powers != nil {
		settings, err := k.options.Powers.PowerSettings(ctx, namesOf(hosts))
		if err != nil {
			return fmt.Errorf("read which hosts are switched off: %w", err)
		}
		hosts = empower(hosts, settings)
	}
	overrides, err := k.options.Hosts.Overrides(ctx)
	if err != nil {
		return fmt.Errorf("read host settings: %w", err)
	}
	hidden, err := k.options.Properties.Hidden(ctx)
	if err != nil {
		return fmt.Errorf("read property settings: %w", err)
	}
	changed := k.current.Load() == nil || !reflect.DeepEqual(hosts, k.hosts) ||
		!maps.EqualFunc(overrides, k.overrides, Override.equal) || !maps.Equal(hidden, k.hidden)
	var next *Snapshot
	if changed {
		if next, err = newSnapshotThatAgrees(hosts, overrides, hidden); err != nil {
			return err
		}
	}
	// First, so that nobody sees the new hosts without the doubt about them.
	k.trust.Store(new(k.trust.Load().after(hosts, overrides, read, k.options.Now())))
	if changed {
		k.put(next, hosts, overrides, hidden)
	}
	k.read.Store(int64(read)) // last, so that nobody takes the hosts of before for new ones
	return nil
}

// recognize gives the hosts with instances that are known as what is remembered of them.
func (k *Keeper) recognize(ctx context.Context, hosts []Host) ([]Host, error) {
	if k.options.Guests == nil {
		return hosts, nil
	}
	guests, err := k.options.Guests.Guests(ctx)
	if err != nil || len(guests) == 0 {
		return hosts, err
	}
	hosts = slices.Clone(hosts)
	for i := range hosts {
		h := &hosts[i]
		h.Instances = slices.Clone(h.Instances) // the source may go on to use them
		for at := range h.Instances {
			h.Instances[at].Recognize(guests[h.Instances[at].ID])
		}
	}
	return hosts, nil
}

// tell writes into the log that doubt has begun, or that it has ended.
func (k *Keeper) tell(ctx context.Context) {
	if k.current.Load() == nil {
		return
	}
	doubt := k.Doubt(k.options.Now())
	switch was := k.doubting; {
	case doubt != "" && !was:
		k.options.Log.WarnContext(ctx, "the inventory is in doubt: nothing is healed, cleaned up or switched off", "doubt", doubt)
	case doubt == "" && was:
		k.options.Log.InfoContext(ctx, "the inventory is believed again")
	}
	k.doubting = doubt != ""
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
	if power := change.Power; power != nil && *power != "" && !slices.Contains(Powers, *power) {
		return fault.Field("power", "there is no power state %q; the states are on, sleeping, waking and failed", *power)
	}
	if change.IsZero() {
		return nil
	}
	var overrides map[string]Override
	var next *Snapshot
	err := k.options.Hosts.ChangeOverride(ctx, name, func(stored map[string]Override) (_ Override, err error) {
		if err := k.fits(name, change, stored); err != nil {
			return Override{}, err
		}
		overrides = make(map[string]Override, len(stored)+1)
		maps.Copy(overrides, stored)
		overrides[name] = stored[name].with(change)
		next, err = newSnapshotThatAgrees(k.hosts, overrides, k.hidden)
		return overrides[name], err
	})
	if err != nil {
		return fmt.Errorf("store the setting: %w", err)
	}
	k.put(next, k.hosts, overrides, k.hidden)
	return nil
}

// fits fails where change gives a property of a host another type than it has on others.
func (k *Keeper) fits(name string, change Override, stored map[string]Override) error {
	bare := make(map[string]*Value, len(change.Properties))
	for property := range change.Properties {
		bare[property] = nil
	}
	overrides := make(map[string]Override, len(stored)+1)
	maps.Copy(overrides, stored)
	overrides[name] = stored[name].with(Override{Properties: bare})
	others, err := newSnapshotThatAgrees(k.hosts, overrides, k.hidden)
	if err != nil {
		return err
	}
	for _, h := range others.Hosts() {
		for property, value := range change.Properties {
			if has, there := h.Properties[property]; there && value != nil && has.kind != value.kind {
				return fault.Field("properties."+property, "a property has one type on all hosts, but it is a %s on %s", has.kind, h.Name)
			}
		}
	}
	return nil
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
	next, err := newSnapshotThatAgrees(k.hosts, k.overrides, all)
	if err != nil {
		return err
	}
	if err := k.options.Properties.SaveHidden(ctx, name, hidden); err != nil {
		return fmt.Errorf("store the setting: %w", err)
	}
	k.put(next, k.hosts, k.overrides, all)
	return nil
}

func (k *Keeper) put(next *Snapshot, hosts []Host, overrides map[string]Override, hidden map[string]bool) {
	k.hosts, k.overrides, k.hidden = hosts, overrides, hidden
	if before := k.current.Load(); len(next.left) > 0 && (before == nil || !slices.Equal(next.left, before.left)) {
		k.options.Log.Warn("properties of other types than they were set with are left out", "properties", some(next.left))
	}
	k.current.Store(next)
	k.follow(next)
}
