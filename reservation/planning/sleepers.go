// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// nameSleepers adds to the refusal of a start the matching hosts that would have room then if they did
// not sleep, and when they can all be awake.
func (s *search) nameSleepers(r *reservation.Refusal) {
	lasts := s.lasting(span.Forever)
	if s.query.AvailableFrom == nil || r.Constraint != reservation.HostsFree || s.request.window.Seconds() != s.request.duration {
		return
	}
	start, awake := s.query.Ready, span.Instant(0)
	free := s.view.Calendar.Free(s.query.Window(start), s.query.Hosts)
	var names []string
	for _, number := range s.refusing().byName(free) {
		if at := s.query.AvailableFrom[number]; at > start && at != span.Forever {
			names, awake = append(names, s.view.Hosts.names[number]), max(awake, lasts.query.AvailableFrom[number])
		}
	}
	if len(names) > 0 {
		r.Message += fmt.Sprintf("; %s sleep, and can be awake at %v", strings.Join(shortened(names), ", "), awake)
	}
}
