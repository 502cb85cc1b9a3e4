// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// level is the probability that one of these tests fails with other seeds although the code is
// right.
const level = 0.001

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// batch returns the constants of m_lublin99 for batch jobs.
func batch() workload.Lublin {
	return workload.Lublin{
		Name:     "batch",
		Arrivals: workload.LublinArrivals{Shape: 6.0415, Scale: 0.8531, DayShape: 6.1271, DayScale: 5.2740, RushToAll: 1.0519},
		Sizes:    workload.LublinSizes{Serial: 0.2927, PowerOfTwo: 0.6686, Low: 1.2, Medium: 5, High: 7, LowShare: 0.875},
		Runtimes: workload.LublinRuntimes{Shape1: 6.57, Scale1: 0.823, Shape2: 639.1, Scale2: 0.0156, PerNode: -0.003, Share: 0.6986},
	}
}

// interactive returns those for interactive jobs.
func interactive() workload.Lublin {
	return workload.Lublin{
		Name:     "interactive",
		Arrivals: workload.LublinArrivals{Shape: 6.5510, Scale: 0.6621, DayShape: 8.9186, DayScale: 3.6680, RushToAll: 0.9797},
		Sizes:    workload.LublinSizes{Serial: 0.1541, PowerOfTwo: 0.625, Low: 1, Medium: 3, High: 5.5, LowShare: 0.705},
		Runtimes: workload.LublinRuntimes{Shape1: 3.8351, Scale1: 0.6605, Shape2: 7.073, Scale2: 0.6856, PerNode: -0.0118, Share: 0.9156},
	}
}

// sound fails if a sample is farther from a distribution than chance allows (Kolmogorov and
// Smirnov). cdf returns the probability of at most x; values with ties are compared only at the
// values.
func sound(t *testing.T, what string, sample []float64, cdf func(x float64) float64) {
	t.Helper()
	slices.Sort(sample)
	farthest, n := 0.0, float64(len(sample))
	for i, x := range sample {
		if i+1 == len(sample) || sample[i+1] > x {
			farthest = max(farthest, math.Abs(float64(i+1)/n-cdf(x)))
		}
	}
	if most := math.Sqrt(-math.Log(level/2)/2) / math.Sqrt(n); farthest > most {
		t.Errorf("%s: %.0f values are %.4f from their distribution; at most %.4f is chance", what, n, farthest, most)
	}
}

// alike fails if two samples are farther apart than chance allows.
func alike(t *testing.T, what string, a, b []float64) {
	t.Helper()
	slices.Sort(a)
	slices.Sort(b)
	n, m := float64(len(a)), float64(len(b))
	farthest := stat.KolmogorovSmirnov(a, nil, b, nil)
	if most := math.Sqrt(-math.Log(level/2)/2) * math.Sqrt((n+m)/(n*m)); farthest > most {
		t.Errorf("%s: samples of %.0f and %.0f are %.4f apart; at most %.4f is chance", what, n, m, farthest, most)
	}
}

// asOften fails if counts differ from the expected ones by more than chance allows (chi-square).
func asOften(t *testing.T, what string, counts, expected []float64) {
	t.Helper()
	if most := (distuv.ChiSquared{K: float64(len(counts) - 1)}).Quantile(1 - level); stat.ChiSquare(counts, expected) > most {
		t.Errorf("%s: counts %.0f, expected %.1f", what, counts, expected)
	}
}

// gammaDensity is written out so that the tests do not depend on the library that draws.
func gammaDensity(x, shape, scale float64) float64 {
	g, _ := math.Lgamma(shape)
	return math.Exp((shape-1)*math.Log(x) - x/scale - shape*math.Log(scale) - g)
}

// gammaCDF integrates the density.
func gammaCDF(x, shape, scale float64) float64 {
	return cumulated(x, func(x float64) float64 { return gammaDensity(x, shape, scale) })(x)
}

// cumulated returns the integral of a density up to a point, which is at most most.
func cumulated(most float64, density func(x float64) float64) func(x float64) float64 {
	const steps = 20_000
	sums := make([]float64, steps+1)
	for i := range steps {
		sums[i+1] = sums[i] + density((float64(i)+0.5)*most/steps)*most/steps
	}
	return func(x float64) float64 {
		place := min(max(x/most, 0), 1) * steps
		i := min(int(place), steps-1)
		return sums[i] + (place-float64(i))*(sums[i+1]-sums[i])
	}
}

