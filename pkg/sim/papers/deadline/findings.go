// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// comparing counts comparisons of two series of runs. A comparison holds if the mean of the first
// series is larger.
type comparing struct {
	statement string
	held, of  int
	// clear counts the comparisons that hold and whose difference exceeds its confidence interval;
	// reversed counts those in which the second series is larger by more than the interval.
	clear, reversed int
	narrowest       sim.Estimate
	where           string // the narrowest comparison
}

func (c *comparing) larger(what string, a, b []float64) {
	apart := sim.Mean(sim.Differences(a, b))
	if c.of == 0 || apart.Mean < c.narrowest.Mean {
		c.narrowest, c.where = apart, what
	}
	c.of++
	if apart.Mean > 0 {
		c.held++
	}
	if apart.Mean > apart.Half {
		c.clear++
	}
	if -apart.Mean > apart.Half {
		c.reversed++
	}
}

// found returns the finding. It names the comparison with the smallest difference.
func (c *comparing) found() sim.Finding {
	seen := fmt.Sprintf("narrowest: %s, by %s", c.where, c.narrowest.Format(4))
	if c.narrowest.Runs > 1 {
		seen = fmt.Sprintf("%d by more than the 95 %% interval of the difference, %d the other way round by more than that; %s", c.clear, c.reversed, seen)
	}
	return sim.Finding{Claim: c.statement, Verdict: sim.Counted(c.held, c.of), Seen: seen}
}

// The groups of the paper.
var (
	upper  = []calendar.Policy{calendar.PolicyPEWorstFit, calendar.PolicyDurationBestFit}
	middle = []calendar.Policy{calendar.PolicyPEDurationBestFit, calendar.PolicyPEDurationWorstFit}
	lower  = []calendar.Policy{calendar.PolicyPEBestFit, calendar.PolicyDurationWorstFit}
	first  = []calendar.Policy{calendar.PolicyFirstFit}
)

// others returns all policies except than.
func others(than calendar.Policy) []calendar.Policy {
	return slices.DeleteFunc(slices.Clone(calendar.PaperPolicies), func(p calendar.Policy) bool { return p == than })
}

// above tests whether each of the policies a has a larger mean than each of b, in each of the
// settings.
func (r *results) above(statement string, m measure, settings []setting, a, b []calendar.Policy) sim.Finding {
	c := comparing{statement: statement}
	for _, s := range settings {
		for _, p := range a {
			for _, q := range b {
				c.larger(fmt.Sprintf("%s over %s at %v", paperName[p], paperName[q], s), r.values(m, s, p), r.values(m, s, q))
			}
		}
	}
	return c.found()
}

// along tests whether a measure changes from each setting of a scan to the next in the expected
// direction: sign is 1 if it should rise, and −1 if it should fall.
func (r *results) along(statement string, m measure, along scan, sign float64, policies ...calendar.Policy) sim.Finding {
	c := comparing{statement: statement}
	for _, p := range policies {
		for i, s := range along.settings[1:] {
			a, b := r.values(m, s, p), r.values(m, along.settings[i], p)
			if sign < 0 {
				a, b = b, a
			}
			c.larger(fmt.Sprintf("%s from %v to %v", paperName[p], along.at(along.settings[i]), along.at(s)), a, b)
		}
	}
	return c.found()
}

// near tests whether the means of two policies differ by at most the tolerance in each of the
// settings.
func (r *results) near(statement string, m measure, settings []setting, tolerance float64, a, b calendar.Policy) sim.Finding {
	held, widest, seen := 0, -1.0, ""
	for _, s := range settings {
		apart := math.Abs(r.mean(m, s, a).Mean - r.mean(m, s, b).Mean)
		if apart <= tolerance {
			held++
		}
		if apart > widest {
			widest = apart
			seen = fmt.Sprintf("within %v is near; widest: %.3f at %v", tolerance, apart, s)
		}
	}
	return sim.Finding{Claim: statement, Verdict: sim.Counted(held, len(settings)), Seen: seen}
}

// differ tests whether the means of two policies differ by more than the confidence interval of
// their difference, in each of the settings.
func (r *results) differ(statement string, m measure, settings []setting, a, b calendar.Policy) sim.Finding {
	held, narrowest, seen := 0, math.Inf(1), ""
	for _, s := range settings {
		apart := sim.Mean(sim.Differences(r.values(m, s, a), r.values(m, s, b)))
		if math.Abs(apart.Mean) > apart.Half {
			held++
		}
		if math.Abs(apart.Mean) < narrowest {
			narrowest = math.Abs(apart.Mean)
			seen = fmt.Sprintf("narrowest: %s at %v", apart.Format(4), s)
		}
	}
	return sim.Finding{Claim: statement, Verdict: sim.Counted(held, len(settings)), Seen: seen}
}

// steps returns by how much the acceptance of a policy changes with each step of a scan.
func (r *results) steps(along scan, p calendar.Policy) (steps []float64) {
	for i, s := range along.settings[1:] {
		steps = append(steps, r.mean(acceptance, s, p).Mean-r.mean(acceptance, along.settings[i], p).Mean)
	}
	return steps
}

// inWords formats steps as "PE_W +0.030 +0.022".
func inWords(p calendar.Policy, steps []float64) string {
	words := paperName[p]
	for _, step := range steps {
		words += fmt.Sprintf(" %+.3f", step)
	}
	return words
}

