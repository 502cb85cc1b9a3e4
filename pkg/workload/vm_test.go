// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

func vms(t *testing.T, m workload.VMModel, n int) []workload.Job {
	t.Helper()
	v, err := workload.NewVMs(rand.New(rand.NewPCG(1, 2)), m)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]workload.Job, n)
	for i := range list {
		if list[i], err = v.Next(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// near fails the test unless got is within a share of want.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s is %.4g, want %.4g", what, got, want)
	}
}

func TestMadeUpMachinesAreAsTheirModelSays(t *testing.T) {
	m := workload.PaperVMs()
	m.Preemptible = 0.4
	const n = 200_000
	list := vms(t, m, n)
	byShape, byHour := map[int64]float64{}, make([]float64, 24)
	lifetimes, below, spots := 0.0, 0.0, 0.0
	for i, j := range list {
		if i > 0 && j.Submit < list[i-1].Submit || j.Runtime < 1 || j.Runtime > m.Longest || j.Size != 1 {
			t.Fatalf("%+v", j)
		}
		byShape[j.Shape.VCPUs]++
		byHour[j.Submit%86400/3600]++
		lifetimes += float64(j.Runtime)
		if float64(j.Runtime) < m.Median {
			below++
		}
		if j.Preemptible {
			spots++
		}
	}
	days := float64(list[n-1].Submit) / 86400
	near(t, "how many come in a day", n/days, m.PerDay, 0.01)
	near(t, "the rate at its peak", byHour[14]/days*24, 1.5*m.PerDay, 0.03)
	near(t, "the rate at its lowest", byHour[2]/days*24, 0.5*m.PerDay, 0.05)
	near(t, "the mean lifetime", lifetimes/n, m.MeanLifetime(), 0.02)
	near(t, "the share below the median", below/n, 0.5, 0.01)
	near(t, "the share that is preemptible", spots/n, 0.4, 0.01)
	for vcpus, share := range map[int64]float64{1: 3. / 6, 2: 2. / 6, 4: 1. / 6} {
		near(t, "the share of a flavor", byShape[vcpus]/n, share, 0.01)
	}
	near(t, "the mean of VCPUs", m.MeanVCPUs(), 11./6, 1e-9)
}

func TestAModelWithoutSpreadLivesForItsMedian(t *testing.T) {
	m := workload.PaperVMs()
	m.Spread = 0
	if j := vms(t, m, 1)[0]; float64(j.Runtime) != m.Median || m.MeanLifetime() != m.Median {
		t.Errorf("%d seconds, %g in the mean", j.Runtime, m.MeanLifetime())
	}
}

func TestAnotherSharePreemptibleChangesNothingElse(t *testing.T) {
	few, many := workload.PaperVMs(), workload.PaperVMs()
	few.Preemptible, many.Preemptible = 0.2, 0.7
	a, b := vms(t, few, 1000), vms(t, many, 1000)
	for i := range a {
		if a[i].Preemptible && !b[i].Preemptible {
			t.Errorf("%s is preemptible with the smaller share only", a[i].ID)
		}
		if a[i].Submit != b[i].Submit || a[i].Runtime != b[i].Runtime || !a[i].Shape.Equal(b[i].Shape) {
			t.Errorf("%+v and %+v", a[i], b[i])
		}
	}
}

func TestAModelOfWhichNothingCanBeMadeIsRefused(t *testing.T) {
	for field, spoil := range map[string]func(*workload.VMModel){
		"per_day":     func(m *workload.VMModel) { m.PerDay = 1e-300 },
		"swing":       func(m *workload.VMModel) { m.Swing = 1.1 },
		"median":      func(m *workload.VMModel) { m.Median = math.NaN() },
		"preemptible": func(m *workload.VMModel) { m.Preemptible = -0.1 },
		"spread":      func(m *workload.VMModel) { m.Spread = math.Inf(1) },
		"longest":     func(m *workload.VMModel) { m.Longest = 0 },
		"flavors":     func(m *workload.VMModel) { m.Flavors = []workload.VMFlavor{{resource.Vector{VCPUs: 1}, 1}} },
	} {
		m := workload.PaperVMs()
		spoil(&m)
		if _, err := workload.NewVMs(rand.New(rand.NewPCG(1, 2)), m); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
