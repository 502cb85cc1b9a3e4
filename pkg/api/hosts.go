// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// listHosts handles GET /v1/hosts: the hosts that match host_properties, sorted by name.
func (s *server) listHosts(c *gin.Context) (any, error) {
	q := readQuery(c, "limit", "marker", "host_properties")
	limit, marker := q.number("limit", defaultPage, 1, largestPage), q.text("marker")
	properties := q.text("host_properties")
	if q.err != nil {
		return nil, q.err
	}
	by, snapshot := asking(c), s.Inventory.Snapshot()
	filter, err := inventory.ParseFilter([]byte(properties), snapshot, by.seesHidden())
	if err != nil {
		return nil, err
	}
	if _, known := snapshot.Index(marker); marker != "" && !known {
		return nil, fault.Field("marker", "there is no host %s", marker)
	}
	page, visible := v1.HostList{Hosts: []v1.Host{}, UnknownProperties: filter.Unknown()}, seenBy(by, snapshot)
	for _, h := range snapshot.Hosts() {
		if h.Name <= marker || !filter.Matches(h, false) {
			continue
		}
		if len(page.Hosts) == limit {
			page.Next = v1.Marker(page.Hosts[limit-1].Name)
			break
		}
		page.Hosts = append(page.Hosts, host(h, visible))
	}
	return page, nil
}

// showHost handles GET /v1/hosts/{name}.
func (s *server) showHost(c *gin.Context) (any, error) {
	return s.answerHost(c, c.Param("name"))
}

// changeHost handles PATCH /v1/hosts/{name}.
func (s *server) changeHost(c *gin.Context) (any, error) {
	var body v1.HostChange
	if _, err := s.body(c, &body, s.MaxBodyBytes); err != nil {
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
		return nil, noHost(asking(c), snapshot, c.Param("name"))
	}
	if err := s.Inventory.SetHost(c.Request.Context(), c.Param("name"), override); err != nil {
		return nil, err
	}
	return s.answerHost(c, c.Param("name"))
}

func (s *server) answerHost(c *gin.Context, name string) (any, error) {
	snapshot := s.Inventory.Snapshot()
	i, ok := snapshot.Index(name)
	if !ok {
		return nil, noHost(asking(c), snapshot, name)
	}
	h, visible := snapshot.Host(i), seenBy(asking(c), snapshot)
	answer := host(h, visible)
	if counted := h.Instances == nil && h.InstanceCount > 0; visible.instances && !counted {
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
func noHost(by *asker, snapshot *inventory.Snapshot, name string) error {
	var known []string
	if by.may("hosts:list", by.ProjectID) {
		for _, h := range snapshot.Hosts() {
			known = append(known, h.Name)
		}
	}
	return fault.New(fault.NotFound, "%s", fault.Unknown("host", name, known))
}

// propertyValue converts a property from JSON. It returns nil for null, which removes the property.
func propertyValue(name string, value any) (*inventory.Value, error) {
	if strings.TrimSpace(name) == "" {
		return nil, fault.Field("properties", "a property needs a name")
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
	return &v, nil
}

// sight states what a caller may see of hosts.
type sight struct {
	properties map[string]bool // by name
	instances  bool            // and what their problems are
}

func seenBy(by *asker, snapshot *inventory.Snapshot) sight {
	s := sight{properties: make(map[string]bool), instances: by.may("hosts:get_instances", by.ProjectID)}
	for _, p := range snapshot.Properties() {
		s.properties[p.Name] = !p.Hidden || by.seesHidden()
	}
	return s
}

// host returns a host without its instances.
func host(h *inventory.Host, visible sight) v1.Host {
	out := v1.Host{
		Name: h.Name, Resources: v1.Resources(h.Capacity), Used: v1.Resources(h.Used), InstanceCount: h.InstanceCount, Zone: h.Zone,
		Aggregates: append([]string{}, h.Aggregates...), Traits: append([]string{}, h.Traits...),
		Properties: make(map[string]any), Reservable: h.Reservable, Power: string(cmp.Or(h.Power, inventory.PowerOn)), BootSeconds: h.BootSeconds,
	}
	if !math.IsInf(h.FlopsPerWatt, 0) && !math.IsNaN(h.FlopsPerWatt) {
		out.FlopsPerWatt = h.FlopsPerWatt
	}
	if out.Problem = h.Failure(); out.Problem != "" && !visible.instances {
		out.Problem = "it accepts no instances now"
	}
	for name, value := range h.Properties {
		if visible.properties[name] {
			out.Properties[name] = value.Any()
		}
	}
	return out
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
func (s *server) listProperties(c *gin.Context) (any, error) {
	answer := v1.Properties{Properties: []v1.Property{}}
	for _, p := range s.Inventory.Snapshot().Properties() {
		if !p.Hidden || asking(c).seesHidden() {
			answer.Properties = append(answer.Properties, property(p))
		}
	}
	return answer, nil
}

// changeProperty handles PATCH /v1/properties/{name}.
func (s *server) changeProperty(c *gin.Context) (any, error) {
	var body v1.PropertyChange
	if _, err := s.body(c, &body, s.MaxBodyBytes); err != nil {
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
