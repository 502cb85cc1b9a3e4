// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"slices"
)

// degradation is by how many percent an algorithm's yield is below that of the best algorithm. mean
// and most are over the instances that the algorithm has solved (erratum E002-5). all is the mean
// over the instances that any algorithm has solved; it counts 100 % for those that this algorithm
// has not.
type degradation struct {
	mean, most, all float64
	solved          int
	above           map[float64]int // how many instances are further from the best, by percent
}

// degradations compares algorithms with the best of them on each instance; the keys are the names
// of the algorithms.
func degradations(trials []trial, algorithms []string) map[string]degradation {
	found := map[string]degradation{}
	any := where(trials, func(t trial) bool {
		return slices.ContainsFunc(algorithms, func(name string) bool { return t.outcomes[name].solved })
	})
	for _, name := range algorithms {
		d := degradation{above: map[float64]int{3: 0, 10: 0}}
		for _, t := range any {
			o := t.outcomes[name]
			if !o.solved {
				continue
			}
			best := 0.0
			for _, other := range algorithms {
				best = max(best, t.outcomes[other].yield)
			}
			lost := 100 * (best - o.yield) / best
			d.solved++
			d.mean += lost
			d.most = max(d.most, lost)
			for limit := range d.above {
				if lost > limit {
					d.above[limit]++
				}
			}
		}
		if d.solved > 0 {
			d.all = (d.mean + 100*float64(len(any)-d.solved)) / float64(len(any))
			d.mean /= float64(d.solved)
		}
		found[name] = d
	}
	return found
}

// measure returns a quantity of an instance and an algorithm; ok is false if it is undefined.
type measure func(t trial, name string) (value float64, ok bool)

// of returns the outcome of an algorithm. The outcome of the bound always counts as solved.
func (t trial) of(name string) outcome {
	if name == bound {
		return outcome{solved: true, yield: t.bound, average: t.bound}
	}
	return t.outcomes[name]
}

func minYield(t trial, name string) (float64, bool) {
	o := t.of(name)
	return o.yield, o.solved
}

// averageYield returns the average yield that the algorithm with that name has reached; false if it
// found no placement, and for the bound, which is no placement.
func averageYield(t trial, name string) (float64, bool) {
	o := t.of(name)
	return o.average, o.solved && name != bound
}

// failed returns 1 if the algorithm with that name found no placement, else 0; false for the bound.
func failed(t trial, name string) (float64, bool) {
	if t.of(name).solved {
		return 0, name != bound
	}
	return 1, name != bound
}

func seconds(t trial, name string) (float64, bool) { return t.of(name).seconds, name != bound }

// mean returns the mean of a measure over the n instances for which it is defined.
func mean(trials []trial, m measure, name string) (value float64, n int) {
	sum := 0.0
	for _, t := range trials {
		if v, ok := m(t, name); ok {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return sum / float64(n), n
}

// ratio returns the mean of a measure for the algorithm name divided by its mean for the algorithm
// other, over the instances that both have solved.
func ratio(trials []trial, m measure, name, other string) float64 {
	both := where(trials, func(t trial) bool { return t.of(name).solved && t.of(other).solved })
	a, _ := mean(both, m, name)
	b, n := mean(both, m, other)
	if n == 0 || b == 0 {
		return 0
	}
	return a / b
}

func where(trials []trial, is func(t trial) bool) (list []trial) {
	for _, t := range trials {
		if is(t) {
			list = append(list, t)
		}
	}
	return list
}

// slackFrom and slackOf return the instances with at least, or exactly, a slack. Slacks are
// multiples of 0.1.
func slackFrom(trials []trial, least float64) []trial {
	return where(trials, func(t trial) bool { return t.Slack > least-0.05 })
}

func slackOf(trials []trial, slack float64) []trial {
	return where(trials, func(t trial) bool { return t.Slack > slack-0.05 && t.Slack < slack+0.05 })
}

// failures counts the instances that an algorithm has not solved.
func failures(trials []trial, name string) int {
	return len(where(trials, func(t trial) bool { return !t.of(name).solved }))
}

// along returns the distinct values of a parameter, sorted.
func along(trials []trial, of func(t trial) float64) (values []float64) {
	for _, t := range trials {
		if !slices.Contains(values, of(t)) {
			values = append(values, of(t))
		}
	}
	slices.Sort(values)
	return values
}
