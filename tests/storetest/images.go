// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

func testImages(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("rows of the same key are replaced", func(t *testing.T) { testImagesReplaced(t, open(t)) })
	t.Run("only the transfers that matter are read", func(t *testing.T) { testImagesThatMatter(t, open(t)) })
	t.Run("old transfers are deleted", func(t *testing.T) { testImagesForgotten(t, open(t)) })
	t.Run("names differ by case", func(t *testing.T) { testImageNames(t, open(t)) })
}

func staged(t *testing.T, s controller.Records, lease job.Lease, changes ...controller.Change) {
	t.Helper()
	for _, c := range changes {
		if err := s.ChangeStagedImages(t.Context(), lease, c); err != nil {
			t.Fatalf("store %+v: %v", c, err)
		}
	}
}

func wantStaged(t *testing.T, s controller.Records, want controller.Stored) {
	t.Helper()
	got, err := s.StagedImages(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

// transfer returns a transfer with every stored field set.
func transfer(id, image, host string) controller.Transfer {
	return controller.Transfer{
		ID: id, Call: "req-1", Image: image, Host: host, Bytes: 1 << 40, Reservations: []string{"r2", "r1"},
		Deadline: 1000, Started: 100, Expected: 200, Bound: 400, Expire: 5000, Begun: 101, Finished: 150, Outcome: controller.TransferFailed, Detail: "ä \"b\"",
	}
}

func testImagesReplaced(t *testing.T, subject Subject) {
	s := offered[controller.Records](t, subject)
	wantStaged(t, s, controller.Stored{})
	under := transfer("t2", "i", "h2")
	under.Outcome, under.Finished, under.Begun, under.Detail, under.Reservations = "", 0, 0, "", nil
	first := controller.Change{
		Images:    []controller.Image{{ID: "i", Name: "debian", Bytes: 7, Looked: 3}, {ID: "a", Bytes: 1}},
		Transfers: []controller.Transfer{under, transfer("t1", "i", "h1")},
		Cached:    []controller.Cached{{Image: "i", Host: "h1", Bytes: 7, Since: 1, LastUsed: 2}},
	}
	staged(t, s, job.Lease{}, first)
	ended := transfer("t2", "i", "h2")
	ended.Outcome, ended.Detail = controller.TransferThere, ""
	staged(t, s, job.Lease{}, controller.Change{
		Images: []controller.Image{{ID: "i", Name: "debian-13", Bytes: 8, Looked: 9, Gone: true}}, Transfers: []controller.Transfer{ended},
		Cached: []controller.Cached{{Image: "i", Host: "h1", Bytes: 8, Since: 1, LastUsed: 9}, {Image: "i", Host: "h2", Bytes: 8, Since: 9, LastUsed: 9}},
	}, controller.Change{})
	wantStaged(t, s, controller.Stored{
		Images:    []controller.Image{{ID: "a", Bytes: 1}, {ID: "i", Name: "debian-13", Bytes: 8, Looked: 9, Gone: true}},
		Transfers: []controller.Transfer{transfer("t1", "i", "h1"), ended},
		Cached:    []controller.Cached{{Image: "i", Host: "h1", Bytes: 8, Since: 1, LastUsed: 9}, {Image: "i", Host: "h2", Bytes: 8, Since: 9, LastUsed: 9}},
	})
}

// testImagesThatMatter tests that StagedImages at the instant 1000 returns the transfers
// under way with their requests, those that failed and have not expired, and the last large
// ones that succeeded.
func testImagesThatMatter(t *testing.T, subject Subject) {
	s := offered[controller.Records](t, subject)
	ended := func(id string, outcome controller.Outcome, adjust func(*controller.Transfer)) controller.Transfer {
		one := transfer(id, "i", "h")
		one.Outcome, one.Call = outcome, "req of "+id
		adjust(&one)
		return one
	}
	as := func(*controller.Transfer) {}
	over := func(o *controller.Transfer) { o.Expire = 1000 }
	small := func(o *controller.Transfer) { o.Bytes = controller.Telling - 1 }
	want := []controller.Transfer{
		ended("1 under way", "", func(o *controller.Transfer) { o.Finished, o.Call = 0, "req-1" }),
		ended("2 of the same call", controller.TransferThere, func(o *controller.Transfer) { small(o); o.Call = "req-1" }),
		ended("3 failed", controller.TransferFailed, as), ended("4 lost", controller.TransferLost, as),
	}
	rows := append(slices.Clone(want),
		ended("failed long ago", controller.TransferFailed, over), ended("lost long ago", controller.TransferLost, over),
		ended("assumed", controller.TransferAssumed, as), ended("small", controller.TransferThere, small))
	for i := range controller.Measured + 5 {
		came := ended(fmt.Sprintf("5 came %02d", i), controller.TransferThere, func(o *controller.Transfer) { o.Finished = span.Instant(200 + i) })
		if rows = append(rows, came); i >= 5 {
			want = append(want, came)
		}
	}
	staged(t, s, job.Lease{}, controller.Change{Transfers: rows})
	wantStaged(t, s, controller.Stored{Transfers: want})
}

func testImagesForgotten(t *testing.T, subject Subject) {
	s := offered[controller.Records](t, subject)
	under := transfer("under way", "i", "h1")
	under.Outcome, under.Finished = "", 0
	late := transfer("late", "i", "h1")
	late.Finished = 151
	staged(t, s, job.Lease{}, controller.Change{
		Images:    []controller.Image{{ID: "i"}, {ID: "j"}},
		Transfers: []controller.Transfer{transfer("old", "i", "h1"), under, late},
		Cached:    []controller.Cached{{Image: "i", Host: "h1"}, {Image: "i", Host: "h2"}, {Image: "j", Host: "h1"}},
	}, controller.Change{
		ForgetBefore: 151, ForgetImages: []string{"j", "unknown"},
		// A row that one change both deletes and stores is stored.
		Forgotten: []controller.Cached{{Image: "i", Host: "h1"}, {Image: "j", Host: "h1"}}, Cached: []controller.Cached{{Image: "j", Host: "h1", Bytes: 1}},
	})
	wantStaged(t, s, controller.Stored{
		Images: []controller.Image{{ID: "i"}}, Transfers: []controller.Transfer{late, under},
		Cached: []controller.Cached{{Image: "i", Host: "h2"}, {Image: "j", Host: "h1", Bytes: 1}},
	})
}

func testImageNames(t *testing.T, subject Subject) {
	s := offered[controller.Records](t, subject)
	c := controller.Change{Images: []controller.Image{{ID: "A", Name: "x"}, {ID: "a"}}, Cached: []controller.Cached{{Image: "a", Host: "H"}, {Image: "a", Host: "h"}}}
	staged(t, s, job.Lease{}, c)
	wantStaged(t, s, controller.Stored{Images: c.Images, Cached: c.Cached})
}

// testImagesUnderLease tests that a process that has lost the lease stores nothing.
func testImagesUnderLease(t *testing.T, stores ...Subject) {
	one, two := offered[controller.Records](t, stores[0]), offered[controller.Records](t, stores[1])
	first, second := offered[leases](t, stores[0]), offered[leases](t, stores[1])
	before, held, err := first.Take(t.Context(), "images", time.Minute)
	if err != nil || !held {
		t.Fatalf("the lease is not taken: %v", err)
	}
	staged(t, one, before, controller.Change{Images: []controller.Image{{ID: "a"}}})
	if err := first.Release(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	now, held, err := second.Take(t.Context(), "images", time.Minute)
	if err != nil || !held {
		t.Fatalf("the lease is not taken over: %v", err)
	}
	staged(t, two, now, controller.Change{Images: []controller.Image{{ID: "b"}}})
	if err := one.ChangeStagedImages(t.Context(), before, controller.Change{Images: []controller.Image{{ID: "c"}}}); err == nil {
		t.Error("the one that has lost the lease stores")
	}
	wantStaged(t, one, controller.Stored{Images: []controller.Image{{ID: "a"}, {ID: "b"}}})
}
