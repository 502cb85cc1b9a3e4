package besteffort

import (
	"fmt"
)

// whyNow returns why a unit starts, and what follows.
func (p *planner) whyNow(u *unit, at spot) string {
	if !at.whole {
		return fmt.Sprintf("It can run until a reservation at %v, and is suspended for it.", at.end)
	}
	if u.ran {
		return "There is room for it again."
	}
	return "There is room for it until it ends."
}

// whyNotNow returns what a unit waits for.
func (p *planner) whyNotNow(u *unit, at spot) string {
	switch {
	case at.late:
		return "It starts as soon as what has its place is over."
	case at.start <= at.there && u.ran && len(u.members) == 1 && u.members[0].node == at.nodes[0] && u.members[0].vm.Phase == Suspending:
		return "It is being suspended."
	case at.start <= at.there && u.ran:
		return fmt.Sprintf("Its memory is where it can go on at %v.", at.there)
	case at.start <= at.there:
		return fmt.Sprintf("Its image is on its node at %v.", at.there)
	case p.roomNow(u):
		return "There is room for it, but not for long enough: a reservation comes before its end, or someone who is before it in the queue."
	default:
		return "The nodes are busy, or reserved."
	}
}

// roomNow reports whether all of a unit fits at this moment, for however short a time.
func (p *planner) roomNow(u *unit) bool {
	if u.ran && !p.rules.Migrate {
		for _, m := range u.members {
			if m.node < 0 || p.nodes[m.node].room(0, u.request.Shape, 1) == 0 {
				return false
			}
		}
		return true
	}
	return p.roomAt(u, p.now)
}
