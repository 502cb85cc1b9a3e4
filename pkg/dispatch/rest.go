package dispatch

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// wants is the sum of allocations.
func wants(all []placing.Allocations) placing.Allocations {
	sum := placing.Allocations{}
	for _, one := range all {
		for provider, amounts := range one {
			if sum[provider] == nil {
				sum[provider] = map[string]int64{}
			}
			for class, amount := range amounts {
				sum[provider][class] += amount
			}
		}
	}
	return sum
}

// rest gives what an instance is left of what it has on a host, until it is gone: so much
// that others find no more room there than before, and there is room to give it back what it
// had. What it gives up is no longer wanted afterwards.
//
// It is left nothing of a class of which Placement would refuse it: an odd portion, or any
// where more is used than there is. Since what is on its way may count twice in that, it has
// to have refused the host once.
func (t *task) rest(h *inventory.HostState, has, wanted placing.Allocations) placing.Allocations {
	var left placing.Allocations
	for provider, amounts := range has {
		for class, amount := range amounts {
			given := min(amount, wanted[provider][class])
			if given > 0 {
				wanted[provider][class] -= given
			}
			stock := h.Stocks[class]
			odd := given > 0 && (stock.Min > 1 || stock.Step > 1)
			overfull := stock.Used > stock.Limit() && t.refusals[h.Name] > 0
			if given == amount || odd || overfull {
				continue
			}
			if left == nil {
				left = placing.Allocations{}
			}
			if left[provider] == nil {
				left[provider] = map[string]int64{}
			}
			left[provider][class] = amount - given
		}
	}
	return left
}

// rests has the board count, too, what the victims, which leave these hosts, are left until
// they are gone.
func (t *task) rests(c chosen, hosts []int) (takes []inventory.Take) {
	var targets []placing.Allocations
	for _, selections := range c.Selections {
		targets = append(targets, selections[0].Allocations)
	}
	wanted := wants(targets)
	for n, v := range c.victims {
		if left := t.rest(v.on, allocations(v.on, v.Holds), wanted); len(left) > 0 {
			takes = append(takes, inventory.Take{Host: hosts[n], Instance: v.ID, Resources: holds(v.on, left)})
		}
	}
	return takes
}
