// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Microversion is a version of an API such as 2.87.
type Microversion struct {
	Major, Minor int
}

// ParseMicroversion parses a microversion such as "2.87".
func ParseMicroversion(text string) (Microversion, error) {
	major, minor, ok := strings.Cut(text, ".")
	m, err := strconv.ParseUint(major, 10, 16)
	n, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err != nil || err2 != nil {
		return Microversion{}, fmt.Errorf("%q is not a microversion", text)
	}
	return Microversion{int(m), int(n)}, nil
}

func (m Microversion) String() string { return fmt.Sprintf("%d.%d", m.Major, m.Minor) }

// Less reports whether m is older than o.
func (m Microversion) Less(o Microversion) bool {
	return cmp.Or(cmp.Compare(m.Major, o.Major), cmp.Compare(m.Minor, o.Minor)) < 0
}

// UnmarshalJSON parses a microversion; an empty one, of an API without microversions, is zero.
func (m *Microversion) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	*m = Microversion{}
	if text == "" {
		return nil
	}
	var err error
	*m, err = ParseMicroversion(text)
	return err
}

// versions is the document at the root of a service, and at that of one version of it (Nova:
// nova/api/openstack/compute/views/versions.py; Placement: placement/handlers/root.py, which
// has another name for the highest version).
type versions struct {
	Version  *version  `json:"version"`
	Versions []version `json:"versions"`
}

type version struct {
	ID         string       `json:"id"`
	Min        Microversion `json:"min_version"`
	Version    Microversion `json:"version"`
	MaxVersion Microversion `json:"max_version"`
}

// speaks returns the lowest and the highest microversion of the service.
func (v versions) speaks() (least, most Microversion) {
	all := v.Versions
	if v.Version != nil {
		all = append(all, *v.Version)
	}
	for _, one := range all {
		highest := one.Version
		if highest.Less(one.MaxVersion) {
			highest = one.MaxVersion
		}
		if most.Less(highest) {
			least, most = one.Min, highest
		}
	}
	return least, most
}