// linear tests whether the acceptance of each of the policies rises with each step of a scan, by at
// least half of the mean step.
func (r *results) linear(statement string, along scan, policies ...calendar.Policy) sim.Finding {
	held := 0
	var details []string
	for _, p := range policies {
		steps, sum := r.steps(along, p), 0.0
		for _, step := range steps {
			sum += step
		}
		if sum > 0 && slices.Min(steps) >= sum/float64(len(steps))/2 {
			held++
		}
		details = append(details, inWords(p, steps))
	}
	return sim.Finding{Claim: statement, Verdict: sim.Counted(held, len(policies)), Seen: "steps: " + strings.Join(details, ", ")}
}

// unsteady tests whether the acceptance of each of the policies falls in some step of a scan.
func (r *results) unsteady(statement string, along scan, policies ...calendar.Policy) sim.Finding {
	held := 0
	var details []string
	for _, p := range policies {
		steps := r.steps(along, p)
		if slices.Min(steps) < 0 {
			held++
		}
		details = append(details, inWords(p, steps))
	}
	return sim.Finding{Claim: statement, Verdict: sim.Counted(held, len(policies)), Seen: "steps: " + strings.Join(details, ", ")}
}

// findings compares the results with section 6.2 of the paper.
func (r *results) findings() []sim.Finding {
	all, scans := distinct(r.scans()...), r.scans()
	sizes, arrivals, flexibility := scans[0], scans[1], scans[2]
	mild, free := flexibility.settings[0], flexibility.settings[len(flexibility.settings)-1]
	gain := comparing{statement: "PE_W gains on Du_B as flexibility increases (6.2.3)"}
	gain.larger("the lead of PE_W at {5,5} over that at {1,1}",
		sim.Differences(r.values(acceptance, free, calendar.PolicyPEWorstFit), r.values(acceptance, free, calendar.PolicyDurationBestFit)),
		sim.Differences(r.values(acceptance, mild, calendar.PolicyPEWorstFit), r.values(acceptance, mild, calendar.PolicyDurationBestFit)))
	return []sim.Finding{
		r.above("PE_W accepts the most, everywhere (figures 2, 4, 6)", acceptance, all, upper[:1], others(calendar.PolicyPEWorstFit)).
			Since("With small jobs and a low load PE_W and Du_B may be level."),
		r.above("FF has the lowest slowdown, everywhere (figures 3, 5, 7)", slowdown, all, others(calendar.PolicyFirstFit), first),
		r.above("Three groups: PE_W and Du_B accept more than PEDu_B and PEDu_W", acceptance, all, upper, middle),
		r.above("Three groups: PEDu_B and PEDu_W accept more than PE_B and Du_W", acceptance, all, middle, lower),
		r.above("All but PE_B and Du_W accept more than FF", acceptance, all, slices.Concat(upper, middle), first),
		r.above("PE_B and Du_W accept less than FF", acceptance, all, first, lower).
			Since("FF, PE_B and Du_W may be nearly level wherever there is little to choose from: with large jobs, which leave few feasible starts, and with little flexibility."),
		r.near("PE_W and Du_B accept almost the same", acceptance, all, 0.02, calendar.PolicyPEWorstFit, calendar.PolicyDurationBestFit),
		r.near("PEDu_B and PEDu_W accept almost the same", acceptance, all, 0.02, calendar.PolicyPEDurationBestFit, calendar.PolicyPEDurationWorstFit).
			Since("Their order may change with the load, with the one ahead where there is much room and the other where there is little."),
		r.near("PE_B and Du_W accept almost the same", acceptance, all, 0.02, calendar.PolicyPEBestFit, calendar.PolicyDurationWorstFit),
		r.near("PE_W and Du_B have a similar slowdown", slowdown, all, 0.1, calendar.PolicyPEWorstFit, calendar.PolicyDurationBestFit),
		r.near("PE_B and Du_W have a similar slowdown", slowdown, all, 0.1, calendar.PolicyPEBestFit, calendar.PolicyDurationWorstFit),
		r.differ("The slowdowns of PEDu_B and PEDu_W differ", slowdown, all, calendar.PolicyPEDurationBestFit, calendar.PolicyPEDurationWorstFit).
			Since("Their order may change with the load here too, so that their curves cross; and where they cross they do not differ."),
		r.along("Acceptance falls with UMed (figure 2)", acceptance, sizes, -1, calendar.PaperPolicies...),
		r.along("Slowdown rises with UMed (figure 3)", slowdown, sizes, 1, calendar.PaperPolicies...),
		r.along("Acceptance falls with the arrival factor (figure 4)", acceptance, arrivals, -1, calendar.PaperPolicies...),
		r.along("Slowdown rises with the arrival factor (figure 5)", slowdown, arrivals, 1, calendar.PaperPolicies...),
		r.along("Slowdown rises with flexibility (figure 7)", slowdown, flexibility, 1, calendar.PaperPolicies...),
		gain.found(),
		r.linear("Acceptance of PE_W, Du_B and PEDu_B rises almost linearly with flexibility (figure 6)", flexibility, calendar.PolicyPEWorstFit, calendar.PolicyDurationBestFit, calendar.PolicyPEDurationBestFit).
			Since("It may depend on how jobs arrive; see \"Beside the paper\" below."),
		r.unsteady("The other four do not rise steadily (figure 6)", flexibility, calendar.PolicyFirstFit, calendar.PolicyPEBestFit, calendar.PolicyDurationWorstFit, calendar.PolicyPEDurationWorstFit),
	}
}
