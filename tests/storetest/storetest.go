// SPDX-License-Identifier: Apache-2.0

// Package storetest contains the tests that every database must pass.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Subject is a store under test. If it has further methods, these are tested too.
type Subject interface {
	booking.Records
	booking.Keys
	reservation.Reader
}

type (
	keyPurger interface {
		PurgeKeys(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
	}
	settings interface {
		Overrides(ctx context.Context) (map[string]inventory.Override, error)
		ChangeOverride(ctx context.Context, host string, change func(map[string]inventory.Override) (inventory.Override, error)) error
		Hidden(ctx context.Context) (map[string]bool, error)
		SaveHidden(ctx context.Context, property string, hidden bool) error
		inventory.HostNumbers
	}
	leases interface {
		job.Leases
		Release(ctx context.Context, lease job.Lease) error
	}
	clock interface {
		Now(ctx context.Context) (time.Time, error)
	}
	outbox interface {
		Unsent(ctx context.Context, limit int) ([]reservation.Change, error)
		MarkSent(ctx context.Context, lease job.Lease, places []int64) error
		Waiting(ctx context.Context) (count int, first span.Instant, err error)
	}
	auditor interface {
		Trail(ctx context.Context, id string, limit int) ([]reservation.Change, error)
	}
	presence interface {
		Present(ctx context.Context, ttl time.Duration) (replicas []string, err error)
		Leave(ctx context.Context) error
	}
	decisions interface {
		KeepDecisions(ctx context.Context, list []placing.Decision) error
		Decisions(ctx context.Context, id string) ([]placing.Decision, error)
		PurgeDecisions(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
	}
	power interface {
		controller.Records
		controller.Settings
		controller.History
		PurgeAudit(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
		EnergyReport(ctx context.Context) (energy.Report, error)
		SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error
	}
	instanceRecords interface {
		inventory.InstanceRecords
		SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error
		OldInstanceRecords(ctx context.Context, before span.Instant) ([]string, error)
		ForgetInstanceRecords(ctx context.Context, lease job.Lease, instances []string, before span.Instant) error
	}
	purger interface {
		Purge(ctx context.Context, lease job.Lease, before span.Instant, dryRun bool, batch int, progress func(done int)) (int, error)
	}
)

// offered returns s as a T, and skips the test if s does not implement T.
func offered[T any](t *testing.T, s Subject) T {
	t.Helper()
	part, ok := s.(T)
	if !ok {
		t.Skipf("a %T does not offer this", s)
	}
	return part
}

// Run tests a store by itself. Each call of open returns a store on a new database, migrated
// and empty, with an outbox, and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("reservations", func(t *testing.T) { testReservations(t, open) })
	t.Run("texts", func(t *testing.T) { testTexts(t, open) })
	t.Run("commits", func(t *testing.T) { testCommits(t, open) })
	t.Run("recalling", func(t *testing.T) { testRecalling(t, open) })
	t.Run("keys", func(t *testing.T) { testKeys(t, open) })
	t.Run("groups of reservations", func(t *testing.T) { testLeaseGroups(t, open) })
	t.Run("series", func(t *testing.T) { testSeries(t, open) })
	t.Run("listing", func(t *testing.T) { testListing(t, open) })
	t.Run("settings", func(t *testing.T) { testSettings(t, open) })
	t.Run("numbers of hosts", func(t *testing.T) { testHostNumbers(t, open) })
	t.Run("taking over", func(t *testing.T) { testTakingOver(t, open) })
	t.Run("the log of changes", func(t *testing.T) { testChanges(t, open) })
	t.Run("decisions", func(t *testing.T) { testDecisions(t, open) })
	t.Run("instance records", func(t *testing.T) { testInstanceRecords(t, open) })
	t.Run("power", func(t *testing.T) { testPower(t, open) })
	t.Run("images", func(t *testing.T) { testImages(t, open) })
	t.Run("packing", func(t *testing.T) { testPacking(t, open) })
	t.Run("best-effort work", func(t *testing.T) { testBestEffort(t, open) })
	t.Run("floating IPs", func(t *testing.T) { testAddresses(t, open) })
	t.Run("the usage service", func(t *testing.T) { testTold(t, open) })
	t.Run("purging", func(t *testing.T) { testPurging(t, open) })
	t.Run("concurrency", func(t *testing.T) { testConcurrency(t, open) })
}

// RunShared tests several stores on one database that outlives them. Each call of create
// makes a new database and returns a function that opens a store on it, each with another
// holder.
func RunShared(t *testing.T, create func(t *testing.T) (open func(t *testing.T) Subject)) {
	t.Run("what is stored outlives the store", func(t *testing.T) { testReopening(t, create(t)) })
	t.Run("leases", func(t *testing.T) { testLeases(t, create) })
	t.Run("evictions", func(t *testing.T) { testEvictions(t, create) })
	for name, test := range map[string]func(t *testing.T, stores ...Subject){
		"stores count together":                 testCounting,
		"of updates by several stores one wins": testOneWins,
		"a host is taken once":                  testOneHost,
		"a project's limit holds":               testLimitTogether,
		"an address is taken once":              testOneAddress,
		"the log has every commit":              testWholeLog,
		"settings of a host change in turn":     testSettingsInTurn,
		"a number belongs to one host":          testHostNumbersTogether,
		"decisions are kept at once":            testKeptTogether,
		"power records change in turn":          testPowerInTurn,
		"images change under the lease":         testImagesUnderLease,
	} {
		t.Run(name, func(t *testing.T) {
			open := create(t)
			test(t, open(t), open(t))
		})
	}
}
