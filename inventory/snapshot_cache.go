// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// HostSettings stores what operators set for hosts by hand.
type HostSettings interface {
	// Overrides returns all overrides by host name.
	Overrides(ctx context.Context) (map[string]Override, error)
	// ChangeOverride replaces the override of a host by the result of change, which receives all
	// stored overrides; no other change happens in between. If change fails, nothing is stored.
	// change may be called more than once.
	ChangeOverride(ctx context.Context, host string, change func(stored map[string]Override) (Override, error)) error
}

// PropertySettings stores which properties only admins may use.
type PropertySettings interface {
	// Hidden returns the hidden properties; each value is true.
	Hidden(ctx context.Context) (map[string]bool, error)
	SaveHidden(ctx context.Context, property string, hidden bool) error
}

// Dated is a Source that may return hosts that another process has read earlier.
type Dated interface {
	Source
	// Age returns how many seconds before the answer the hosts of the last call of Hosts had
	// been read.
	Age() int64
}

// InstanceRecords returns what was stored about instances when they were placed.
type InstanceRecords interface {
	// InstanceRecords returns the stored entries by the id of the instance: those of the named
	// instances, or of all if none are named.
	InstanceRecords(ctx context.Context, instances ...string) (map[string]InstanceRecord, error)
}

// SnapshotCacheOptions configure a SnapshotCache.
type SnapshotCacheOptions struct {
	Hosts      HostSettings
	Properties PropertySettings
	// Records is read after each reading of the hosts, since instances are stored before they are
	// on a host. nil means that there are no records.
	Records InstanceRecords
	// Numbers stores the numbers of hosts; nil means that hosts have none.
	Numbers HostNumbers
	// OnlyEnrolled is true if no host is in the pool unless it was added to it: what the source says
	// about the pool does not count.
	OnlyEnrolled bool
	// Powers is read after each reading of the hosts, since Almanac stores that it switches a host
	// off before it does. nil means that Almanac switches no hosts.
	Powers PowerSettings
	Rules  TrustRules
	// Published is called with each snapshot after the first; nil is not called.
	Published func(*Snapshot)
	Now       func() span.Instant
	Log       *slog.Logger // gets a message when trust ends and when it returns
}

// SnapshotCache holds the current snapshot: the hosts of a Source with the settings of operators. It is
// safe for concurrent use. Several processes may each have one on the same settings: what one
// sets, the others have from their next Refresh on. A property of the source whose type no longer
// matches the type that operators have set is left out, with a log message.
//
// An untrusted reading becomes the snapshot like any other, so that nobody is promised a host
// that may be gone. Untrusted then returns the reason, for callers that would take something away.
type SnapshotCache struct {
	source  Source
	options SnapshotCacheOptions

	current atomic.Pointer[Snapshot]
	trust   atomic.Pointer[trust]
	read    atomic.Int64 // when the hosts of current were read

	mu              sync.Mutex // held while a snapshot is made and its inputs are stored
	hosts           []Host
	overrides       map[string]Override
	hidden          map[string]bool
	numbers         map[string]int64
	loggedUntrusted bool // as last logged
}

