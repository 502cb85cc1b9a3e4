// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// TakeOver takes over a running OpenStack Blazar.
type TakeOver struct {
	// From is the connection to Blazar's database, in a form of store.Options.Connection.
	From string
	// Schema is a migration of Blazar that is read like those of store.BlazarSchemas; empty is none.
	Schema string
	// Leave and History are those of takeover.Options.
	Leave   []takeover.Kind
	History bool
	// DryRun only reports what would be taken over.
	DryRun bool
}

// TakenOver reports what was, or would be, taken over.
type TakenOver struct {
	Hosts  []takeover.Enrolled       `json:"-"` // of the pool
	Leases []reservation.LeaseRecord `json:"-"`
	// Servers are the reservations to which servers in the cloud belong from now on, by the server's
	// id.
	Servers  map[string]string  `json:"servers"`
	Findings []takeover.Finding `json:"findings"`
	// Cloud tells what happens to Blazar's objects in the cloud, in sentences.
	Cloud []string `json:"cloud"`
	// Refused is how many of the findings stop the takeover. Done is true if it is stored.
	Refused int  `json:"refused"`
	Done    bool `json:"done"`
}

// patience is how long the one transaction of a takeover may last.
const patience = 10 * time.Minute

// Run takes over what Blazar's database contains and reports it. It fails with a Conflict fault if
// almanacd runs on the database, and with reservation.ErrStale if the database has changed meanwhile.
// If findings stop the takeover, it changes nothing.
func (t TakeOver) Run(ctx context.Context, c config.Config) (report TakenOver, err error) {
	const self = "almanacd import"
	c.Database.TransactionTimeout = patience
	p := process{config: c, log: slog.New(slog.DiscardHandler), replica: self}
	db, own, err := openDatabase(ctx, p)
	defer own.close()
	if err != nil {
		return report, err
	}
	if other, err := otherReplica(ctx, db, self); err != nil {
		return report, err
	} else if other != "" {
		return report, fault.New(fault.Conflict, "almanacd runs (%s); stop it on all machines, so that nothing is booked meanwhile", other)
	}
	w := takingOver{TakeOver: t, db: db, now: span.At(time.Now())}
	cloud, opened, err := openCloud(p)
	defer opened.close()
	if err != nil {
		return report, err
	}
	if cloud != nil {
		w.seen, err = lookAtCloud(ctx, cloud, db)
	} else {
		w.seen.hosts, err = inventory.FileSource(c.Inventory.HostsFile).Hosts(ctx)
	}
	if err != nil {
		return report, fmt.Errorf("read the hosts: %w", err)
	}
	if w.blazar, err = t.read(ctx); err != nil {
		return report, err
	}
	change, err := w.plan(ctx, &report)
	if err != nil || t.DryRun || report.Refused > 0 {
		return report, err
	}
	if err := db.TakeOver(ctx, change, w.now); err != nil {
		return report, err
	}
	report.Done = true
	if cloud != nil {
		err = w.mark(ctx, cloud.compute)
	}
	return report, err
}

// otherReplica returns a process other than self that uses the database; empty if there is none.
func otherReplica(ctx context.Context, db *store.Store, self string) (string, error) {
	replicas, err := db.Present(ctx, time.Second)
	if err != nil {
		return "", err
	}
	if running := slices.DeleteFunc(replicas, func(replica string) bool { return replica == self }); len(running) > 0 {
		return running[0], nil
	}
	return "", nil
}

// read reads Blazar's database.
func (t TakeOver) read(ctx context.Context) (takeover.Database, error) {
	from, err := store.OpenBlazar(ctx, store.Options{
		Connection: t.From, PoolSize: 1, Patience: patience, NewToken: uuid.NewString, Random: rand.Float64,
	})
	if err != nil {
		return takeover.Database{}, fmt.Errorf("--from: %w", err)
	}
	defer from.Close()
	return from.Read(ctx, t.Schema)
}

// sighting is what the cloud has.
type sighting struct {
	hosts      []inventory.Host
	servers    []inventory.Instance
	aggregates []inventory.Aggregate
	flavors    []inventory.Flavor
	classes    []string // Blazar's
}

