package fence

import (
	"fmt"
	"strings"
)

// Summary returns what the step does in a few words.
func (s *Step) Summary() string {
	switch s.Action {
	case CreateAggregate, DeleteAggregate:
		return fmt.Sprintf("%s %s", s.Action, s.Aggregate.Name)
	case MarkAggregate, UnmarkAggregate:
		return fmt.Sprintf("%s of aggregate %s: %s", s.Action, s.Aggregate.Name, pairs(s.Aggregate.Metadata))
	case CreateFlavor, OpenFlavor, DeleteFlavor:
		return fmt.Sprintf("%s %s", s.Action, s.Flavor.Name)
	case MarkFlavor:
		return fmt.Sprintf("%s of flavor %s: %s", s.Action, s.Flavor.Name, pairs(s.Flavor.ExtraSpecs))
	case AddHost:
		return fmt.Sprintf("add host %s to aggregate %s", s.Host, s.Aggregate.Name)
	case RemoveHost:
		return fmt.Sprintf("remove host %s from aggregate %s", s.Host, s.Aggregate.Name)
	case AddTraits:
		return fmt.Sprintf("add %s to host %s", strings.Join(s.Traits, ", "), s.Host)
	case RemoveTraits:
		return fmt.Sprintf("remove %s from host %s", strings.Join(s.Traits, ", "), s.Host)
	case AddRooms, RemoveRooms:
		var classes []string
		for _, class := range sorted(s.Rooms) {
			classes = append(classes, fmt.Sprintf("%d of %s", s.Rooms[class], class))
		}
		return fmt.Sprintf("leave %s on host %s", strings.Join(classes, ", "), s.Host)
	default:
		return fmt.Sprintf("%s %s", s.Action, s.Name)
	}
}