// OpenSnapshotCache reads hosts and settings. It returns an error if the hosts cannot be read or
// contradict each other, or if there are none.
func OpenSnapshotCache(ctx context.Context, source Source, o SnapshotCacheOptions) (*SnapshotCache, error) {
	k := &SnapshotCache{source: source, options: o}
	k.trust.Store(&trust{rules: o.Rules})
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Snapshot returns the current snapshot.
func (k *SnapshotCache) Snapshot() *Snapshot {
	return k.current.Load()
}

// Untrusted returns the reason why the last reading is not trusted now, as a sentence; "" if it is
// trusted.
func (k *SnapshotCache) Untrusted(now span.Instant) string { return k.trust.Load().untrusted(now) }

// ReadAt returns when the hosts were read. A Snapshot requested after ReadAt is at least that
// new.
func (k *SnapshotCache) ReadAt() span.Instant { return span.Instant(k.read.Load()) }

// Refresh reads the hosts again, and the settings, which other processes may have changed.
// After an error, or if the source has no hosts at all, the last good snapshot stays.
func (k *SnapshotCache) Refresh(ctx context.Context) error {
	asked := k.options.Now()
	hosts, err := k.source.Hosts(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		if dated, ok := k.source.(Dated); ok {
			asked = asked.Add(-dated.Age())
		}
		err = k.update(ctx, hosts, asked)
	} else {
		err = fmt.Errorf("read hosts: %w", err)
	}
	k.logTrust(ctx)
	return err
}

// update makes hosts, read at that time, the current ones.
func (k *SnapshotCache) update(ctx context.Context, hosts []Host, read span.Instant) error {
	if len(hosts) == 0 {
		k.trust.Store(new(k.trust.Load().afterNothing()))
		return fault.New(fault.Unavailable, "the inventory returned no hosts; keeping the previous list")
	}
	hosts, err := k.recognize(ctx, hosts)
	if err != nil {
		return fmt.Errorf("read the stored instances: %w", err)
	}
	if hosts, err = k.numbered(ctx, hosts); err != nil {
		return fmt.Errorf("number the hosts: %w", err)
	}
	if k.options.Powers != nil {
		settings, err := k.options.Powers.PowerSettings(ctx, namesOf(hosts))
		if err != nil {
			return fmt.Errorf("read which hosts are switched off: %w", err)
		}
		hosts = withPowerSettings(hosts, settings)
	}
	overrides, err := k.options.Hosts.Overrides(ctx)
	if err != nil {
		return fmt.Errorf("read host settings: %w", err)
	}
	hidden, err := k.options.Properties.Hidden(ctx)
	if err != nil {
		return fmt.Errorf("read property settings: %w", err)
	}
	next, err := k.next(hosts, overrides, hidden)
	if err != nil {
		return err
	}
	// The trust comes first, so that nobody sees the new hosts without the warning about them.
	k.trust.Store(new(k.trust.Load().after(hosts, overrides, read, k.options.Now())))
	if next != nil {
		k.publish(next, hosts, overrides, hidden)
	}
	k.read.Store(int64(read)) // last, so that a new time never belongs to old hosts
	return nil
}

// next returns the snapshot of a reading and of settings; nil if it is the current one.
func (k *SnapshotCache) next(hosts []Host, overrides map[string]Override, hidden map[string]bool) (*Snapshot, error) {
	current := k.current.Load()
	if current != nil && maps.EqualFunc(overrides, k.overrides, Override.equal) && maps.Equal(hidden, k.hidden) {
		switch differ, onlyState := differing(k.hosts, hosts); {
		case onlyState && len(differ) == 0:
			return nil, nil
		case onlyState:
			return current.withState(hosts, differ, overrides), nil
		}
	}
	return newSnapshotThatAgrees(hosts, overrides, hidden)
}

// recognize returns the hosts; their instances include what was stored about them.
func (k *SnapshotCache) recognize(ctx context.Context, hosts []Host) ([]Host, error) {
	if k.options.Records == nil {
		return hosts, nil
	}
	records, err := k.options.Records.InstanceRecords(ctx)
	if err != nil || len(records) == 0 {
		return hosts, err
	}
	hosts = slices.Clone(hosts)
	for i := range hosts {
		h := &hosts[i]
		h.Instances = slices.Clone(h.Instances) // the source may keep using them
		for at := range h.Instances {
			h.Instances[at].AddRecord(records[h.Instances[at].ID])
		}
	}
	return hosts, nil
}

// logTrust logs when the inventory becomes untrusted, and when it is trusted again.
func (k *SnapshotCache) logTrust(ctx context.Context) {
	if k.current.Load() == nil {
		return
	}
	doubt := k.Untrusted(k.options.Now())
	switch was := k.loggedUntrusted; {
	case doubt != "" && !was:
		k.options.Log.WarnContext(ctx, "the inventory is untrusted: nothing is healed, cleaned up or switched off", "reason", doubt)
	case doubt == "" && was:
		k.options.Log.InfoContext(ctx, "the inventory is trusted again")
	}
	k.loggedUntrusted = doubt != ""
}

// SetHost adds change, which has no capabilities, to what is currently stored for the host, by any
// process, and stores the result. It returns a NotFound fault for an unknown host, an Invalid
// fault if a property would change its type, and the error of allow, which decides whether the change
// may be made, as Enrollment.Allow does; a nil allow allows everything.
func (k *SnapshotCache) SetHost(ctx context.Context, name string, change Override, allow func(before, after *Snapshot) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.Snapshot().Index(name); !ok {
		return fault.New(fault.NotFound, "there is no host %s", name)
	}
	for property := range change.Properties {
		if builtInNamed(property) != nil {
			return fault.Field("properties."+property, "is built in: Almanac computes it from the host, and it cannot be set")
		}
	}
	if power := change.Power; power != nil && *power != "" && !slices.Contains(Powers, *power) {
		return fault.Field("power", "there is no power state %q; the states are on, sleeping, waking and failed", *power)
	}
	if change.IsZero() && allow == nil {
		return nil
	}
	return k.store(ctx, name, func(stored map[string]Override) (Override, error) {
		h, err := k.hostWith(name, stored)
		if err != nil {
			return Override{}, err
		}
		change := change.differing(h)
		if change.IsZero() {
			return stored[name], nil
		}
		return stored[name].with(change), k.fits(name, change, stored)
	}, allow)
}

// hostWith returns a host as the stored overrides make it, which another process may have changed.
func (k *SnapshotCache) hostWith(name string, stored map[string]Override) (*Host, error) {
	s, err := newSnapshotThatAgrees(k.hosts, stored, k.hidden)
	if err != nil {
		return nil, err
	}
	i, known := s.Index(name)
	if !known {
		return nil, fault.New(fault.NotFound, "there is no host %s", name)
	}
	return s.Host(i), nil
}

// store replaces the override of a host by the result of change and publishes the snapshot with it.
// If allow, which receives the snapshots before and after, fails, nothing is stored; a nil allow
// allows everything. After a Precondition fault of allow the snapshot is the one before, so that a client
// that reads again sees what another process has stored. mu is held.
func (k *SnapshotCache) store(
	ctx context.Context, name string, change func(stored map[string]Override) (Override, error), allow func(before, after *Snapshot) error,
) error {
	var overrides, found map[string]Override
	var next, before *Snapshot
	err := k.options.Hosts.ChangeOverride(ctx, name, func(stored map[string]Override) (_ Override, err error) {
		changed, err := change(stored)
		if err != nil {
			return Override{}, err
		}
		overrides = make(map[string]Override, len(stored)+1)
		maps.Copy(overrides, stored)
		overrides[name] = changed
		if next, err = newSnapshotThatAgrees(k.hosts, overrides, k.hidden); err != nil || allow == nil {
			return changed, err
		}
		if before, err = newSnapshotThatAgrees(k.hosts, stored, k.hidden); err != nil {
			return Override{}, err
		}
		found = stored
		return changed, allow(before, next)
	})
	if fault.Is(err, fault.Precondition) {
		k.publish(before, k.hosts, found, k.hidden)
	}
	if err != nil {
		return fmt.Errorf("store the setting: %w", err)
	}
	k.publish(next, k.hosts, overrides, k.hidden)
	return nil
}

// fits returns an error if change sets a property of a host to a type that differs from that on
// other hosts.
func (k *SnapshotCache) fits(name string, change Override, stored map[string]Override) error {
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

// SetHidden hides a property from everyone except admins, or shows it again, and stores that. It
// returns a NotFound fault for a property that no host has.
func (k *SnapshotCache) SetHidden(ctx context.Context, name string, hidden bool) error {
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
	k.publish(next, k.hosts, k.overrides, all)
	return nil
}

// publish makes next the current snapshot, and calls Published unless it is the first.
func (k *SnapshotCache) publish(next *Snapshot, hosts []Host, overrides map[string]Override, hidden map[string]bool) {
	k.hosts, k.overrides, k.hidden = hosts, overrides, hidden
	before := k.current.Load()
	if len(next.left) > 0 && (before == nil || !slices.Equal(next.left, before.left)) {
		k.options.Log.Warn("leaving out properties whose type differs from the type an operator has set", "properties", some(next.left))
	}
	k.current.Store(next)
	if before != nil && k.options.Published != nil {
		k.options.Published(next)
	}
}
