package rebalance

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is what becomes of the next move of a run as things are now. The zero Verdict lets
// it be made.
type Verdict struct {
	Skip string // why this move is left out, a sentence
	End  string // why nothing more is moved, a sentence
}

// Judge looks anew at move i of a plan, the first that is left: whether the instance is where
// the plan says and may go where it says, and whether the moves are still worth it.
func (s *Situation) Judge(p *Plan, i int, floor float64) Verdict {
	rest, o := p.Moves[i:], p.Options
	m := rest[0]
	if why := s.displaced(m); why != "" {
		return Verdict{Skip: why}
	}
	v := s.view()
	j, to := v.index(m.Instance), v.number(m.To)
	switch {
	case j < 0:
		return Verdict{Skip: v.whyStays(m)}
	case to < 0:
		return Verdict{Skip: fmt.Sprintf("%s is not up, enabled and on any more, or cannot be judged", m.To)}
	}
	if why := v.walk(Options{}).refuses(j, to); why != "" {
		return Verdict{Skip: why}
	}
	if slices.Contains(p.Emptied, m.From) {
		if why := v.remains(m.From, rest); why != "" {
			return Verdict{Skip: fmt.Sprintf("%s cannot become empty any more: %s", m.From, why)}
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
		return Verdict{End: fmt.Sprintf("the smallest yield would sink to %.4g by now, under %.4g", then, floor)}
	case o.Consolidate == 0 && then < now+slack:
		return Verdict{End: fmt.Sprintf("what is left would not let the smallest yield grow any more: it is %.4g", now)}
	}
	return Verdict{}
}

// remains says what is left on a host that the moves shall empty; empty where nothing is.
func (v *view) remains(host string, rest []Move) string {
	number := v.number(host)
	if number < 0 {
		return "it is not up, enabled and on, or cannot be judged"
	}
	if why := v.rooted(number); why != "" {
		return why
	}
	for _, one := range v.States.InstancesOn(v.hosts[number].place) {
		if !slices.ContainsFunc(rest, func(m Move) bool { return m.Instance == one.ID && m.From == host }) {
			return fmt.Sprintf("instance %s is on it, and is not to be moved", one.ID)
		}
	}
	return ""
}

// emptied says which hosts have become empty of those that a plan was to empty, as the rest of
// a sentence; nothing where it was to empty none.
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
	return "; empty are " + strings.Join(empty, ", ")
}

// displaced says that the instance is not where the move begins.
func (s *Situation) displaced(m Move) string {
	var on []string
	for _, i := range s.States.HostsOf(m.Instance) {
		on = append(on, s.States.Host(i).Name)
	}
	switch {
	case len(on) == 0:
		return "the instance is on no host any more"
	case len(on) == 1 && on[0] == m.From:
		return ""
	case len(on) == 1 && on[0] == m.To:
		return "it is there already"
	}
	return "it is on " + strings.Join(on, " and ") + " by now"
}

// whyStays says why an instance is none of the jobs.
func (v *view) whyStays(m Move) string {
	for _, stay := range v.stay {
		if stay.Instance == m.Instance {
			return stay.Reason
		}
	}
	return fmt.Sprintf("%s is not up, enabled and on any more, or cannot be judged", m.From)
}

// number gives that of the host with the name; -1 where it is no part of the problem.
func (v *view) number(host string) int {
	place, known := v.States.Index(host)
	if number, is := v.at[place]; known && is {
		return number
	}
	return -1
}

// Yield is the smallest yield as it is.
func (s *Situation) Yield() float64 {
	v := s.view()
	return v.yield(v.now())
}
