// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// booked returns a pending reservation of two hosts.
func booked(id string) reservation.Reservation {
	held := span.New(1_800_000_000, 7200)
	return reservation.Reservation{
		ID: id, ProjectID: "demo", UserID: "ada", Status: reservation.Pending, Span: held,
		Terms: reservation.Terms{
			Name: "night run", Kind: reservation.Hosts, Quantity: 2,
			Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, BeforeEnd: 3600,
		},
		Claims: []reservation.Claim{{Host: "node-1", Span: held}, {Host: "node-2", Span: held}},
		Events: []reservation.Event{
			{Type: reservation.StartEvent, Time: held.Start, State: reservation.EventDue},
			{Type: reservation.EndEvent, Time: held.End, State: reservation.EventDue},
		},
		Created: 1_799_000_000, Updated: 1_799_000_000, Version: 1,
	}
}

func ids(list []reservation.Reservation) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].ID
	}
	return names
}

// diff returns the difference between want and got; empty and nil are the same.
func diff(want, got any) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

// anyReservation draws a reservation whose fields are legal one by one, up to their largest
// size.
func anyReservation(id string) *rapid.Generator[reservation.Reservation] {
	return rapid.Custom(func(t *rapid.T) reservation.Reservation {
		r := reservation.Reservation{
			ID:        id,
			ProjectID: name().Draw(t, "project"),
			UserID:    name().Draw(t, "user"),
			Terms: reservation.Terms{
				Name:           name().Draw(t, "name"),
				Kind:           rapid.SampledFrom(reservation.Kinds).Draw(t, "kind"),
				Quantity:       rapid.IntMin(1).Draw(t, "quantity"),
				HostProperties: rapid.String().Draw(t, "host properties"),
				Policy:         rapid.SampledFrom(calendar.Policies).Draw(t, "policy"),
				Resources:      anyVector().Draw(t, "resources"),
				Affinity:       rapid.SampledFrom([]calendar.Affinity{"", calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity"),
				Image:          name().Draw(t, "image"),
				OnEnd:          rapid.SampledFrom(reservation.OnEnds).Draw(t, "on end"),
				BeforeEnd:      rapid.Int64Min(0).Draw(t, "before end"),
				Notice:         rapid.Int64Min(0).Draw(t, "notice"),
				Maintenance:    rapid.Bool().Draw(t, "maintenance"),
			},
			Membership:    anyMembership().Draw(t, "membership"),
			Occurrence:    reservation.Occurrence{SeriesID: rapid.StringN(0, 36, -1).Draw(t, "series"), Local: rapid.StringN(0, 32, -1).Draw(t, "local")},
			Status:        rapid.SampledFrom([]reservation.Status{reservation.Waiting, reservation.Pending, reservation.Active, reservation.Ended, reservation.Failed}).Draw(t, "status"),
			Span:          anySpan().Draw(t, "span"),
			Window:        anySpan().Draw(t, "window"),
			Hold:          rapid.Int64Min(0).Draw(t, "hold"),
			Claims:        rapid.SliceOfN(anyClaim(), 0, 6).Draw(t, "claims"),
			Events:        rapid.SliceOfN(anyEvent(), 0, 6).Draw(t, "events"),
			DelayedByBoot: rapid.Bool().Draw(t, "delayed by boot"),
			Degraded:      rapid.String().Draw(t, "degraded"),
			Released:      rapid.Int64Min(0).Draw(t, "released"),
			PromisedEnd:   span.Instant(rapid.Int64Min(0).Draw(t, "promised end")),
			Created:       anyInstant().Draw(t, "created"),
			Updated:       anyInstant().Draw(t, "updated"),
			Version:       1,
		}
		if r.Kind == reservation.Addresses {
			r.Addresses = rapid.SliceOfN(anyAddress(), 1, 4).Draw(t, "addresses")
		}
		r.Together = reservation.Together{
			By: name().Draw(t, "by"), Rule: rapid.SampledFrom(reservation.TogetherRules).Draw(t, "rule"), Values: rapid.IntMin(0).Draw(t, "values"),
			Preferred: rapid.Bool().Draw(t, "preferred"), ApartFrom: name().Draw(t, "apart from"), Broken: rapid.Bool().Draw(t, "broken"),
		}
		return r
	})
}

func anyAddress() *rapid.Generator[address.Claim] {
	return rapid.Custom(func(t *rapid.T) address.Claim {
		return address.Claim{
			Network: rapid.StringN(0, 64, -1).Draw(t, "network"), Address: rapid.StringN(0, 45, -1).Draw(t, "address"), Required: rapid.Bool().Draw(t, "required"),
		}
	})
}

func anyMembership() *rapid.Generator[reservation.Membership] {
	return rapid.Custom(func(t *rapid.T) reservation.Membership {
		return reservation.Membership{
			LeaseID: rapid.StringN(0, 36, 36).Draw(t, "lease"), Min: rapid.IntMin(0).Draw(t, "min"), Max: rapid.IntMin(0).Draw(t, "max"),
			HypervisorProperties: rapid.String().Draw(t, "hypervisor properties"),
			ResourceProperties:   rapid.String().Draw(t, "resource properties"),
		}
	})
}

func name() *rapid.Generator[string] { return rapid.StringN(0, 255, -1) }

func anyInstant() *rapid.Generator[span.Instant] {
	return rapid.Map(rapid.Int64(), func(seconds int64) span.Instant { return span.Instant(seconds) })
}

func anySpan() *rapid.Generator[span.Span] {
	return rapid.Custom(func(t *rapid.T) span.Span {
		return span.Span{Start: anyInstant().Draw(t, "start"), End: anyInstant().Draw(t, "end")}
	})
}

func anyClaim() *rapid.Generator[reservation.Claim] {
	return rapid.Custom(func(t *rapid.T) reservation.Claim {
		return reservation.Claim{Host: name().Draw(t, "host"), Span: anySpan().Draw(t, "span"), Slices: rapid.IntMin(0).Draw(t, "slices")}
	})
}

func anyEvent() *rapid.Generator[reservation.Event] {
	types := []reservation.EventType{reservation.CreatedEvent, reservation.StartEvent, reservation.BeforeEndEvent, reservation.EndEvent}
	return rapid.Custom(func(t *rapid.T) reservation.Event {
		return reservation.Event{
			Type: rapid.SampledFrom(types).Draw(t, "type"), Time: anyInstant().Draw(t, "time"),
			State: rapid.SampledFrom([]reservation.EventState{reservation.EventDue, reservation.EventRunning, reservation.EventDone}).Draw(t, "state"),
			Done:  anyInstant().Draw(t, "done"), Detail: rapid.String().Draw(t, "detail"),
			Holder: name().Draw(t, "holder"), Until: anyInstant().Draw(t, "until"),
		}
	})
}

func anyVector() *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		amount := rapid.Int64Min(0)
		return resource.Vector{
			VCPUs: amount.Draw(t, "vcpus"), MemoryMB: amount.Draw(t, "memory"), DiskGB: amount.Draw(t, "disk"),
			Custom: rapid.MapOfN(rapid.StringMatching(`CUSTOM_[A-Z]{1,20}`), rapid.Int64Min(1), 0, 3).Draw(t, "custom"),
		}
	})
}

// numbered returns a source of ids that do not repeat.
func numbered(prefix string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("%s-%d", prefix, n) }
}
