// SPDX-License-Identifier: Apache-2.0

package address_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/address"
)

var names = []string{"198.51.100.2", "198.51.100.10", "198.51.100.11", "198.51.100.100", "2001:db8::1"}

// anyPool draws a pool of a few addresses, with claims that do not overlap on one address.
func anyPool(t *rapid.T) address.Pool {
	p := address.Pool{Network: "n", Addresses: rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "addresses")}
	for _, b := range rapid.SliceOfN(anyBooked(), 0, 6).Draw(t, "booked") {
		if !slices.ContainsFunc(p.Booked, func(o address.Booked) bool { return o.Address == b.Address && o.Span.Overlaps(b.Span) }) {
			p.Booked = append(p.Booked, b)
		}
	}
	return p
}

func anyBooked() *rapid.Generator[address.Booked] {
	return rapid.Custom(func(t *rapid.T) address.Booked {
		return address.Booked{Reservation: "other", Address: rapid.SampledFrom(names).Draw(t, "address"), Span: anySpan().Draw(t, "span")}
	})
}

func anySpan() *rapid.Generator[span.Span] {
	return rapid.Custom(func(t *rapid.T) span.Span {
		return span.New(span.Instant(rapid.IntRange(0, 20).Draw(t, "start")), int64(rapid.IntRange(1, 10).Draw(t, "seconds")))
	})
}

func anyWant(t *rapid.T) address.Want {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID)
	w := address.Want{Required: some.Draw(t, "required"), Kept: some.Draw(t, "kept"), Spared: some.Draw(t, "spared"), Span: anySpan().Draw(t, "span")}
	w.Latest = span.Instant(rapid.IntRange(0, 25).Draw(t, "latest"))
	w.Amount = max(len(w.Required), rapid.IntRange(1, 4).Draw(t, "amount"))
	return w
}

// freeIn returns the addresses of the pool that nobody has in w, without those that are spared.
func freeIn(p address.Pool, want address.Want, w span.Span) (free []string) {
	for _, a := range p.Addresses {
		spared := slices.Contains(want.Spared, a) && !slices.Contains(want.Required, a)
		if !spared && !slices.ContainsFunc(p.Booked, func(b address.Booked) bool { return b.Address == a && b.Span.Overlaps(w) }) {
			free = append(free, a)
		}
	}
	return free
}

// possible reports whether the pool has what is wanted in w.
func possible(p address.Pool, want address.Want, w span.Span) bool {
	free := freeIn(p, want, w)
	return len(free) >= want.Amount && !slices.ContainsFunc(want.Required, func(a string) bool { return !slices.Contains(free, a) })
}

func TestAddressesAreChosenIfAndOnlyIfEnoughAreFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, w := anyPool(t), anyWant(t)
		claims, short := address.Choose(p, w)
		if possible(p, w, w.Span) != (short == nil) {
			t.Fatalf("free are %v, and the answer is %v, %+v", freeIn(p, w, w.Span), claims, short)
		}
		if short != nil {
			if short.Free != len(freeIn(p, w, w.Span)) || short.Enrolled != len(p.Addresses) {
				t.Errorf("%d of %d are free, it says %+v", len(freeIn(p, w, w.Span)), len(p.Addresses), short)
			}
			return
		}
		var got []string
		for _, c := range claims {
			got = append(got, c.Address)
			if c.Network != "n" || c.Required != slices.Contains(w.Required, c.Address) || !slices.Contains(freeIn(p, w, w.Span), c.Address) {
				t.Errorf("a claim is %+v", c)
			}
		}
		if slices.Sort(got); len(got) != w.Amount || len(slices.Compact(got)) != w.Amount {
			t.Errorf("%d addresses are %v", w.Amount, got)
		}
		if room := w.Amount - len(w.Required); room > 0 {
			for _, kept := range w.Kept[:min(room, len(w.Kept))] {
				fits := len(w.Kept) <= room && slices.Contains(freeIn(p, w, w.Span), kept)
				if fits && !slices.Contains(got, kept) {
					t.Errorf("%s is free and does not stay", kept)
				}
			}
		}
	})
}

