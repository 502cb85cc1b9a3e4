// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Yield refuses hosts whose smallest yield would be below a floor with the instance on them. The
// yield is the fraction that an instance can get of the CPU that it needs, if all instances on the
// host get the same fraction (paper 002). An instance needs the fraction Share of its VCPUs, as
// Placement counts them; stopped instances and those that could be evicted count too. Pinned CPUs
// are not shared.
type Yield struct {
	// Floor is the smallest yield that is allowed, between 0 and 1; 0 refuses nothing.
	Floor float64
	Share float64
}

func (*Yield) Name() string { return "YieldFilter" }

func (f *Yield) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	asked := r.Resources["VCPU"]
	if r.Rebuild || f.Floor <= 0 || asked <= 0 {
		return nil
	}
	return yield{floor: f.Floor, share: f.Share, asked: asked, of: s.Column("VCPU")}
}

type yield struct {
	floor, share float64
	asked        int64
	of           *inventory.Column
}

// with returns the smallest yield on host i if the instance were there.
func (y yield) with(i int) float64 {
	need := y.share * float64(y.of.Used[i]+y.asked)
	if has := float64(y.of.Real[i]); need > has {
		return has / need
	}
	return 1
}

func (y yield) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		if y.with(i) < y.floor-1e-9 {
			hosts.Remove(i)
		}
	}
}

func (y yield) Why(i int) string {
	return fmt.Sprintf("the yield would be %.4g with the instance, below the floor of %.4g", y.with(i), y.floor)
}