func TestTheModelsSizesAreSerialOrPowersOfTwoAsOftenAsItSays(t *testing.T) {
	s := workload.Typeless().Sizes
	// The power has two stages, each uniform.
	powers := func(from, to float64) float64 {
		within := func(low, high float64) float64 { return max(0, min(to, high)-max(from, low)) / (high - low) }
		return 0.86*within(0.8, 4.5) + 0.14*within(4.5, 7)
	}
	const jobs, sizes = 200_000, 128
	expected := make([]float64, sizes)
	for i := range expected {
		size := float64(i + 1)
		// A fifth of the sizes is neither serial nor a power of two, and is rounded to a whole
		// number.
		expected[i] = jobs * (1 - 0.244 - 0.576) * powers(math.Log2(size-0.5), math.Log2(size+0.5))
		if power := math.Log2(size); power == math.Trunc(power) {
			expected[i] += jobs * 0.576 * powers(power-0.5, power+0.5)
		}
		if size == 1 {
			expected[i] += jobs * 0.244
		}
	}
	counts, chance := make([]float64, sizes), seeded(1)
	for range jobs {
		counts[s.Draw(chance)-1]++
	}
	asOften(t, "sizes", counts, expected)
}

func TestSizesForAMachineReachFromOneProcessorToAllOfThem(t *testing.T) {
	for _, processors := range []int{2, 5, 256, 1000} {
		s, chance := workload.Typeless().Sizes.On(processors), seeded(2)
		least, most := processors, 1
		for range 20_000 {
			size := s.Draw(chance)
			least, most = min(least, size), max(most, size)
		}
		if most < processors*9/10 || most > processors || least != 1 {
			t.Errorf("on %d processors sizes are from %d to %d", processors, least, most)
		}
	}
}

func TestTheModelsRunTimesAreHyperGammaByTheirSize(t *testing.T) {
	for i, c := range []struct {
		model workload.LublinRuntimes
		size  int
		first float64 // the probability of the first gamma
	}{
		{workload.Typeless().Runtimes, 1, 0.78 - 0.0054},
		{workload.Typeless().Runtimes, 64, 0.78 - 0.0054*64},
		{workload.Typeless().Runtimes, 1000, 0},
		{batch().Runtimes, 16, 0.6986 - 0.003*16},
		{interactive().Runtimes, 4, 0.9156 - 0.0118*4},
	} {
		m := c.model
		mixed := cumulated(12, func(x float64) float64 { // longer ones are drawn again
			return c.first*gammaDensity(x, m.Shape1, m.Scale1) + (1-c.first)*gammaDensity(x, m.Shape2, m.Scale2)
		})
		cdf := func(seconds float64) float64 { return mixed(math.Log(seconds)) / mixed(12) }
		sample, chance := make([]float64, 20_000), seeded(uint64(3+i))
		for i := range sample {
			sample[i] = float64(m.Draw(chance, c.size))
		}
		// The model cuts them to whole seconds.
		sound(t, fmt.Sprintf("run times of size %d", c.size), sample, func(seconds float64) float64 { return cdf(seconds + 1) })
		for _, seconds := range []float64{1.5, 60, 900, 10_000, 100_000} {
			if got, want := m.CDF(seconds, float64(c.size)), cdf(seconds); math.Abs(got-want) > 1e-4 {
				t.Errorf("size %d: a run time up to %v s has the likelihood %v, want %v", c.size, seconds, got, want)
			}
		}
		if m.CDF(0, 1) != 0 || m.CDF(1e9, 1) != 1 {
			t.Errorf("run times are not between 1 s and two days")
		}
	}
}

func TestGapsAtAMeanHourAreExponentialsOfGamma(t *testing.T) {
	for _, kind := range []workload.Lublin{workload.Typeless(), batch(), interactive()} {
		p, a := kind.Arrivals.Process(seeded(11)), kind.Arrivals
		arrivals := make([]float64, 20_000)
		for i := range arrivals {
			arrivals[i] = p.Next()
		}
		sound(t, "gaps "+kind.Name, meanGaps(a, arrivals), gapCDF(a))
	}
}

// meanGaps removes the daily cycle and returns the logarithms of the gaps.
func meanGaps(a workload.LublinArrivals, arrivals []float64) []float64 {
	profile := a.Profile()
	before := make([]float64, len(profile)+1) // the sum of the weights before each half hour
	for i, w := range profile {
		before[i+1] = before[i] + w
	}
	gaps, last := make([]float64, len(arrivals)), 0.0
	for i, at := range arrivals {
		halfHours := at / 1800
		day := math.Floor(halfHours / 48)
		bucket := int(halfHours - 48*day)
		paid := 48*day + before[bucket] + profile[bucket]*(halfHours-math.Floor(halfHours))
		gaps[i], last = math.Log(max(1800*(paid-last), 1e-9)), paid
	}
	return gaps
}

