// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// book holds one reservation and knows no other.
type book struct{ r reservation.Reservation }

func (b *book) Live(span.Span) []reservation.Reservation {
	if !b.r.Status.Live() {
		return nil
	}
	return []reservation.Reservation{b.r}
}

func (b *book) Reservation(id string) (reservation.Reservation, bool) {
	return b.r, id == b.r.ID && b.r.Status.Live()
}

func (b *book) Recall(context.Context, booking.Recall) (booking.Recalled, error) {
	return booking.Recalled{Reservations: []reservation.Reservation{b.r}}, nil
}

// findings returns the kinds of the findings about the reservation. Others use the cloud at
// the same time.
func (l *lab) findings(b *book) (kinds []upkeep.FindingKind) {
	l.t.Helper()
	doctor := upkeep.Doctor{
		Promises: b, Records: b, Snapshot: func() *inventory.Snapshot { return l.snapshot }, Untrusted: func() string { return "" },
		Fence: l.cloud, Instances: l.cloud, Rules: rules, Now: func() span.Instant { return now },
	}
	seen, err := doctor.Examine(l.t.Context())
	l.must(err)
	host := b.r.Claims[0].Host
	for _, f := range seen.Findings {
		text := f.Subject + " " + f.Message
		if strings.Contains(text, b.r.ID) || strings.Contains(text, ownName(b.r.ID)) || f.Subject == host {
			kinds = append(kinds, f.Kind)
		}
	}
	return slices.Compact(kinds)
}

func TestTheDoctorSeesOnTheRealCloudWhatIsNotAsItShouldBe(t *testing.T) {
	l := newLab(t)
	b := &book{l.reservation(reservation.Hosts, 1)}
	host := b.r.Claims[0].Host
	stranger := l.boot(l.admin, l.tiny(), host)
	if stranger.Host != host {
		t.Fatalf("the stranger is on %q (%s), want %s", stranger.Host, stranger.Status, host)
	}
	l.lay(b.r)
	want := func(when string, want ...upkeep.FindingKind) {
		t.Helper()
		if got := l.findings(b); !slices.Equal(got, want) {
			t.Errorf("%s the doctor finds %v, want %v", when, got, want)
		}
	}
	want("when all lies as it should")

	at, _ := l.snapshot.Index(host)
	h := *l.snapshot.Host(at)
	h.Instances = []inventory.Instance{stranger}
	alone, err := inventory.NewSnapshot([]inventory.Host{h}, nil, nil)
	l.must(err)
	all := l.snapshot
	l.snapshot = alone
	want("when an instance that does not belong is on its host", upkeep.Stranger)
	l.snapshot = all

	l.carry([]fence.Step{{Action: fence.RemoveTraits, Host: host, Traits: []string{fence.Reserved}}})
	want("when a trait was taken off", upkeep.Missing)
	l.carry(l.steps(b.r, true))
	want("when it was put back")

	b.r.Status = reservation.Ended
	want("when it is over and nobody has cleared up", upkeep.Misplaced, upkeep.OrphanGroup, upkeep.OrphanFlavor, upkeep.OrphanTrait)
}