// lookAtCloud reads the cloud for a takeover: hosts, servers, aggregates, flavors and Blazar's resource
// classes.
func lookAtCloud(ctx context.Context, c *cloud, db *store.Store) (s sighting, err error) {
	source := openstack.NewSource(c.compute, c.placement, openstack.Options{Records: db, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if s.hosts, err = source.Hosts(ctx); err != nil {
		return s, err
	}
	servers, err := c.compute.Servers(ctx, nova.ServerQuery{})
	if err != nil {
		return s, err
	}
	records, err := db.InstanceRecords(ctx)
	if err != nil {
		return s, err
	}
	for _, server := range servers {
		server.AddRecord(records[server.ID])
		s.servers = append(s.servers, server.Instance)
	}
	if s.aggregates, err = c.compute.Aggregates(ctx); err != nil {
		return s, err
	}
	if s.flavors, err = c.compute.Flavors(ctx); err != nil {
		return s, err
	}
	s.classes, err = c.placement.ClassNames(ctx, fence.BlazarClass)
	return s, err
}

// takingOver is a TakeOver in progress.
type takingOver struct {
	TakeOver
	db     *store.Store
	now    span.Instant
	seen   sighting
	blazar takeover.Database
	kept   map[string]bool // the ids of Blazar's reservations that Almanac has, or will have
}

// overlaid are the settings of the hosts with those that come from Blazar's pool.
type overlaid struct {
	*store.Store
	pool *takeover.Pool
	now  span.Instant
}

// Overrides implements inventory.HostSettings.
func (o overlaid) Overrides(ctx context.Context) (map[string]inventory.Override, error) {
	all, err := o.Store.Overrides(ctx)
	for host, changed := range o.pool.Overrides(all, o.now) {
		all[host] = changed
	}
	return all, err
}

// fixed are hosts that were read already.
type fixed []inventory.Host

// Hosts implements inventory.Source.
func (f fixed) Hosts(context.Context) ([]inventory.Host, error) { return f, nil }

// plan returns the change to store, and sets the report.
func (w *takingOver) plan(ctx context.Context, report *TakenOver) (change booking.TakeOver, err error) {
	bare, err := inventory.NewSnapshot(w.seen.hosts, nil, nil)
	if err != nil {
		return change, err
	}
	names := takeover.NameHosts(w.blazar.Hosts, func(name string) bool { _, there := bare.Index(name); return there })
	pool := takeover.NewPool(w.blazar, names, bare)
	for i := range w.seen.hosts {
		for _, h := range pool.Hosts {
			if h.Name == w.seen.hosts[i].Name {
				w.seen.hosts[i].Number = h.Number
			}
		}
	}
	hosts, err := inventory.OpenSnapshotCache(ctx, fixed(w.seen.hosts), inventory.SnapshotCacheOptions{
		Hosts: overlaid{w.db, &pool, w.now}, Properties: w.db, Now: func() span.Instant { return w.now }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return change, err
	}
	present, err := w.db.Recall(ctx, booking.Recall{All: true})
	if err != nil {
		return change, err
	}
	stored, err := w.db.StoredOf(ctx, w.ids())
	if err != nil {
		return change, err
	}
	plan := takeover.New(w.blazar, names, takeover.Options{
		Now: w.now, Hosts: hosts.Snapshot(), Live: present.Reservations, Stored: stored, Leave: w.Leave, History: w.History,
	})
	change = booking.NewTakeOver(plan.Leases, present.Hosts)
	change.Pool = pool
	var strangers []takeover.Finding
	change.Guests, strangers = takeover.Guests(plan.Leases, w.seen.servers)
	w.kept = stored
	for i := range plan.Leases {
		for _, r := range plan.Leases[i].Reservations {
			w.kept[r.ID] = true
		}
	}
	*report = TakenOver{
		Hosts: pool.Hosts, Leases: plan.Leases, Servers: change.Guests, Refused: plan.Stopped(), Cloud: w.fates(plan.Leases),
		Findings: slices.Concat(plan.Findings, pool.Findings, strangers, takeover.Leftovers(w.blazar, w.seen.aggregates, w.seen.flavors, w.seen.classes)),
	}
	return change, nil
}

// ids returns the ids of Blazar's leases and reservations.
func (w *takingOver) ids() (ids []string) {
	for _, l := range w.blazar.Leases {
		ids = append(ids, l.ID)
	}
	for _, r := range w.blazar.Reservations {
		ids = append(ids, r.ID)
	}
	return ids
}

// fates tells what happens to the objects that Blazar has made for the leases.
func (w *takingOver) fates(leases []reservation.LeaseRecord) (list []string) {
	for i := range leases {
		for _, r := range leases[i].Reservations {
			if slices.ContainsFunc(w.seen.aggregates, func(a inventory.Aggregate) bool { return a.Name == r.ID && fence.IsBlazars(a) }) {
				list = append(list, fmt.Sprintf("Blazar's aggregate %s stays until the end of the reservation; then Almanac deletes it", r.ID))
			}
			if slices.ContainsFunc(w.seen.flavors, func(f inventory.Flavor) bool { return f.ID == r.ID }) {
				list = append(list, fmt.Sprintf("the flavor reservation:%s becomes Almanac's, which adds its own extra specs and deletes it at the end", r.ID))
			}
		}
	}
	return list
}

// mark marks those aggregates of Blazar that belong to reservations of Almanac, so that Almanac
// deletes them at the end. It continues after an error.
func (w *takingOver) mark(ctx context.Context, compute *nova.Client) error {
	var errs []error
	for _, a := range w.seen.aggregates {
		if !w.kept[a.Name] || !fence.IsBlazars(a) || a.Metadata[inventory.ReservationMark] != "" {
			continue
		}
		if err := compute.SetMetadata(ctx, a, map[string]string{inventory.ReservationMark: a.Name}, nil); err != nil {
			errs = append(errs, fmt.Errorf("mark Blazar's aggregate %s; run the import again: %w", a.Name, err))
		}
	}
	return errors.Join(errs...)
}
