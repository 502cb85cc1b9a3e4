// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// The limits of capabilities. The first is Blazar's (blazar/db/sqlalchemy/models.py).
const (
	longestCapability = 64   // characters of a name
	longestText       = 1024 // characters of a value
	mostCapabilities  = 256  // of one host
)

// ReadCapabilities returns the capabilities in the body of a request, by name; nil for null. Numbers
// become texts as they are written, true and false become True and False, as in Python. Keys that
// are columns of a host are left out, as in Blazar.
func ReadCapabilities(o Object) (map[string]*string, error) {
	texts := make(map[string]*string)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if IsColumn(name) {
			continue
		}
		if utf8.RuneCountInString(name) > longestCapability {
			return nil, fault.New(fault.Invalid, "Extra capability key too long")
		}
		if strings.TrimSpace(name) == "" {
			return nil, malformed("name of a capability")
		}
		text, err := capability(name, o[name])
		if err != nil {
			return nil, err
		}
		texts[name] = text
	}
	if len(texts) > mostCapabilities {
		return nil, tooMany()
	}
	return texts, nil
}

func tooMany() error {
	return fault.New(fault.Invalid, "Too many extra capabilities: a host may have %d", mostCapabilities)
}

// capability returns the value of a property of a host as Blazar stores it, as text; nil for null.
func capability(name string, value any) (*string, error) {
	text := ""
	switch value := value.(type) {
	case nil:
		return nil, nil
	case string:
		text = value
	case bool:
		text = inventory.BoolValue(value).Text()
	case json.Number:
		text = value.String()
	default:
		return nil, malformed(fmt.Sprintf("%s (must be a text, a number, true or false)", shorten(name)))
	}
	if utf8.RuneCountInString(text) > longestText {
		return nil, fault.New(fault.Invalid, "Extra capability value too long: %s has more than %d characters", shorten(name), longestText)
	}
	return &text, nil
}

// MayChange returns an error if the capabilities of a host may not change as from the snapshot
// before to the snapshot after: there would be too many, or a live reservation uses one of them. A
// reservation uses a property if its filter names it and it has the host, or if the change changes
// the type of the property.
func MayChange(host string, before, after *inventory.Snapshot, live []reservation.Reservation) error {
	was, is := named(before, host), named(after, host)
	if len(is.Capabilities.Texts) > mostCapabilities {
		return tooMany()
	}
	changed, retyped := make(map[string]bool), make(map[string]bool)
	for _, p := range before.Properties() {
		changed[p.Name] = was.Text(p.Name) != is.Text(p.Name)
		retyped[p.Name] = p.Type != after.KindOf(p.Name, true)
	}
	used := make(map[string]bool)
	for i := range live {
		for _, property := range inventory.PropertiesIn([]byte(live[i].HostProperties)) {
			if retyped[property] || changed[property] && has(&live[i], host) {
				used[property] = true
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(used))
	return fault.New(fault.Conflict, "Can't add extracapabilities ['%s'] to Host %s: reservations select hosts by them", strings.Join(names, "', '"), HostID(was))
}

// MayLeave returns an error if a host may not leave the pool: a live reservation has it that is not
// maintenance, which needs no host of the pool.
func MayLeave(host string, live []reservation.Reservation) error {
	for i := range live {
		if !live[i].Maintenance && has(&live[i], host) {
			return fault.New(fault.Conflict, "Can't delete host %s. The host is reserved.", host)
		}
	}
	return nil
}

// has reports whether a live reservation has a host until its end. Claims on hosts that were replaced
// end earlier.
func has(r *reservation.Reservation, host string) bool {
	return slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == host && c.Span.End >= r.Span.End })
}

// named returns a host of s, which has one of that name.
func named(s *inventory.Snapshot, host string) *inventory.Host {
	i, _ := s.Index(host)
	return s.Host(i)
}
