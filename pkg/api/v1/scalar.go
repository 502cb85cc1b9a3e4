// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Duration is a number of whole seconds. JSON output is a number; input is a number or a string in
// the form of span.ParseDuration: "90", "2h30m", "3d", "1w12h".
type Duration int64

// UnmarshalJSON reads a number of seconds or a written duration.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		seconds, err := ParseDuration(text)
		*d = seconds
		return err
	}
	var seconds int64
	if err := json.Unmarshal(raw, &seconds); err != nil {
		return fmt.Errorf("must be whole seconds or a string such as \"2h30m\", not %s", raw)
	}
	*d = Duration(seconds)
	return nil
}

// String writes the duration in days, hours, minutes and seconds: "2h30m".
func (d Duration) String() string { return span.FormatDuration(int64(d)) }

// ParseDuration returns the duration of a text in the form of span.ParseDuration.
func ParseDuration(text string) (Duration, error) {
	seconds, err := span.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write seconds, or a string such as \"2h30m\" or \"3d\"", text)
	}
	return Duration(seconds), nil
}

// Marker is the marker of the next page; on the last page it is empty, which JSON writes as null.
type Marker string

// MarshalJSON writes the marker.
func (m Marker) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// Power is a power state set for a host. The empty Power, null in JSON, means that the host's
// source determines the power.
type Power string

// MarshalJSON writes the state.
func (p Power) MarshalJSON() ([]byte, error) {
	if p == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(p))
}

// EnergyMode is how much the energy controller may do. The empty EnergyMode, null in JSON, means
// that there is no mode of its own.
type EnergyMode string

// MarshalJSON writes the mode.
func (m EnergyMode) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// Until is an end: a time, or a duration from now if In is not 0. In JSON it is a time in RFC 3339
// or a Duration.
type Until struct {
	At time.Time
	In Duration
}

// UnmarshalJSON reads a time with its zone, or a duration of at least one second.
func (u *Until) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = resource.Whole(string(raw))
	}
	if at, err := span.ParseTime(text); err == nil {
		*u = Until{At: at}
		return nil
	}
	in, err := ParseDuration(text)
	if err != nil || in <= 0 {
		return fmt.Errorf("%q is not an end; write a time with its zone, such as 2026-12-01T10:00:00Z, or a duration from now, such as \"2h30m\" or \"3d\"", text)
	}
	*u = Until{In: in}
	return nil
}

// MarshalJSON writes the time or the duration.
func (u Until) MarshalJSON() ([]byte, error) {
	if u.In != 0 {
		return json.Marshal(u.In)
	}
	return json.Marshal(u.At.UTC().Truncate(time.Second))
}

// Hints are Nova's scheduler hints, by name. In JSON each is a string or a list of strings.
type Hints map[string][]string

// UnmarshalJSON reads the hints; it omits those that are null.
func (h *Hints) UnmarshalJSON(raw []byte) error {
	var mixed map[string]json.RawMessage
	if err := json.Unmarshal(raw, &mixed); err != nil {
		return fmt.Errorf("must be an object of names and strings, not %s", raw)
	}
	hints := make(Hints, len(mixed))
	for name, value := range mixed {
		if string(value) == "null" {
			continue
		}
		var one string
		var list []string
		if json.Unmarshal(value, &one) == nil {
			list = []string{one}
		} else if json.Unmarshal(value, &list) != nil {
			return fmt.Errorf("hint %s must be a string or a list of strings, not %s", name, value)
		}
		hints[name] = list
	}
	*h = hints
	return nil
}

// Networks are the networks of a server: "none", "auto", or a list of network ids.
type Networks []string

// UnmarshalJSON reads a word or a list of ids.
func (n *Networks) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		*n = Networks{word}
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf(`must be "none", "auto" or a list of ids of networks, not %s`, raw)
	}
	*n = list
	return nil
}

// MarshalJSON writes a word or a list of ids.
func (n Networks) MarshalJSON() ([]byte, error) {
	if len(n) == 1 && (n[0] == "none" || n[0] == "auto") {
		return json.Marshal(n[0])
	}
	return json.Marshal([]string(n))
}
