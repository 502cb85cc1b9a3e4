// SPDX-License-Identifier: Apache-2.0

package workload

// firstLines is the number of line numbers that an account stores for each reason.
const firstLines = 10

// Blank is the reason for which blank lines are skipped.
const Blank = "is blank"

// ledger keeps an Account.
type ledger struct {
	lines, jobs int64
	reasons     []Skipped // in the order of their first line
	places      map[string]int
	skipped     func(line int64, reason string) // nil: not reported
}

// skip counts a skipped line. Reasons are phrases of this package, so that there are few of
// them however many lines are wrong.
func (l *ledger) skip(reason string, line int64) {
	if l.skipped != nil {
		l.skipped(line, reason)
	}
	if l.places == nil {
		l.places = make(map[string]int)
	}
	place, known := l.places[reason]
	if !known {
		place = len(l.reasons)
		l.places[reason] = place
		l.reasons = append(l.reasons, Skipped{Reason: reason})
	}
	s := &l.reasons[place]
	s.Lines++
	if len(s.First) < firstLines {
		s.First = append(s.First, line)
	}
}

// account returns the counts so far. Lines is the sum of the jobs and the skipped lines;
// lines of headers and comments do not count, and a lease in XML counts as one line.
func (l *ledger) account() Account {
	a := Account{Lines: l.lines, Jobs: l.jobs}
	for _, s := range l.reasons {
		s.First = append([]int64(nil), s.First...)
		a.Skipped = append(a.Skipped, s)
	}
	return a
}
