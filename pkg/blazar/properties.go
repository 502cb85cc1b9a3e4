// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Property is a property of hosts that is not a column.
type Property struct {
	Name string `json:"property"`
	*propertyDetails
}

type propertyDetails struct {
	Private  bool     `json:"private"`
	Values   []string `json:"values"`
	IsUnique bool     `json:"is_unique"` // as in Chameleon's Blazar; always false
}

// Properties returns the properties of hosts, sorted by name: the private ones, and the details of
// each, if they are asked for.
func Properties(s *inventory.Snapshot, hosts []*inventory.Host, private, details bool) []Property {
	values := make(map[string]map[string]bool)
	for _, h := range hosts {
		for name := range h.Properties {
			if values[name] == nil {
				values[name] = make(map[string]bool)
			}
			values[name][h.Text(name)] = true
		}
	}
	list := []Property{}
	for _, p := range s.Properties() {
		if values[p.Name] == nil || p.Hidden && !private || IsColumn(p.Name) {
			continue
		}
		property := Property{Name: p.Name}
		if details {
			property.propertyDetails = &propertyDetails{Private: p.Hidden, Values: slices.Sorted(maps.Keys(values[p.Name]))}
		}
		list = append(list, property)
	}
	return list
}

// PropertyRow is the answer to a change of a property: the row in Blazar's database.
type PropertyRow struct {
	ID           string `json:"id"`
	ResourceType string `json:"resource_type"`
	Name         string `json:"property_name"`
	Private      bool   `json:"private"`
	IsUnique     bool   `json:"is_unique"`
	// CreatedAt is null if the property was not set through this API. Unlike those of other rows,
	// both times have the form of a lease's.
	CreatedAt *string `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

// ChangedProperty returns the answer to a change of a property at now.
func ChangedProperty(s *inventory.Snapshot, name string, private bool, now span.Instant) PropertyRow {
	row := PropertyRow{ID: nameID("property/" + name), ResourceType: Hosts, Name: name, Private: private, UpdatedAt: Time(now)}
	created := span.Forever
	for _, h := range s.Hosts() {
		if _, given := h.Capabilities.Texts[name]; given {
			created = min(created, h.Capabilities.Created)
		}
	}
	if created != span.Forever {
		row.CreatedAt = new(Time(created))
	}
	return row
}

// ReadPrivate returns whether a request makes a property private.
func ReadPrivate(o Object) (bool, error) {
	private, ok, err := o.truth("private")
	if err == nil && !ok {
		err = missing("private")
	}
	return private, err
}