func TestTheEarliestStartIsTheFirstAtWhichTheSameIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, w := anyPool(t), anyWant(t)
		_, short := address.Choose(p, w)
		if short == nil {
			return
		}
		first := span.Instant(0)
		latest := cmp.Or(w.Latest, 40)
		for start := w.Span.Start; start <= latest && first == 0; start++ {
			if possible(p, w, span.New(start, w.Span.Seconds())) {
				first = start
			}
		}
		if short.Earliest != first {
			t.Errorf("the first start is %d, it says %d", first, short.Earliest)
		}
	})
}

func TestTheEarliestStartIsFoundHoweverManyClaimsEndBeforeIt(t *testing.T) {
	p := address.Pool{Network: "n", Addresses: names[:1]}
	for i := range span.Instant(1000) {
		p.Booked = append(p.Booked, address.Booked{Reservation: "other", Address: names[0], Span: span.New(10*i, 9)})
	}
	if _, short := address.Choose(p, address.Want{Amount: 1, Span: span.New(5, 2)}); short.Earliest != 9999 {
		t.Errorf("the earliest start is %d, want the end of the last claim", short.Earliest)
	}
}

func TestAddressesWithoutClaimsAreTakenFirstInTheirOrder(t *testing.T) {
	p := address.Pool{Network: "n", Addresses: slices.Clone(names), Booked: []address.Booked{
		{Reservation: "a", Address: "198.51.100.2", Span: span.New(100, 10)}, {Reservation: "b", Address: "198.51.100.11", Span: span.New(0, 10)},
	}}
	claims, _ := address.Choose(p, address.Want{Amount: 4, Required: []string{"2001:db8::1"}, Span: span.New(5, 10)})
	want := []address.Claim{{"n", "2001:db8::1", true}, {"n", "198.51.100.10", false}, {"n", "198.51.100.100", false}, {"n", "198.51.100.2", false}}
	if !slices.Equal(claims, want) {
		t.Errorf("chosen are %v, want %v", claims, want)
	}
}

func TestANetworkWithoutFreeAddressesSaysWhichAreTaken(t *testing.T) {
	p := address.Pool{Network: "n", Addresses: []string{"198.51.100.2"}}.With("r", span.New(0, 10), []address.Claim{{Network: "n", Address: "198.51.100.2"}, {Network: "m", Address: "198.51.100.3"}})
	_, short := address.Choose(p, address.Want{Amount: 2, Required: []string{"198.51.100.2", "198.51.100.9"}, Span: span.New(5, 1)})
	if !slices.Equal(short.Taken, []string{"198.51.100.2"}) || !slices.Equal(short.Lacking, []string{"198.51.100.9"}) {
		t.Errorf("it says %+v", short)
	}
	if claims, _ := address.Choose(p.Without("r"), address.Want{Amount: 1, Span: span.New(5, 1)}); len(claims) != 1 {
		t.Error("without the reservation, its address is not free")
	}
}

// BenchmarkShortageAmongThousands is the most that a request can ask of a pool: nearly all of its
// addresses, which are all taken until different times.
func BenchmarkShortageAmongThousands(b *testing.B) {
	p := address.Pool{Network: "n"}
	for i := range address.MostEnrolled {
		a := fmt.Sprintf("198.18.%d.%d", i/256, i%256)
		p.Addresses = append(p.Addresses, a)
		p.Booked = append(p.Booked, address.Booked{Reservation: "other", Address: a, Span: span.New(0, int64(100+i))})
	}
	w := address.Want{Amount: 4000, Required: p.Addresses[:4000], Span: span.New(10, 10)}
	for b.Loop() {
		if _, short := address.Choose(p, w); short == nil {
			b.Fatal("addresses that are taken are chosen")
		}
	}
}
