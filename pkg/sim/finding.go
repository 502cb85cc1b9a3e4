// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is whether a statement held in an experiment. Verdicts can be compared with ==.
type Verdict struct {
	word     string
	held, of int // comparisons; of is 0 unless the verdict is Counted
}

// The verdicts of a statement that is checked once, and NotChecked.
var (
	Held       = Verdict{word: "held"}
	HeldInPart = Verdict{word: "held in part"}
	Undecided  = Verdict{word: "undecided"} // the interval of a difference contains 0
	NotHeld    = Verdict{word: "not held"}
	NotChecked = Verdict{word: "not checked"}
)

// HeldIf returns Held or NotHeld.
func HeldIf(holds bool) Verdict {
	if holds {
		return Held
	}
	return NotHeld
}

// Counted returns the verdict on a statement that was true in held of the `of` comparisons: Held in
// all, NotHeld in none, otherwise HeldInPart.
func Counted(held, of int) Verdict {
	v := HeldInPart
	switch held {
	case of:
		v = Held
	case 0:
		v = NotHeld
	}
	v.held, v.of = held, of
	return v
}

// Positive returns the verdict on the claim that a difference is greater than 0: Undecided if its
// interval contains 0.
func Positive(difference Estimate) Verdict {
	switch {
	case difference.Mean > difference.Half:
		return Held
	case difference.Mean >= -difference.Half:
		return Undecided
	}
	return NotHeld
}

// Worst returns the worst of the verdicts, in the order NotHeld, Undecided, Held. The verdicts must
// not be of Counted.
func Worst(verdicts ...Verdict) Verdict {
	for _, v := range []Verdict{NotHeld, Undecided} {
		if slices.Contains(verdicts, v) {
			return v
		}
	}
	return Held
}

// Holds reports whether the statement held in all comparisons.
func (v Verdict) Holds() bool { return v.word == Held.word }

// String returns the verdict in Markdown, such as "held (12 of 12)" or "**held in 9 of 12**".
func (v Verdict) String() string {
	word := v.word
	switch {
	case word == HeldInPart.word && v.of > 0:
		return fmt.Sprintf("**held in %d of %d**", v.held, v.of)
	case word == NotHeld.word || word == HeldInPart.word:
		word = "**" + word + "**"
	}
	if v.of > 0 {
		word += fmt.Sprintf(" (%d of %d)", v.held, v.of)
	}
	return word
}

// Finding compares a statement, usually of a paper, with the results of an experiment.
type Finding struct {
	Claim   string
	Verdict Verdict
	Within  string // the results with which the claim counts as held; empty if the claim states them
	Seen    string // the results
	Because string // a sentence: why the claim may not hold
}

// Since returns the finding with the reason why its claim may not hold.
func (f Finding) Since(because string) Finding {
	f.Because = because
	return f
}

// CountHeld returns how many of the findings hold.
func CountHeld(list []Finding) (n int) {
	for _, f := range list {
		if f.Verdict.Holds() {
			n++
		}
	}
	return n
}

// Findings adds a table of findings, with source as the header of the column of claims, and below
// it the reasons of the findings whose claims do not hold.
func (r *Report) Findings(source string, list []Finding) {
	within := slices.ContainsFunc(list, func(f Finding) bool { return f.Within != "" })
	t := Table{Columns: []string{source, "here", "in numbers"}}
	if within {
		t.Columns = slices.Insert(t.Columns, 2, "it holds if")
	}
	var reasons []string
	for _, f := range list {
		cells := []any{f.Claim, f.Verdict, f.Seen}
		if within {
			cells = slices.Insert(cells, 2, any(f.Within))
		}
		t.Add(cells...)
		if !f.Verdict.Holds() && f.Because != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s. %s", strings.TrimSuffix(f.Claim, "."), f.Verdict, f.Because))
		}
	}
	r.Table(t)
	if len(reasons) > 0 {
		r.Text("These did not hold throughout, with a possible reason:")
		r.List(reasons...)
	}
}
