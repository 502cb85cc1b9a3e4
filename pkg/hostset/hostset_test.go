// SPDX-License-Identifier: Apache-2.0

package hostset_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/hostset"
)

// model is a set of hosts as a list of booleans.
type model []bool

func (m model) set() hostset.Set {
	s := hostset.New(len(m))
	for host, in := range m {
		if in {
			s.Add(host)
		}
	}
	return s
}

// agrees fails if s has other hosts than m.
func (m model) agrees(t *rapid.T, what string, s hostset.Set) {
	var want []int
	for host, in := range m {
		if s.Has(host) != in {
			t.Fatalf("%s: Has(%d) is %v", what, host, s.Has(host))
		}
		if in {
			want = append(want, host)
		}
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, want) || s.Count() != len(want) || s.Empty() != (len(want) == 0) || !s.Equal(m.set()) {
		t.Fatalf("%s: %v, count %d, empty %v; want %v", what, got, s.Count(), s.Empty(), want)
	}
}

func draw(t *rapid.T, hosts int, label string) model {
	return rapid.SliceOfN(rapid.Bool(), hosts, hosts).Draw(t, label)
}

func TestASetDoesAsAListOfItsHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(0, 200).Draw(t, "hosts")
		a, b, c := draw(t, hosts, "a"), draw(t, hosts, "b"), draw(t, hosts, "c")
		both, either, onlyA, alone := make(model, hosts), make(model, hosts), make(model, hosts), 0
		for i := range hosts {
			both[i], either[i], onlyA[i] = a[i] && b[i], a[i] || b[i], a[i] && !b[i]
			if a[i] && !b[i] && !c[i] {
				alone++
			}
		}
		for what, tc := range map[string]struct {
			do   func(s hostset.Set)
			want model
		}{
			"as it was": {func(hostset.Set) {}, a},
			"keep":      {func(s hostset.Set) { s.Keep(b.set()) }, both},
			"unite":     {func(s hostset.Set) { s.Unite(b.set()) }, either},
			"subtract":  {func(s hostset.Set) { s.Subtract(b.set()) }, onlyA},
			"remove":    {func(s hostset.Set) { remove(s, b) }, onlyA},
		} {
			original := a.set()
			changed := original.Clone()
			tc.do(changed)
			tc.want.agrees(t, what, changed)
			a.agrees(t, what+", the one it was cloned from", original)
		}
		if got := a.set().CountWithout(b.set(), c.set()); got != alone {
			t.Fatalf("%d hosts in the first alone, want %d", got, alone)
		}
		if a.set().Equal(b.set()) != slices.Equal(a, b) {
			t.Fatalf("Equal is %v", a.set().Equal(b.set()))
		}
	})
}

func remove(s hostset.Set, hosts model) {
	for host, in := range hosts {
		if in {
			s.Remove(host)
		}
	}
}

func TestAFullSetHasEveryHostAndNoOther(t *testing.T) {
	for _, hosts := range []int{0, 1, 63, 64, 65, 128, 1000} {
		s := hostset.Full(hosts)
		if s.Count() != hosts || s.Has(hosts) || s.Has(hosts+1000) || len(s) != len(hostset.New(hosts)) {
			t.Errorf("of %d hosts it has %d", hosts, s.Count())
		}
	}
}

func TestAWalkEndsWhereItIsTold(t *testing.T) {
	var seen []int
	for host := range hostset.Full(200).All() {
		if seen = append(seen, host); host == 70 {
			break
		}
	}
	if len(seen) != 71 {
		t.Errorf("it saw %v", seen)
	}
}
