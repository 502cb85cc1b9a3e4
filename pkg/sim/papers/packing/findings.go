// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

func finding(claim string, verdict sim.Verdict, within, seen, because string) sim.Finding {
	return sim.Finding{Claim: claim, Verdict: verdict, Within: within, Seen: seen, Because: because}
}

// findings compares the statements of sections 4 and 5 of the paper with the results.
func (r *results) findings() []sim.Finding {
	all := slices.Concat(r.orders(), r.smallSet())
	if r.Large > 0 {
		all = append(all, r.largeSet()...)
	}
	if r.Parallel > 0 {
		all = append(all, r.parallelSet()...)
	}
	return all
}

// orders returns the statements on Tables 1 and 2.
func (r *results) orders() (list []sim.Finding) {
	for _, one := range []struct{ name, table, paper string }{{smallScaled, "Table 1", "1.06"}, {largeScaled, "Table 2", "0.09"}} {
		trials := r.trials[one.name]
		if len(trials) == 0 {
			continue
		}
		d := degradations(trials, mcbs)
		better, among := true, true
		numbers := func(names []string) string {
			var parts []string
			for _, name := range names {
				parts = append(parts, fmt.Sprintf("%s %.2f", strings.ToUpper(name), d[name].mean))
			}
			return strings.Join(parts, ", ") + " %"
		}
		for i, name := range descending {
			if i > 0 {
				better = better && d[descending[i-1]].mean < d[name].mean
			}
			for _, other := range ascending {
				better = better && d[name].mean < d[other].mean
			}
		}
		for i := range ascending[1:] {
			among = among && d[ascending[i]].mean < d[ascending[i+1]].mean
		}
		list = append(list,
			finding(one.table+": the mean degradation is least with MCB8, then MCB5, MCB6 and MCB7, and more with each that sorts ascending.", sim.HeldIf(better), "in that order",
				numbers(descending)+"; "+numbers(ascending)+".", "The means of neighboring algorithms are close, and few instances decide."),
			finding(one.table+": among those that sort ascending it is MCB3, MCB2, MCB1, MCB4.", sim.HeldIf(among), "in that order", numbers(ascending)+".", "As above."),
			finding(fmt.Sprintf("%s: MCB8 loses %s %% in the mean.", one.table, one.paper), sim.HeldIf(lossOf[one.name].holds(d["mcb8"].mean)), lossOf[one.name].String()+" %",
				fmt.Sprintf("%.2f %%, at most %.1f %%; %.2f %% with 100 %% for what it does not solve.", d["mcb8"].mean, d["mcb8"].most, d["mcb8"].all), "The instances are not the paper's."),
		)
	}
	return append(list, r.withFailures()...)
}

// between is the range, both ends included, in which a number must lie for a statement to hold.
type between struct{ least, most float64 }

func (b between) holds(numbers ...float64) bool {
	return !slices.ContainsFunc(numbers, func(n float64) bool { return !(n >= b.least && n <= b.most) })
}

func (b between) String() string {
	if b.least == 0 {
		return fmt.Sprintf("at most %g", b.most)
	}
	return fmt.Sprintf("%g to %g", b.least, b.most)
}

// lossOf is how many percent of the yield MCB8 may lose for a statement to hold, by set. The ranges
// allow for instances that differ from the paper's.
var lossOf = map[string]between{smallScaled: {0.7, 1.5}, largeScaled: {0, 0.19}}

// withFailures compares the means that the paper prints with means in which an instance that the
// algorithm has not solved counts as 100 %.
func (r *results) withFailures() (list []sim.Finding) {
	for _, one := range []struct{ set, table, says string }{
		{smallScaled, "Table 1", "those that sort ascending lose 12 to 17 %"}, {largeScaled, "Table 2", "those that sort ascending lose 4 to 15 %"},
	} {
		trials := r.trials[one.set]
		if len(trials) == 0 {
			continue
		}
		d := degradations(trials, mcbs)
		near, parts := true, []string{}
		for _, name := range ascending {
			near = near && math.Abs(d[name].all/printed[one.set][name].mean-1) < 0.2
			parts = append(parts, fmt.Sprintf("%s %.2f (%.2f)", strings.ToUpper(name), d[name].all, printed[one.set][name].mean))
		}
		list = append(list, finding(fmt.Sprintf("%s: %s in the mean.", one.table, one.says), sim.HeldIf(near), "each within a fifth of the paper's",
			strings.Join(parts, ", ")+" %, in brackets the paper's, if an instance that an algorithm does not solve and another does counts as 100 %. Over what each has solved they are as above, about half.",
			"Which instances are not solved is chance for the most part."))
	}
	return list
}

