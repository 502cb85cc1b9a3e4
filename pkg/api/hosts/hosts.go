// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// list handles GET /v1/hosts: the hosts that match host_properties, sorted by name.
func (s API) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "host_properties")
	limit, marker := q.Number("limit", serving.DefaultPage, 1, serving.LargestPage), q.Text("marker")
	properties := q.Text("host_properties")
	if q.Err != nil {
		return nil, q.Err
	}
	by, snapshot := c.Asker(), s.Inventory.Snapshot()
	filter, err := inventory.ParseFilter([]byte(properties), snapshot, by.SeesHidden())
	if err != nil {
		return nil, err
	}
	if _, known := snapshot.Index(marker); marker != "" && !known {
		return nil, fault.Field("marker", "there is no host %s", marker)
	}
	page, visible := v1.HostList{Hosts: []v1.Host{}, UnknownProperties: filter.Unknown()}, by.SightOf(snapshot)
	for _, h := range snapshot.Hosts() {
		if h.Name <= marker || !filter.Matches(h, false) {
			continue
		}
		if len(page.Hosts) == limit {
			page.Next = v1.Marker(page.Hosts[limit-1].Name)
			break
		}
		page.Hosts = append(page.Hosts, visible.Host(h))
	}
	return page, nil
}

// show handles GET /v1/hosts/{name}.
func (s API) show(c *serving.Call) (any, error) {
	return s.answer(c, c.Param("name"))
}

// change handles PATCH /v1/hosts/{name}.
func (s API) change(c *serving.Call) (any, error) {
	var body v1.HostChange
	if _, err := c.Body(&body, serving.AnyBody); err != nil {
		return nil, err
	}
	override := inventory.Override{
		Reservable: body.Reservable, Power: (*inventory.Power)(body.Power),
		Properties: make(map[string]*inventory.Value, len(body.Properties)),
	}
	for _, name := range slices.Sorted(maps.Keys(body.Properties)) {
		v, err := propertyValue(name, body.Properties[name])
		if err != nil {
			return nil, err
		}
		override.Properties[name] = v
	}
	if snapshot := s.Inventory.Snapshot(); !exists(snapshot, c.Param("name")) {
		return nil, noHost(c.Asker(), snapshot, c.Param("name"))
	}
	if err := s.Inventory.SetHost(c.Request.Context(), c.Param("name"), override, serving.ExpectedHost(c, c.Param("name"))); err != nil {
		return nil, err
	}
	return s.answer(c, c.Param("name"))
}

func (s API) answer(c *serving.Call, name string) (any, error) {
	snapshot := s.Inventory.Snapshot()
	i, ok := snapshot.Index(name)
	if !ok {
		return nil, noHost(c.Asker(), snapshot, name)
	}
	h, visible := snapshot.Host(i), c.Asker().SightOf(snapshot)
	c.SetVersion(visible.HostVersion(h))
	answer := visible.Host(h)
	if counted := h.Instances == nil && h.InstanceCount > 0; visible.Instances && !counted {
		answer.Instances = make([]v1.Instance, len(h.Instances))
		for i := range h.Instances {
			answer.Instances[i] = instance(&h.Instances[i])
		}
	}
	return answer, nil
}

func exists(snapshot *inventory.Snapshot, name string) bool {
	_, known := snapshot.Index(name)
	return known
}

// noHost returns the error for a name that no host has. It names the nearest host to callers that
// may list the hosts.
func noHost(by *serving.Asker, snapshot *inventory.Snapshot, name string) error {
	var known []string
	if by.May("hosts:list", by.ProjectID) {
		for _, h := range snapshot.Hosts() {
			known = append(known, h.Name)
		}
	}
	return fault.New(fault.NotFound, "%s", fault.Unknown("host", name, known))
}

// The largest numbers of characters of the name of a property, and of a text that is its value or an element of it.
const (
	longestProperty = 255
	longestText     = 1024
)

// propertyValue converts a property from JSON. It returns nil for null, which removes the property.
func propertyValue(name string, value any) (*inventory.Value, error) {
	if strings.TrimSpace(name) == "" {
		return nil, fault.Field("properties", "a property needs a name")
	}
	if utf8.RuneCountInString(name) > longestProperty {
		return nil, fault.Field("properties", "has a name of more than %d characters", longestProperty)
	}
	if value == nil {
		return nil, nil
	}
	if number, is := value.(json.Number); is {
		if !inventory.Exact(number) {
			return nil, fault.Field("properties."+name, "%s is too large to be compared exactly; write it in quotes", number)
		}
		value, _ = number.Float64() // fields has read it
	}
	v, ok := inventory.ValueOf(value)
	if _, isList := value.([]any); isList && !ok {
		return nil, fault.Field("properties."+name, "a list may contain only strings")
	}
	if !ok {
		return nil, fault.Field("properties."+name, "must be a number, a string, true or false, or a list of strings")
	}
	texts, _ := v.Any().([]string)
	if text, isText := v.Any().(string); isText {
		texts = []string{text}
	}
	if slices.ContainsFunc(texts, func(text string) bool { return utf8.RuneCountInString(text) > longestText }) {
		return nil, fault.Field("properties."+name, "has a text of more than %d characters", longestText)
	}
	return &v, nil
}

func instance(i *inventory.Instance) v1.Instance {
	out := v1.Instance{
		ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, Status: i.Status, Flavor: i.Flavor.Name,
		Preemptible: i.Preemptible, ReservationID: i.ReservationID(),
	}
	if i.Launched != 0 {
		out.LaunchedAt = new(i.Launched.Time())
	}
	return out
}

// listProperties handles GET /v1/properties.
func (s API) listProperties(c *serving.Call) (any, error) {
	answer := v1.Properties{Properties: []v1.Property{}}
	for _, p := range s.Inventory.Snapshot().Properties() {
		if !p.Hidden || c.Asker().SeesHidden() {
			answer.Properties = append(answer.Properties, property(p))
		}
	}
	return answer, nil
}

// changeProperty handles PATCH /v1/properties/{name}.
func (s API) changeProperty(c *serving.Call) (any, error) {
	var body v1.PropertyChange
	if _, err := c.Body(&body, serving.AnyBody); err != nil {
		return nil, err
	}
	if body.Hidden == nil {
		return nil, fault.Field("hidden", "is required: true hides the property from tenants")
	}
	name := strings.TrimPrefix(c.Param("name"), "$")
	if err := s.Inventory.SetHidden(c.Request.Context(), name, *body.Hidden); err != nil {
		return nil, err
	}
	for _, p := range s.Inventory.Snapshot().Properties() {
		if p.Name == name {
			return property(p), nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no property %s", name)
}

func property(p inventory.Property) v1.Property {
	out := v1.Property{Name: p.Name, Type: string(p.Type), Values: []any{}, BuiltIn: p.BuiltIn, Hidden: p.Hidden}
	for _, v := range p.Values {
		out.Values = append(out.Values, v.Any())
	}
	return out
}