// gapCDF returns the probability that the logarithm of a gap is at most x; those above 13 are
// drawn again.
func gapCDF(a workload.LublinArrivals) func(x float64) float64 {
	sum := cumulated(13, func(x float64) float64 { return gammaDensity(x, a.Shape*a.RushToAll, a.Scale) })
	return func(x float64) float64 { return sum(x) / sum(13) }
}

func TestMoreJobsComeInBusyHalfHours(t *testing.T) {
	a := workload.Typeless().Arrivals
	profile := a.Profile()
	sum := 0.0
	for i, w := range profile {
		sum += w
		// Half hours count from 1, and those before five o'clock belong to the previous day.
		n := float64(i + 1)
		if n < 11 {
			n += 48
		}
		if i%6 == 0 {
			all := gammaCDF(58.5, a.DayShape, a.DayScale) - gammaCDF(10.5, a.DayShape, a.DayScale)
			want := 48 * (gammaCDF(n+0.5, a.DayShape, a.DayScale) - gammaCDF(n-0.5, a.DayShape, a.DayScale)) / all
			if math.Abs(w-want) > 1e-4 {
				t.Errorf("half hour %d has the weight %v, want %v", i, w, want)
			}
		}
	}
	if math.Abs(sum-48) > 1e-9 {
		t.Errorf("the weights add up to %v", sum)
	}

	const days = 3000
	counts := make([][48]float64, days)
	for p := a.Process(seeded(21)); ; {
		at := p.Next()
		if at >= days*86400 {
			break
		}
		counts[int(at)/86400][int(at)%86400/1800]++
	}
	var all []float64
	for _, day := range counts {
		total := 0.0
		for _, n := range day {
			total += n
		}
		all = append(all, total)
	}
	for i, w := range profile {
		excess := make([]float64, days) // of each day: the jobs above the half hour's share
		for d, day := range counts {
			excess[d] = day[i] - all[d]*w/48
		}
		// At this level, none of the 48 half hours should be outside.
		mean, deviation := stat.MeanStdDev(excess, nil)
		if z := math.Abs(mean) / (deviation / math.Sqrt(days)); z > distuv.UnitNormal.Quantile(1-level/2/48) {
			t.Errorf("in half hour %d there are %+.3f jobs a day more than its share", i, mean)
		}
	}
	// The mean of an exponential of gamma, cut at 13, has a closed form.
	shape := a.Shape * a.RushToAll
	want := math.Pow(1-a.Scale, -shape) * gammaCDF(13, shape, a.Scale/(1-a.Scale)) / gammaCDF(13, shape, a.Scale)
	if got := a.MeanGap(); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("the mean gap is %v s, want %v s", got, want)
	}
	mean, deviation := stat.MeanStdDev(all, nil)
	if z := math.Abs(mean-86400/want) / (deviation / math.Sqrt(days)); z > distuv.UnitNormal.Quantile(1-level/2) {
		t.Errorf("there are %.1f jobs a day, want %.1f", mean, 86400/want)
	}
	slow := a
	slow.Pace = 2
	if got := slow.MeanGap(); math.Abs(got/a.MeanGap()-2) > 1e-9 {
		t.Errorf("at half the pace the mean gap is %v s", got)
	}
}

// A draw for a gap of any length spans a bounded number of half hours.
func TestArrivalsGoOnWhateverTheirPaceIs(t *testing.T) {
	for _, pace := range []float64{1e-300, 1e9, 1e300, math.Inf(1), math.NaN(), -1} {
		a := workload.Typeless().Arrivals
		a.Pace = pace
		p, last := a.Process(seeded(51)), 0.0
		for range 1000 {
			at := p.Next()
			if pace > 0 && (at < last || math.IsInf(at, 0)) {
				t.Fatalf("at the pace %v one comes at %v after one at %v", pace, at, last)
			}
			last = at
		}
	}
}

func TestPoissonArrivalsHaveExponentialGaps(t *testing.T) {
	p, last := workload.NewPoisson(seeded(31), 40), 0.0
	gaps := make([]float64, 50_000)
	for i := range gaps {
		at := p.Next()
		gaps[i], last = at-last, at
	}
	sound(t, "gaps", gaps, func(x float64) float64 { return 1 - math.Exp(-x/40) })
}