// smallSet returns the statements of section 4.2.2.
func (r *results) smallSet() []sim.Finding {
	t := r.trials[smallScaled]
	aboveExact, aboveMCB8, aboveGreedy := between{2.5, 5.5}, between{1, 3}, between{10, 14}
	overExact, overMCB8 := 100*(ratio(t, minYield, bound, exact)-1), 100*(ratio(t, minYield, exact, "mcb8")-1)
	var over []string
	least, most := 100.0, 0.0
	for _, name := range greedies {
		better := 100 * (ratio(t, minYield, exact, name) - 1)
		least, most = min(least, better), max(most, better)
		over = append(over, fmt.Sprintf("%s %.1f", strings.ToUpper(name), better))
	}
	feasible := where(t, func(t trial) bool { return !t.outcomes[exact].infeasible })
	d := degradations(feasible, mcbs)["mcb8"]
	return []sim.Finding{
		finding("The bound is about 4 % above the exact solution in the mean.", sim.HeldIf(aboveExact.holds(overExact)), aboveExact.String()+" %", fmt.Sprintf("%.1f %%.", overExact), "The instances are not the paper's."),
		finding("The exact solution is about 2 % better than MCB8.", sim.HeldIf(aboveMCB8.holds(overMCB8)), aboveMCB8.String()+" %", fmt.Sprintf("%.1f %%.", overMCB8), "The instances are not the paper's."),
		finding("The exact solution is about 11 to 13 % better than the greedy algorithms.", sim.HeldIf(aboveGreedy.holds(least, most)), aboveGreedy.String()+" %", "Than "+strings.Join(over, ", ")+" %.", "The instances are not the paper's."),
		finding("Where there is a placement, GB and SGB find one.", sim.HeldIf(failures(feasible, "gb")+failures(feasible, "sgb") == 0), "always",
			fmt.Sprintf("Of %d instances %d have none; GB fails on %d others, SGB on %d.", len(t), len(t)-len(feasible), failures(feasible, "gb"), failures(feasible, "sgb")), ""),
		r.unplaced(t, feasible),
		finding("MCB8 is more than 3 % from the best MCB on 155 of 1,379 instances, and more than 10 % on 19.", sim.HeldIf(near(d.above[3], d.solved, 155./1379) && near(d.above[10], d.solved, 19./1379)), "half to twice as often",
			fmt.Sprintf("On %d and %d of %d.", d.above[3], d.above[10], d.solved), "The instances are not the paper's."),
		r.rounding(t),
	}
}

// unplaced returns the statement on the instances that have no placement, and on those for which a
// placement exists and an algorithm finds none. Its ranges assume as many instances as in the
// paper.
func (r *results) unplaced(t, feasible []trial) sim.Finding {
	none, byMCB8, bySG := between{45, 75}, between{0, 5}, between{8, 30}
	of := func(n int) float64 { return float64(n) * 1440 / float64(max(1, len(t))) }
	without, mcb8, sg := len(t)-len(feasible), failures(feasible, "mcb8"), failures(feasible, "sg")
	return finding(
		"60 of 1,440 instances have no placement; of the others MCB8 fails on 1, SG on 15.",
		sim.HeldIf(none.holds(of(without)) && byMCB8.holds(of(mcb8)) && bySG.holds(of(sg))),
		fmt.Sprintf("of 1,440 %v, %v, %v", none, byMCB8, bySG),
		fmt.Sprintf("%d of %d have none; MCB8 fails on %d, SG on %d. Where the memory is drawn and not scaled %s.", without, len(t), mcb8, sg, r.drawnFailures()),
		"The instances are not the paper's.",
	)
}

