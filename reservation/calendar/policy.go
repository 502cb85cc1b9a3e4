// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"iter"
	"slices"
)

// Policy names a rule for choosing among feasible starts.
type Policy string

// PolicyCheapest chooses the start that costs least by a tariff (package tariff), which a Calendar does not know.
const PolicyCheapest Policy = "cheapest"

// The seven policies of paper 003 section 5. PE is the number of free hosts of a start's availability rectangle,
// duration is its length; best is the smallest, worst the largest.
const (
	PolicyFirstFit           Policy = "first-fit"
	PolicyPEBestFit          Policy = "pe-best-fit"
	PolicyPEWorstFit         Policy = "pe-worst-fit"
	PolicyDurationBestFit    Policy = "duration-best-fit"
	PolicyDurationWorstFit   Policy = "duration-worst-fit"
	PolicyPEDurationBestFit  Policy = "pe-duration-best-fit"
	PolicyPEDurationWorstFit Policy = "pe-duration-worst-fit"
)

// rules lists the policies of the paper, in its order. A rule reports whether its policy prefers
// a, a later start, to b. Of equal candidates the earlier start wins.
var rules = []struct {
	policy Policy
	better func(a, b Candidate) bool
}{
	{PolicyFirstFit, func(_, _ Candidate) bool { return false }},
	{PolicyPEBestFit, func(a, b Candidate) bool { return a.Free < b.Free }},
	{PolicyPEWorstFit, func(a, b Candidate) bool { return a.Free > b.Free }},
	{PolicyDurationBestFit, func(a, b Candidate) bool { return a.length() < b.length() }},
	{PolicyDurationWorstFit, func(a, b Candidate) bool { return a.length() > b.length() }},
	{PolicyPEDurationBestFit, func(a, b Candidate) bool { return a.area() < b.area() }},
	{PolicyPEDurationWorstFit, func(a, b Candidate) bool { return a.area() > b.area() }},
}

// PaperPolicies lists the policies of the paper, in its order, and Policies all policies.
var (
	PaperPolicies = func() (list []Policy) {
		for _, rule := range rules {
			list = append(list, rule.policy)
		}
		return list
	}()
	Policies = append(slices.Clip(PaperPolicies), PolicyCheapest)
)

// ComparesRectangles reports whether the policy chooses by whole free hosts, which reservations of slices do not need.
func (p Policy) ComparesRectangles() bool { return slices.Index(PaperPolicies, p) > 0 }

// Best returns the candidate that the policy chooses, false if there is none. Without a policy of the paper it is the first.
func (p Policy) Best(candidates iter.Seq[Candidate]) (best Candidate, found bool) {
	better := rules[max(slices.Index(PaperPolicies, p), 0)].better
	for candidate := range candidates {
		if !found || better(candidate, best) {
			best, found = candidate, true
		}
	}
	return best, found
}

func (c Candidate) length() int64 { return int64(c.End - c.Begin) }

func (c Candidate) area() float64 { return float64(c.Free) * float64(c.length()) }
