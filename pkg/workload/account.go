package workload

// firstLines is how many line numbers an account keeps of each reason.
const firstLines = 10

// ledger keeps an Account.
type ledger struct {
	lines, jobs int64
	reasons     []Skipped // in the order in which they first came up
	places      map[string]int
}

// skip counts a line that is left out. Reasons are phrases of this package, so that there
// are few of them however many lines are wrong.
func (l *ledger) skip(reason string, line int64) {
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

// account gives what was counted so far: Lines is Jobs and all that was skipped. Lines of a
// header or a comment are none of them; of XML, a lease counts as a line.
func (l *ledger) account() Account {
	a := Account{Lines: l.lines, Jobs: l.jobs}
	for _, s := range l.reasons {
		s.First = append([]int64(nil), s.First...)
		a.Skipped = append(a.Skipped, s)
	}
	return a
}