// near reports whether count is between half and twice the given share of all.
func near(count, of int, share float64) bool {
	return float64(count) > share*float64(of)/2 && float64(count) < 2*share*float64(of)
}

func (r *results) drawnFailures() string {
	t := r.trials[smallDrawn]
	feasible := where(t, func(t trial) bool { return !t.outcomes[exact].infeasible })
	return fmt.Sprintf("%d of %d have none, MCB8 fails on %d others, SG on %d, and GB and SGB on %d", len(t)-len(feasible), len(t),
		failures(feasible, "mcb8"), failures(feasible, "sg"), failures(feasible, "gb")+failures(feasible, "sgb"))
}

// rounding returns the statement on RRND and RRNZ.
func (r *results) rounding(t []trial) sim.Finding {
	f := sim.Finding{Claim: "RRND has the highest failure rate, then GR, then RRNZ, and the yields of both are markedly poorer than all others', a little less so RRNZ's."}
	if r.Solver == nil {
		f.Verdict, f.Seen, f.Because = sim.NotChecked, "They need glpsol, which is not there.", "With Debian's package glpk-utils it is checked."
		return f
	}
	rrnd, gr, rrnz := failures(t, "rrnd"), failures(t, "gr"), failures(t, "rrnz")
	a, _ := mean(t, minYield, "rrnd")
	b, _ := mean(t, minYield, "rrnz")
	poorest := 1.0
	for _, name := range greedies {
		y, _ := mean(t, minYield, name)
		poorest = min(poorest, y)
	}
	poorer, order := max(a, b) < poorest, rrnd > gr && gr > rrnz
	f.Verdict, f.Within = sim.HeldIf(poorer && order), "in that order, and both means under all others'"
	if poorer && rrnd > max(gr, rrnz) && !order {
		f.Verdict = sim.HeldInPart
	}
	f.Seen = fmt.Sprintf("RRND fails on %d, GR on %d, RRNZ on %d. The mean smallest yields are %.3f and %.3f, and at least %.3f of the greedy algorithms.", rrnd, gr, rrnz, a, b, poorest)
	f.Because = "The linear program has many best solutions, and which one is rounded is up to the solver and its version."
	return f
}

