// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	hour = 3600
	day  = 24 * hour
)

// The kinds of instances that a tally distinguishes.
const (
	normal = iota
	spot   // preemptible
	kinds
)

func kindOf(i *inventory.Instance) int {
	if i.Preemptible {
		return spot
	}
	return normal
}

// tally counts what happens in a cloud. byHour covers all hours from begin on, everything else only
// the measured period from warm on.
type tally struct {
	begin, warm, until span.Instant
	// costs are the costs that are summed up for all victims, whichever cost chooses them. unpaid
	// is the cost of the last, incomplete period, which is not charged.
	costs  []preemption.Cost
	unpaid preemption.Cost

	at      span.Instant // held is counted until then
	held    [kinds]amount
	sum     [kinds]amount    // times seconds
	byHour  [kinds][]float64 // VCPU-seconds in each hour since begin
	asked   [kinds]int64     // requests
	refusal [kinds]int64

	makers, victims   int64 // requests with victims, and those victims
	wrong             int64 // victims that are not preemptible
	lost              amount
	lostUnpaid        float64   // VCPU-seconds
	charged           []float64 // what the victims cost, by costs
	finished, evicted []int64   // preemptible instances that began after warm, by the hours that they ran
}

// amount is an amount of resources, or of resources times seconds.
type amount struct{ vcpus, memory float64 }

func (a *amount) add(i *inventory.Instance, times float64) {
	a.vcpus += float64(i.Holds["VCPU"]) * times
	a.memory += float64(i.Holds["MEMORY_MB"]) * times
}

// newTally returns a tally of that many days, which measures from the end of the warm-up days on.
func newTally(begin span.Instant, days, warmUp int, costs []preemption.Cost, unpaid preemption.Cost) *tally {
	t := &tally{begin: begin, warm: begin.Add(day * int64(warmUp)), until: begin.Add(day * int64(days)), at: begin, costs: costs, unpaid: unpaid}
	t.charged = make([]float64, len(costs))
	hours := 24*days + 1
	t.finished, t.evicted = make([]int64, hours), make([]int64, hours)
	for k := range t.byHour {
		t.byHour[k] = make([]float64, 24*days)
	}
	return t
}

// advance adds what the instances used since the last event.
func (t *tally) advance(now span.Instant) {
	now = min(now, t.until)
	for t.at < now {
		h := int64(t.at-t.begin) / hour
		next := min(now, t.begin.Add((h+1)*hour))
		seconds := float64(next - t.at)
		for k, held := range t.held {
			t.byHour[k][h] += held.vcpus * seconds
			if t.at >= t.warm { // warm is a full hour
				t.sum[k].vcpus += held.vcpus * seconds
				t.sum[k].memory += held.memory * seconds
			}
		}
		t.at = next
	}
}

// counts reports whether now is in the measured period.
func (t *tally) counts(now span.Instant) bool { return now >= t.warm && now < t.until }

func (t *tally) refused(now span.Instant, i *inventory.Instance) {
	if t.counts(now) {
		t.asked[kindOf(i)]++
		t.refusal[kindOf(i)]++
	}
}

// placed counts a placed instance and the number of its victims.
func (t *tally) placed(now span.Instant, i *inventory.Instance, victims int) {
	t.advance(now)
	t.held[kindOf(i)].add(i, 1)
	if t.counts(now) {
		t.asked[kindOf(i)]++
		t.victims += int64(victims)
		t.makers += int64(min(victims, 1))
	}
}

func (t *tally) left(now span.Instant, i *inventory.Instance) {
	t.advance(now)
	t.held[kindOf(i)].add(i, -1)
	if !i.Preemptible {
		return
	}
	t.live(now, i, t.finished)
}

// gone counts the eviction of an instance.
func (t *tally) gone(now span.Instant, i *inventory.Instance) {
	t.advance(now)
	t.held[kindOf(i)].add(i, -1)
	t.live(now, i, t.evicted)
	if !i.Preemptible {
		t.wrong++
	}
	if !t.counts(now) {
		return
	}
	t.lost.add(i, float64(now-i.Launched))
	t.lostUnpaid += float64(i.Holds["VCPU"] * t.unpaid.Of(i, now))
	for n, cost := range t.costs {
		t.charged[n] += float64(cost.Of(i, now))
	}
}

func (t *tally) live(now span.Instant, i *inventory.Instance, lives []int64) {
	if t.counts(i.Launched) {
		lives[int64(min(now, t.until)-i.Launched)/hour]++
	}
}

// survival returns, for each number of hours, the share of the preemptible instances that would not
// have been evicted before they had run that long, if none ended by itself (the estimate of Kaplan
// and Meier 1958). evicted and finished count instances by the hours that they ran; finished are
// those that ended by themselves or still run.
func survival(finished, evicted []int64) []float64 {
	atRisk := int64(0)
	for h := range finished {
		atRisk += finished[h] + evicted[h]
	}
	left := make([]float64, 0, len(finished)+1)
	left = append(left, 1)
	for h := range finished {
		if atRisk == 0 {
			break
		}
		left = append(left, left[h]*(1-float64(evicted[h])/float64(atRisk)))
		atRisk -= finished[h] + evicted[h]
	}
	return left
}
