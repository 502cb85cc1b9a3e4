package remote_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

var _ inventory.Source = (*remote.Source)(nil)

func TestAnyHostGoesThroughUnchanged(t *testing.T) {
	s := share(t, inProcess(t), nil)
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfNDistinct(anyHost(), 1, 5, func(h inventory.Host) string { return h.Name }).Draw(rt, "hosts")
		s.cloud.set(want, nil)
		if err := s.service.Refresh(rt.Context()); err != nil {
			rt.Fatal(err)
		}
		got, err := s.source.Hosts(rt.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) { // cmp takes nil and empty resources for equal
			rt.Errorf("sent %#v\ngot %#v", want, got)
		}
	})
}

// anyHost draws hosts of which each property has one type everywhere, as one
// inventory asks.
func anyHost() *rapid.Generator[inventory.Host] {
	return rapid.Custom(func(t *rapid.T) inventory.Host {
		h := inventory.Host{
			Name:       rapid.StringN(1, 20, -1).Draw(t, "name"),
			Capacity:   anyAmounts().Draw(t, "capacity"),
			Used:       anyAmounts().Draw(t, "used"),
			Zone:       rapid.String().Draw(t, "zone"),
			Aggregates: anyNames().Draw(t, "aggregates"),
			Traits:     anyNames().Draw(t, "traits"),
			Reservable: rapid.Bool().Draw(t, "reservable"),
			Guests:     rapid.Int().Draw(t, "guests"),
			Power: rapid.SampledFrom([]inventory.Power{
				"", inventory.PowerOn, inventory.PowerSleeping, inventory.PowerWaking, inventory.PowerFailed,
			}).Draw(t, "power"),
			BootSeconds:  rapid.Int64().Draw(t, "boot seconds"),
			FlopsPerWatt: rapid.Float64().Draw(t, "FLOPS per watt"),
		}
		if rapid.Bool().Draw(t, "has properties") {
			h.Properties = map[string]inventory.Value{}
			for _, name := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "properties") {
				kind := rapid.SampledFrom([]inventory.Kind{inventory.Number, inventory.String, inventory.Bool, inventory.List}).Draw(t, "kind")
				h.Properties[string(kind)+" "+name] = anyValue(kind).Draw(t, "value")
			}
		}
		return h
	})
}

func anyValue(kind inventory.Kind) *rapid.Generator[inventory.Value] {
	return map[inventory.Kind]*rapid.Generator[inventory.Value]{
		inventory.Number: rapid.Map(rapid.Float64(), inventory.NumberValue),
		inventory.String: rapid.Map(rapid.String(), inventory.StringValue),
		inventory.Bool:   rapid.Map(rapid.Bool(), inventory.BoolValue),
		inventory.List:   rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), inventory.ListValue),
	}[kind]
}

func anyAmounts() *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		v := resource.Vector{
			VCPUs: rapid.Int64().Draw(t, "vcpus"), MemoryMB: rapid.Int64().Draw(t, "memory_mb"), DiskGB: rapid.Int64().Draw(t, "disk_gb"),
		}
		if rapid.Bool().Draw(t, "has custom classes") {
			v.Custom = rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 3).Draw(t, "custom")
		}
		return v
	})
}

// anyNames draws nil, nothing and some.
func anyNames() *rapid.Generator[[]string] {
	return rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfN(rapid.String(), 0, 3))
}

func TestUnchangedHostsCostASmallMessageAlsoAfterARestartOfTheService(t *testing.T) {
	w := inProcess(t)
	hosts := racks(100, 1000, 1)
	s := share(t, w, hosts)
	first := w.largestIn(func() { s.hosts(t) })
	again := w.largestIn(func() { s.hosts(t) })
	s.stop()
	restarted := share(t, w, racks(100, 1000, 1))
	restarted.source = s.source
	after := w.largestIn(func() {
		if got := restarted.hosts(t); !reflect.DeepEqual(hosts, got) {
			t.Error("other hosts")
		}
	})
	if first < 50_000 || again > 1000 || after > 1000 {
		t.Errorf("largest messages: %d bytes at first, %d the second time, %d after a restart", first, again, after)
	}
	restarted.cloud.set(racks(100, 1000, 2), nil)
	restarted.refresh(t)
	if got := restarted.hosts(t); !reflect.DeepEqual(racks(100, 1000, 2), got) {
		t.Error("the change did not come through")
	}
}

// replies calls fn before each reply.
func replies(fn func()) func(oslo.Message) error {
	return func(m oslo.Message) error {
		if strings.HasPrefix(m.Key, "reply_") {
			fn()
		}
		return nil
	}
}

