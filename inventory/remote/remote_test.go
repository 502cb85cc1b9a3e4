// SPDX-License-Identifier: Apache-2.0

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
)

var _ inventory.Dated = (*remote.Source)(nil)

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
		if !reflect.DeepEqual(want, got) { // cmp treats nil and empty resources as equal
			rt.Errorf("sent %#v\ngot %#v", want, got)
		}
	})
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
			t.Error("the source returns other hosts")
		}
	})
	if first < 50_000 || again > 1000 || after > 1000 {
		t.Errorf("largest messages: %d bytes at first, %d the second time, %d after a restart", first, again, after)
	}
	restarted.cloud.set(racks(100, 1000, 2), nil)
	restarted.refresh(t)
	if got := restarted.hosts(t); !reflect.DeepEqual(racks(100, 1000, 2), got) {
		t.Error("the change did not reach the source")
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
			t.Error("the source returns other hosts")
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
		t.Error("the hosts do not arrive after they stop changing")
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
		t.Errorf("canceled: error %v", err)
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

func TestTheAgeOfTheHostsIsToldWhileTheServiceCannotReadThem(t *testing.T) {
	s := share(t, inProcess(t), racks(2, 10, 1))
	for _, step := range []struct {
		after time.Duration
		cloud error
		want  int64 // seconds
	}{
		{0, nil, 0}, {10 * time.Second, nil, 0}, {10 * time.Second, errors.New("unreadable"), 10}, {time.Minute, errors.New("unreadable"), 70}, {time.Second, nil, 0},
	} {
		s.cloud.wait(step.after)
		s.cloud.set(racks(2, 10, 1), step.cloud)
		if err := s.service.Refresh(t.Context()); (err != nil) != (step.cloud != nil) {
			t.Fatal(err)
		}
		if hosts := s.hosts(t); len(hosts) != 2 || s.source.Age() != step.want {
			t.Errorf("%d hosts of age %d s, want %d s", len(hosts), s.source.Age(), step.want)
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
	s.refresh(t) // without a change
	s.cloud.set(racks(3, 10, 1), nil)
	if err := s.service.Refresh(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a change that cannot be announced: %v", err)
	}
	for range 2 { // the first refresh announces, the second has no news
		s.refresh(t)
	}
	for name, source := range map[string]*remote.Source{"one": s.source, "other": other} {
		select {
		case <-source.Changed():
		case <-time.After(patience):
			t.Errorf("%s: the source was not told", name)
		}
		if hosts, err := source.Hosts(t.Context()); err != nil || len(hosts) != 3 {
			t.Errorf("%s: %d hosts, %v", name, len(hosts), err)
		}
	}
	if told != 2 {
		t.Errorf("sent %d times, want one failure and one success", told)
	}
}
