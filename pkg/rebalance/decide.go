// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the decision about the next move of a run, in the current situation. The zero
// Verdict allows the move.
type Verdict struct {
	Skip string // why this move is left out, as a sentence
	End  string // why nothing more is moved, as a sentence
}

// Judge checks move i of a plan, the first one that remains, against the current situation: whether
// the instance is on its source, whether it may go to its destination, and whether the remaining
// moves still help. floor is the yield below which no move may bring the smallest yield.
func (s *Situation) Judge(p *Plan, i int, floor float64) Verdict {
	rest, o := p.Moves[i:], p.Options
	m := rest[0]
	if why := s.displaced(m); why != "" {
		return Verdict{Skip: why}
	}
	v := s.view()
	if why := v.walk(Options{}).blocked(m); why != "" {
		return Verdict{Skip: why}
	}
	if slices.Contains(p.Emptied, m.From) {
		if why := v.remains(m.From, rest); why != "" {
			return Verdict{Skip: fmt.Sprintf("%s can no longer become empty: %s", m.From, why)}
		}
	}
	at := v.now()
	for _, next := range rest {
		if j, to := v.index(next.Instance), v.number(next.To); j >= 0 && to >= 0 {
			at[j] = to
		}
	}
	now, then := v.yield(v.now()), v.yield(at)
	switch {
	case o.Consolidate > 0 && then < floor-slack:
		return Verdict{End: fmt.Sprintf("the smallest yield would now fall to %.4g, below %.4g", then, floor)}
	case o.Consolidate == 0 && then < now+slack:
		return Verdict{End: fmt.Sprintf("the remaining moves would not raise the smallest yield any more: it is %.4g", now)}
	}
	return Verdict{}
}

// remains returns what would be left, after the moves, on a host that they should empty, or which of
// them is no longer possible; "" if nothing is left.
func (v *view) remains(host string, rest []Move) string {
	number := v.number(host)
	if number < 0 {
		return "it is not up, enabled and on, or its state is unknown"
	}
	if why := v.rooted(number); why != "" {
		return why
	}
	for _, one := range v.States.InstancesOn(v.hosts[number].place) {
		if !slices.ContainsFunc(rest, func(m Move) bool { return m.Instance == one.ID && m.From == host }) {
			return fmt.Sprintf("instance %s is on it, and the plan does not move it", one.ID)
		}
	}
	return v.stranded(host, rest)
}

// stranded returns why one of the moves from a host is no longer possible after the moves before it; ""
// if all are possible.
func (v *view) stranded(host string, rest []Move) string {
	last := 0
	for i := range rest {
		if rest[i].From == host {
			last = i + 1
		}
	}
	w := v.walk(Options{})
	for _, m := range rest[:last] {
		switch why := w.blocked(m); {
		case why == "":
			w.move(v.index(m.Instance), v.number(m.To), false)
		case m.From == host:
			return fmt.Sprintf("instance %s cannot go to %s: %s", m.Instance, m.To, why)
		}
	}
	return ""
}

// blocked returns why a move is not possible now; "" if it is.
func (w *walk) blocked(m Move) string {
	j, to := w.index(m.Instance), w.number(m.To)
	switch {
	case j < 0:
		return w.whyStays(m)
	case to < 0:
		return fmt.Sprintf("%s is no longer up, enabled and on, or its state is unknown", m.To)
	}
	return w.refuses(j, to)
}

// emptied describes, as the end of a sentence, which of the hosts that a plan should empty are
// empty now. It returns "" if the plan should not empty any.
func (s *Situation) emptied(p *Plan) string {
	if len(p.Emptied) == 0 {
		return ""
	}
	var empty []string
	for _, host := range p.Emptied {
		if place, known := s.States.Index(host); known && len(s.States.InstancesOn(place)) == 0 {
			empty = append(empty, host)
		}
	}
	if len(empty) == 0 {
		return "; none of the hosts became empty"
	}
	return "; these became empty: " + strings.Join(empty, ", ")
}

// displaced returns the reason why the instance is not on the source of the move; "" if it is
// there.
func (s *Situation) displaced(m Move) string {
	var on []string
	for _, i := range s.States.HostsOf(m.Instance) {
		on = append(on, s.States.Host(i).Name)
	}
	switch {
	case len(on) == 0:
		return "the instance is no longer on a host"
	case len(on) == 1 && on[0] == m.From:
		return ""
	case len(on) == 1 && on[0] == m.To:
		return "it is already there"
	}
	return "it is on " + strings.Join(on, " and ") + " now"
}

// whyStays returns the reason why the instance of a move is not a job of the problem.
func (v *view) whyStays(m Move) string {
	for _, stay := range v.stay {
		if stay.Instance == m.Instance {
			return stay.Reason
		}
	}
	return fmt.Sprintf("%s is no longer up, enabled and on, or its state is unknown", m.From)
}

// number returns the index of the host with a name; -1 if it is not part of the problem.
func (v *view) number(host string) int {
	place, known := v.States.Index(host)
	if number, is := v.at[place]; known && is {
		return number
	}
	return -1
}

// Yield returns the current smallest yield.
func (s *Situation) Yield() float64 {
	v := s.view()
	return v.yield(v.now())
}
