// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// wish is a request for a reservation: virtual machines with one image, for a span. Times are
// seconds since the beginning of the experiment.
type wish struct {
	submitted, start, duration int64
	vms                        int
	image                      int
}

// work is a best-effort request: virtual machines with one image, each for duration seconds.
type work struct {
	submitted, duration int64
	vms                 int
	image               int
}

// The reservations of the accuracy traces have two to four virtual machines for half an hour, with
// one of six images. In two hours about as many start as the channel can serve (thesis, table 8.1).
const (
	accuracyDuration = 1800
	accuracyImages   = 6
)

// accuracyTrace is one of the two traces of the accuracy experiment.
type accuracyTrace struct {
	name     string
	requests int
	// window is the length in seconds of the windows that contain all starts, and every the time
	// from one window to the next. every 0 means that starts may lie anywhere.
	every, window int64
}

var accuracyTraces = []accuracyTrace{
	{name: "Trace I", requests: 36},
	{name: "Trace II", requests: 35, every: 900, window: 100},
}

// How long before its start a reservation is requested, in multiples of the estimated duration of
// its transfers: as in the "trace I" example of the thesis' program.
const leastLead, mostLead = 1.0, 4.5

// slack is by how many seconds a start is later than necessary at most.
const slack = 10

// wishes generates the requests of the trace, sorted by start. The thesis draws many, and accepts
// one after the other those whose transfers can follow all earlier ones; here each starts when its
// transfers end, or in the next window. estimate is the planner's estimate for one image, in
// seconds.
func (t accuracyTrace) wishes(chance *rand.Rand, estimate int64) (all []wish) {
	busy := int64(0) // when the channel becomes free, by the estimates
	for window := t.every; len(all) < t.requests; {
		w := wish{vms: 2 + chance.IntN(3), image: chance.IntN(accuracyImages), duration: accuracyDuration}
		transfers := int64(w.vms) * estimate
		w.start = busy + transfers + 1 + chance.Int64N(slack)
		if t.every > 0 {
			w.start = max(w.start, window)
			if w.start >= window+t.window {
				window += t.every
				continue
			}
			w.start += chance.Int64N(min(slack, window+t.window-w.start))
		}
		busy += transfers
		lead := leastLead + (mostLead-leastLead)*chance.Float64()
		w.submitted = max(0, w.start-int64(lead*float64(transfers)))
		all = append(all, w)
	}
	return all
}

// The reservations of the disk experiment are all known at the beginning (thesis, section 8.1).
const (
	diskRequests = 94
	tenHours     = int64(36000)
)

// diskTrace returns the reservations of a run, sorted by start. Each has from one virtual machine
// to as many as there are slots.
func (o *Options) diskTrace(run int) []wish {
	chance := sim.Chance(o.Seed, Disk, run)
	wishes := make([]wish, diskRequests)
	for i := range wishes {
		wishes[i] = wish{duration: o.reservationLength(chance), vms: 1 + chance.IntN(o.slots())}
	}
	spread(wishes, chance)
	return wishes
}

// spread distributes the starts over ten hours, on whole minutes. As in the program that generated
// the thesis' traces, the time from one start to the next is uniform between 0 and twice the mean.
func spread(wishes []wish, chance *rand.Rand) {
	mean, at := float64(tenHours)/float64(len(wishes)), 0.0
	for i := range wishes {
		at += 2 * mean * chance.Float64()
		wishes[i].start = 60 * (1 + int64(at/60))
	}
}

// reservationLength draws a length in seconds: whole minutes, from half to one and a half times the
// mean.
func (o *Options) reservationLength(chance *rand.Rand) int64 {
	mean := o.ReservationLength / 60
	return 60 * max(1, mean-mean/2+chance.Int64N(2*(mean/2)+1))
}

// The images of the mixes: seven receive a tenth of the requests each, thirty a hundredth each.
const oftenUsed, seldomUsed = 7, 30

func mixedImage(chance *rand.Rand) int {
	if n := chance.IntN(100); n < 10*oftenUsed {
		return n / 10
	}
	return oftenUsed + chance.IntN(seldomUsed)
}

// workload is all requests of a mix.
type workload struct {
	wishes []wish
	works  []work
}

// images returns the number of virtual machines; each needs one image.
func (w *workload) images() (n int) {
	for _, r := range w.wishes {
		n += r.vms
	}
	for _, b := range w.works {
		n += b.vms
	}
	return n
}

// worksEvery is the time between best-effort requests, in seconds.
const worksEvery = 300

