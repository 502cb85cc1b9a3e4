package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Yield refuses hosts on which the smallest yield would be under a floor with the instance
// (paper 002: the fraction of the CPU it needs that an instance can have where all on the
// host get the same). What instances need is Share of their VCPUs, as Placement counts them:
// those that are stopped count too, and those that could be evicted. Pinned CPUs are shared
// by nobody.
type Yield struct {
	// Floor lies between 0 and 1; 0 refuses nothing.
	Floor float64
	Share float64
}

// Name is the filter's name.
func (*Yield) Name() string { return "YieldFilter" }

// For prepares the filter.
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

// with is the smallest yield on host i once the instance is there.
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
	return fmt.Sprintf("the yield would be %.4g with the instance, and %.4g is the floor", y.with(i), y.floor)
}