func TestManyHostsComeInPartsUnderFourMegabytes(t *testing.T) {
	w := inProcess(t)
	hosts := racks(20, 160_000, 1)
	s := share(t, w, hosts)
	parts := 0
	w.disturb(replies(func() { parts++ }))
	largest := w.largestIn(func() {
		if !reflect.DeepEqual(hosts, s.hosts(t)) {
			t.Error("other hosts")
		}
	})
	if parts != 2 || largest < 2_000_000 || largest > 4_000_000 {
		t.Errorf("%d parts, the largest message has %d bytes", parts, largest)
	}
}

func TestHostsThatChangeBetweenPartsComeWholeAndNew(t *testing.T) {
	w := inProcess(t)
	s := share(t, w, racks(20, 1000, 1))
	s.service.SetPart(1000)
	want := racks(20, 1000, 2)
	changed := false
	w.disturb(replies(func() {
		if !changed {
			changed = true
			s.cloud.set(want, nil)
			s.refresh(t)
		}
	}))
	if got := s.hosts(t); !reflect.DeepEqual(want, got) {
		t.Error("got other hosts than the new ones")
	}
}

func TestHostsThatNeverRestAreNotGivenInHalves(t *testing.T) {
	w := inProcess(t)
	s := share(t, w, racks(20, 1000, 1))
	s.service.SetPart(1000)
	seed := byte(1)
	w.disturb(replies(func() {
		seed++
		s.cloud.set(racks(20, 1000, seed), nil)
		s.refresh(t)
	}))
	if got, err := s.source.Hosts(t.Context()); !fault.Is(err, fault.Unavailable) || got != nil {
		t.Errorf("%d hosts, error %v", len(got), err)
	}
	w.disturb(nil)
	if got := s.hosts(t); !reflect.DeepEqual(racks(20, 1000, seed), got) {
		t.Error("once they rest, they do not come")
	}
}

func TestAServiceThatIsAwayIsUnavailableAndNamesTheTopic(t *testing.T) {
	w := inProcess(t)
	source := remote.NewSource(client(t, w, 20*time.Millisecond), "almanac")
	_, err := source.Hosts(t.Context())
	if f := fault.Of(err); f.Kind != fault.Unavailable || !strings.Contains(f.Message, "almanac.inventory") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Hosts(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func TestAServiceWithoutHostsSaysSo(t *testing.T) {
	s := share(t, inProcess(t), nil)
	_, err := s.source.Hosts(t.Context())
	if f := fault.Of(err); f.Kind != fault.Unavailable || !strings.Contains(f.Message, "has not read its hosts") {
		t.Errorf("error %v", err)
	}
}

func TestTheServiceKeepsTheLastGoodHosts(t *testing.T) {
	good := racks(2, 10, 1)
	s := share(t, inProcess(t), good)
	for name, bad := range map[string]*cloud{
		"unreadable":     {err: errors.New("unreadable")},
		"no hosts":       {},
		"one name twice": {hosts: append(racks(1, 10, 1), racks(1, 10, 1)...)},
		"not a number":   {hosts: []inventory.Host{{Name: "a", Properties: map[string]inventory.Value{"p": inventory.NumberValue(math.NaN())}}}},
	} {
		s.cloud.set(bad.hosts, bad.err)
		if err := s.service.Refresh(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := s.hosts(t); !reflect.DeepEqual(good, got) {
			t.Errorf("%s: got %d hosts", name, len(got))
		}
	}
}

func TestEverySourceIsToldOfAChangeAndOfNothingElse(t *testing.T) {
	w := inProcess(t)
	s := share(t, w, racks(2, 10, 1))
	other := remote.NewSource(client(t, w, patience), "almanac")
	for _, source := range []*remote.Source{s.source, other} {
		serve(t, w, remote.ChangesTopic, source.Endpoint())
	}
	told := 0
	w.disturb(func(m oslo.Message) error {
		if m.Exchange.Kind == oslo.Fanout {
			told++
			if told == 1 {
				return fault.New(fault.Unavailable, "the broker is away")
			}
		}
		return nil
	})
	s.refresh(t) // nothing new
	s.cloud.set(racks(3, 10, 1), nil)
	if err := s.service.Refresh(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a change that nobody can be told of: %v", err)
	}
	for range 2 { // the first tells, the second has no news
		s.refresh(t)
	}
	for name, source := range map[string]*remote.Source{"one": s.source, "other": other} {
		select {
		case <-source.Changed():
		case <-time.After(patience):
			t.Errorf("%s: was not told", name)
		}
		if hosts, err := source.Hosts(t.Context()); err != nil || len(hosts) != 3 {
			t.Errorf("%s: %d hosts, %v", name, len(hosts), err)
		}
	}
	if told != 2 {
		t.Errorf("sent %d times, want one that failed and one that did not", told)
	}
}