// workload generates the requests of a run of a mix: work of 10 to 10.5 hours for all slots. A
// share of it, which the mix determines, is best-effort requests at equal intervals. The rest is
// reservations whose starts are distributed over ten hours and which are known at the beginning
// (thesis, section 8.3).
func (o *Options) workload(m mix, run int) *workload {
	chance := sim.Chance(o.Seed, Mixes, m.String(), run)
	all := int64(float64(tenHours) * (1 + 0.05*chance.Float64()) * float64(o.slots()))
	bestEffort := all * int64(m.BestEffort) / 100
	w := &workload{wishes: o.wishes(m, all-bestEffort, chance)}
	requests := tenHours / worksEvery
	vms := bestEffort / meanSeconds[m.Length]
	for i := range requests {
		n := int((i+1)*vms/requests - i*vms/requests)
		if n == 0 {
			continue
		}
		w.works = append(w.works, work{submitted: i * worksEvery, duration: aboutSeconds(meanSeconds[m.Length], chance), vms: n, image: mixedImage(chance)})
	}
	return w
}

// aboutSeconds draws a duration whose standard deviation is a fifth of the mean, as in an example
// of the thesis' program (traces/exampletrace.desc).
func aboutSeconds(mean int64, chance *rand.Rand) int64 {
	return max(mean/4, int64(math.Round(float64(mean)*(1+0.2*chance.NormFloat64()))))
}

// wishes draws reservations of a mix until their virtual machines sum up to that many
// machine-seconds.
func (o *Options) wishes(m mix, seconds int64, chance *rand.Rand) (wishes []wish) {
	quarter := slices.Index(widths, m.Width)
	least, most := quarter*o.slots()/len(widths)+1, (quarter+1)*o.slots()/len(widths)
	for seconds > 0 {
		w := wish{duration: o.reservationLength(chance), vms: least + chance.IntN(most-least+1), image: mixedImage(chance)}
		wishes = append(wishes, w)
		seconds -= w.duration * int64(w.vms)
	}
	spread(wishes, chance)
	return wishes
}

// reuseTrace is one of the two traces of the reuse experiment.
type reuseTrace struct {
	name string
	// weights are the relative frequencies with which the images are requested.
	weights []int
}

var reuseTraces = []reuseTrace{
	{"Trace III", []int{1, 1, 1, 1, 1, 1}},
	{"Trace IV", []int{55, 27, 6, 5, 3, 3}}, // table 8.2
}

// reuseFlurry is when the 62 requests of the reuse experiment arrive: the number of requests in
// each interval of time, as in figure 8.5.
var reuseFlurry = []struct {
	from, to int64
	requests int
}{{0, 740, 2}, {740, 825, 37}, {1500, 2450, 9}, {2690, 2900, 10}, {3700, 4700, 4}}

// reuseSizes are the numbers of virtual machines of these requests, 144 in all, which follows from
// the thesis' 86.4 GB.
var reuseSizes = []struct{ vms, requests int }{{2, 58}, {4, 3}, {16, 1}}

// The bounds of their durations, in seconds; the mean is 53 s.
const shortestReuse, longestReuse = 16, 90

// works returns the requests of the trace, sorted by arrival.
func (t reuseTrace) works(seed uint64, run int) (works []work) {
	chance := sim.Chance(seed, Reuse, run) // the same in all traces, except for the images
	var sizes []int
	for _, s := range reuseSizes {
		sizes = append(sizes, slices.Repeat([]int{s.vms}, s.requests)...)
	}
	chance.Shuffle(len(sizes), func(i, k int) { sizes[i], sizes[k] = sizes[k], sizes[i] })
	for _, phase := range reuseFlurry {
		for range phase.requests {
			works = append(works, work{
				submitted: phase.from + chance.Int64N(phase.to-phase.from),
				duration:  shortestReuse + chance.Int64N(longestReuse-shortestReuse+1),
				vms:       sizes[len(works)], image: pick(chance, t.weights),
			})
		}
	}
	slices.SortStableFunc(works, func(a, b work) int { return cmp.Compare(a.submitted, b.submitted) })
	return works
}

// pick returns an index with a probability proportional to its weight.
func pick(chance *rand.Rand, weights []int) int {
	all := 0
	for _, w := range weights {
		all += w
	}
	n := chance.IntN(all)
	for i, w := range weights {
		if n < w {
			return i
		}
		n -= w
	}
	return len(weights) - 1
}

// imageID returns the id of an image that several users may share, ownImage that of an image for a
// single one: without reuse every request has its own images.
func imageID(n int) string { return "image-" + strconv.Itoa(n) }

func ownImage(n int, owner string) string { return fmt.Sprintf("image-%d-of-%s", n, owner) }