// lublin returns all jobs of a model.
func lublin(t *testing.T, seed uint64, jobs int, kinds ...workload.Lublin) []workload.Job {
	t.Helper()
	s, err := workload.NewLublin(seeded(seed), jobs, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	made := rest(t, s)
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	return made
}

func TestJobsOfTheModelComeInOrderAndFollowFromTheSeed(t *testing.T) {
	jobs := lublin(t, 1, 3000, batch(), interactive())
	if len(jobs) != 3000 {
		t.Fatalf("%d jobs", len(jobs))
	}
	count := map[string]float64{}
	for i, j := range jobs {
		count[j.User]++
		if i > 0 && j.Submit < jobs[i-1].Submit {
			t.Fatalf("job %s comes at %d, after one at %d", j.ID, j.Submit, jobs[i-1].Submit)
		}
		if j.Size < 1 || j.Size > 128 || j.Runtime < 1 || j.Runtime > 162_754 || j.Reserved || j.Waited != -1 {
			t.Fatalf("%+v", j)
		}
	}
	if want := batch().Arrivals.MeanGap() / interactive().Arrivals.MeanGap(); count["interactive"]/count["batch"] < want/2 || count["interactive"]/count["batch"] > want*2 {
		t.Errorf("%v; want %.1f interactive jobs for one of batch", count, want)
	}
	if !reflect.DeepEqual(jobs, lublin(t, 1, 3000, batch(), interactive())) {
		t.Error("the same seed makes other jobs")
	}
	if reflect.DeepEqual(jobs, lublin(t, 2, 3000, batch(), interactive())) {
		t.Error("another seed makes the same jobs")
	}
}

func TestAModelThatMakesNoJobsIsRefused(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*workload.Lublin)
	}{
		{"serial", func(l *workload.Lublin) { l.Sizes.Serial = -0.1 }},
		{"power_of_two", func(l *workload.Lublin) { l.Sizes.PowerOfTwo = 0.9 }},
		{"low_share", func(l *workload.Lublin) { l.Sizes.LowShare = math.NaN() }},
		{"medium", func(l *workload.Lublin) { l.Sizes.Medium = 8 }},
		{"medium", func(l *workload.Lublin) { l.Sizes.High = 40 }},
		{"shape_1", func(l *workload.Lublin) { l.Runtimes.Shape1 = 0 }},
		{"scale_2", func(l *workload.Lublin) { l.Runtimes.Scale2 = math.Inf(1) }},
		{"scale_2", func(l *workload.Lublin) { l.Runtimes.Scale2 = 1 }}, // e^312 s
		{"per_node", func(l *workload.Lublin) { l.Runtimes.PerNode = math.NaN() }},
		{"scale", func(l *workload.Lublin) { l.Arrivals.Scale = 10 }},
		{"pace", func(l *workload.Lublin) { l.Arrivals.Pace = -1 }},
		{"day_scale", func(l *workload.Lublin) { l.Arrivals.DayScale = 0.01 }},
	} {
		l := workload.Typeless()
		c.change(&l)
		if _, err := workload.NewLublin(seeded(1), 1, l); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	if _, err := workload.NewLublin(seeded(1), 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("no kinds: %v", err)
	}
}

// The authors of the model made the file with their program, for 256 processors, without types.
func TestTheModelMakesWhatItsAuthorsProgramMakes(t *testing.T) {
	f, err := workload.Open(filepath.Join(logs(t), "synthetic", "lublin_256.swf.gz"), workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := rest(t, f)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	model := workload.Typeless()
	model.Sizes = model.Sizes.On(256)
	ours := lublin(t, 41, 40_000, model)
	of := func(jobs []workload.Job, value func(workload.Job) (float64, bool)) (values []float64) {
		for _, j := range jobs {
			if v, ok := value(j); ok {
				values = append(values, v)
			}
		}
		return values
	}
	size := func(j workload.Job) (float64, bool) { return float64(j.Size), true }
	alike(t, "sizes", of(theirs, size), of(ours, size))
	submit := func(j workload.Job) (float64, bool) { return float64(j.Submit), true }
	alike(t, "gaps", meanGaps(model.Arrivals, of(theirs, submit)), meanGaps(model.Arrivals, of(ours, submit)))
	for _, class := range [][2]int{{1, 1}, {2, 8}, {9, 32}, {33, 256}} {
		runtime := func(j workload.Job) (float64, bool) {
			return float64(j.Runtime), class[0] <= j.Size && j.Size <= class[1]
		}
		alike(t, fmt.Sprintf("run times of sizes %v", class), of(theirs, runtime), of(ours, runtime))
	}
}
