// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Judgeable refuses hosts that Almanac can never judge (inventory.HostState.Unsupported), even
// forced ones.
type Judgeable struct {
	judgeable cached[hostset.Set]
}

func (*Judgeable) Name() string { return "JudgeableFilter" }

func (f *Judgeable) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild {
		return nil
	}
	return subset{f.judgeable.get(s, judgeable), func(i int) string { return s.Host(i).Unsupported }}
}

func judgeable(s *inventory.States) hostset.Set {
	hosts := hostset.New(s.Len())
	for i := range s.Len() {
		if s.Host(i).Unsupported == "" {
			hosts.Add(i)
		}
	}
	return hosts
}