// largeSet returns the statements of section 4.2.3.
func (r *results) largeSet() []sim.Finding {
	t := r.trials[largeScaled]
	at := func(trials []trial) float64 { return 100 * (1 - ratio(trials, minYield, "mcb8", bound)) }
	ample := at(slackFrom(t, 0.3))
	fifth, tenth := belowAll(slackOf(t, 0.2), "mcb8"), belowAll(slackOf(t, 0.1), "mcb8")
	wide := slackFrom(t, 0.3)
	closeTo, fifthOf, tenthOf, greedy := between{0, 2}, between{3, 13}, between{32, 42}, between{15, 25}
	below, parts := true, []string{}
	higher := true
	yields, _ := mean(wide, averageYield, "mcb8")
	averages := fmt.Sprintf("With slacks from 0.3 on MCB8 %.3f", yields)
	for _, name := range greedies {
		lost := 100 * (1 - ratio(wide, minYield, name, bound))
		below = below && greedy.holds(lost)
		parts = append(parts, fmt.Sprintf("%s %.1f", strings.ToUpper(name), lost))
		average, _ := mean(wide, averageYield, name)
		higher = higher && average > yields
		averages += fmt.Sprintf(", %s %.3f", strings.ToUpper(name), average)
	}
	fails := map[string]int{}
	for _, name := range append([]string{"mcb8"}, greedies...) {
		fails[name] = failures(t, name)
	}
	return []sim.Finding{
		finding("MCB8 is extremely close to the bound for slacks from 0.3 on.", sim.HeldIf(closeTo.holds(ample)), closeTo.String()+" % below it", fmt.Sprintf("%.1f %% below it.", ample), "The instances are not the paper's."),
		finding("MCB8 is 8 % below the bound with a slack of 0.2, and 37 % with 0.1.", sim.HeldIf(fifthOf.holds(fifth) && tenthOf.holds(tenth)), fmt.Sprintf("%v and %v %%", fifthOf, tenthOf),
			fmt.Sprintf("%.1f and %.1f %%, where the mean bound of all instances is held against the mean of those that MCB8 has solved, as the paper seems to do. Those that it does not solve are those with few tasks, and high yields. On the same instances it is %.1f and %.1f %%.",
				fifth, tenth, at(slackOf(t, 0.2)), at(slackOf(t, 0.1))),
			"Few instances with little slack decide."),
		finding("The greedy algorithms are 20 % below the bound for slacks above 0.2.", sim.HeldIf(below), greedy.String()+" %", strings.Join(parts, ", ")+" %.", "The instances are not the paper's."),
		finding("The greedy algorithms have a higher average yield than MCB8.", sim.HeldIf(higher), "each of them", averages+".", "The instances are not the paper's."),
		finding("SG, SGB and MCB8 fail least, and GB and SGB nearly as often as GR and SG.", sim.HeldIf(max(fails["sg"], fails["sgb"], fails["mcb8"]) <= min(fails["gr"], fails["gb"]) && 5*fails["gb"] >= 4*fails["gr"] && 5*fails["sgb"] >= 4*fails["sg"]), "no more than the others; GB and SGB four fifths as often at least",
			fmt.Sprintf("Of %d MCB8 fails on %d, SG on %d, SGB on %d, GR on %d, GB on %d.", len(t), fails["mcb8"], fails["sg"], fails["sgb"], fails["gr"], fails["gb"]), "Few instances with little slack decide."),
		finding("RRND solves nothing with slacks below 0.4, and RRNZ is a poor performer.", sim.NotChecked, "", "RRND and RRNZ are not run on the large set.",
			"A linear program has up to 64,000 variables there; the paper reports 650 seconds for one."),
	}
}

// alike returns Held if two counts are equal, and HeldInPart if they differ by at most a twentieth.
func alike(a, b int) sim.Verdict {
	switch {
	case a == b:
		return sim.Held
	case 20*max(a-b, b-a) <= max(a, b):
		return sim.HeldInPart
	}
	return sim.NotHeld
}

// belowAll returns by how many percent an algorithm's mean yield, over the instances that it has
// solved, is below the mean bound of all instances.
func belowAll(trials []trial, name string) float64 {
	all, _ := mean(trials, minYield, bound)
	own, n := mean(trials, minYield, name)
	if n == 0 {
		return 100
	}
	return 100 * (1 - own/all)
}

// parallelSet returns the statements of section 5.2.
func (r *results) parallelSet() []sim.Finding {
	t := r.trials[parallelScaled]
	ample := slackFrom(t, 0.3)
	gap := 100 * (1 - ratio(ample, minYield, "mcb8", bound))
	better := 100 * (ratio(t, minYield, "mcb8", "sg") - 1)
	a, _ := mean(ample, averageYield, "mcb8")
	b, _ := mean(ample, averageYield, "sg")
	return []sim.Finding{
		finding("Parallel jobs: MCB8 is much better than SG, and close to the bound where there is slack.", sim.HeldIf(better > 5 && gap < 5), "more than 5 % better, less than 5 % below the bound", fmt.Sprintf("Its smallest yields are %.1f %% above SG's, and %.1f %% below the bound for slacks from 0.3 on.", better, gap), "The instances are not the paper's."),
		finding("Parallel jobs: SG can have a higher average yield.", sim.HeldIf(b > a), "higher in the mean", fmt.Sprintf("Means for slacks from 0.3 on: SG %.3f, MCB8 %.3f, with the heuristic for the second phase.", b, a), "The instances are not the paper's."),
		finding("Parallel jobs: the failure rates of MCB8 and SG are identical.", alike(failures(t, "mcb8"), failures(t, "sg")), "the same; in part within a twentieth", fmt.Sprintf("Of %d MCB8 fails on %d, SG on %d.", len(t), failures(t, "mcb8"), failures(t, "sg")), "A plot, which is all that the paper has, does not show such a difference."),
	}
}
