// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// RequestSpec is nova-conductor's request for a host (nova/objects/request_spec.py
// RequestSpec): version 1.x of any x. It keeps unknown fields.
type RequestSpec struct {
	// object is a function, so that fmt cannot print its contents, wherever fmt meets it.
	object func() *Object
}

// Options are the parts of a request outside its RequestSpec.
type Options struct {
	ID string // of the API request, from the context of the message
	// Instances are the instance_uuids of the call. If empty, as in version 4.3 of the call,
	// the request is for the instance in the RequestSpec.
	Instances []string
	// Alternates is the number of further hosts wanted for each chosen one.
	Alternates  int
	Preemptible inventory.PreemptibleRule
	Prefilters  Prefilters
	// Release is the oldest release that the cloud's Nova can be of. The request may reveal a later
	// one.
	Release release.Release
}

// ReadRequestSpec reads the argument spec_obj of select_destinations.
func ReadRequestSpec(raw json.RawMessage) (RequestSpec, error) {
	const field = "spec_obj"
	o, err := readObject(raw)
	if err != nil {
		return RequestSpec{}, fault.Field(field, "%s", fault.Of(err).Message)
	}
	if err := o.mustBe(field, "RequestSpec 1"); err != nil {
		return RequestSpec{}, err
	}
	return RequestSpec{func() *Object { return &o }}, nil
}

// String returns name and version: "RequestSpec 1.14".
func (s RequestSpec) String() string {
	if s.object == nil {
		return "RequestSpec"
	}
	return s.object().String()
}

// Format prints the same for every verb.
func (s RequestSpec) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns the same for slog.
func (s RequestSpec) LogValue() slog.Value { return slog.StringValue(s.String()) }

// reader returns a reader of the spec's fields; one without fields if there is no spec.
func (s RequestSpec) reader() reader {
	r := reader{err: new(error)}
	if s.object != nil {
		r.data = s.object().Data
	}
	return r
}

// Request returns the request as nova-scheduler would send it to Placement and its filters
// (nova/scheduler/utils.py ResourceRequest.from_request_spec and resources_from_request_spec,
// request_filter.py), and what Almanac cannot judge about it, which the Request then lacks.
func (s RequestSpec) Request(o Options) (placing.Request, Unsupported, error) {
	r := s.reader()
	f := readFlavor(r)
	image := r.object("image", "ImageMeta 1")
	properties := image.object("properties", "ImageMetaProps 1")
	nova := max(o.Release, release.OfImageProperties(properties.minor()))
	p := placing.Request{
		ID: o.ID, ProjectID: r.text("project_id"), UserID: r.text("user_id"),
		Instances: instances(r, o.Instances), Alternates: o.Alternates,
		Hints: hints(r), Zone: r.text("availability_zone"),
		ForceHosts: r.texts("force_hosts"), ForceNodes: r.texts("force_nodes"), IgnoreHosts: r.texts("ignore_hosts"),
		Group:      group(r.object("instance_group", "InstanceGroup 1")),
		FlavorName: f.name, ExtraSpecs: f.extraSpecs, Resources: f.resources(r.yes("is_bfv")),
		ImageID: image.text("id"), ImageProperties: imageProperties(properties),
	}
	destination(r.object("requested_destination", "Destination 1"), &p)
	// A rebuild forces the host of its instance (nova/compute/api.py rebuild). Without a forced
	// host, the hint is not Nova's.
	p.Rebuild = slices.Equal(p.Hints["_nova_check_type"], []string{"rebuild"}) && len(p.ForceHosts) > 0
	p.Required, p.Forbidden = f.traits()
	p.Required = sorted(append(p.Required, properties.texts("traits_required")...))
	var doubts Unsupported
	if !p.Rebuild {
		// Nova adds this to every query of Placement: request_filter.py compute_status_filter.
		p.Forbidden = append(p.Forbidden, "COMPUTE_STATUS_DISABLED")
		var required []string
		required, doubts = o.Prefilters.traits(r, image, &p, nova)
		for _, trait := range required {
			// Not in Required: they do not open an aggregate to a request (isolate_aggregates).
			p.AnyOf = append(p.AnyOf, []string{trait})
		}
	}
	p.Forbidden = sorted(p.Forbidden)
	p.Preemptible = o.Preemptible.Marks(&inventory.Instance{
		ProjectID: p.ProjectID, Flavor: inventory.Flavor{ExtraSpecs: p.ExtraSpecs}, Hints: p.Hints,
	})
	beyond := append(unsupportedIn(r, &p, nova), doubts...)
	if *r.err != nil {
		return placing.Request{}, nil, fmt.Errorf("read RequestSpec: %w", *r.err)
	}
	return p, beyond, nil
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// instances returns the ids of the instances to place.
func instances(r reader, given []string) []string {
	if len(given) > 0 {
		return given
	}
	id := r.text("instance_uuid")
	if id == "" || !r.null("num_instances") && r.amount("num_instances") != 1 {
		r.wrong("instance_uuid", "must name the instance, since the call names none")
	}
	return []string{id}
}

// destination reads the requested destination. Its cell is only a preference if the instance
// may leave it (nova/scheduler/host_manager.py get_host_states_by_uuids).
func destination(d reader, p *placing.Request) {
	p.Host, p.Node = d.text("host"), d.text("node")
	for _, either := range d.texts("aggregates") {
		p.MemberOf = append(p.MemberOf, strings.Split(either, ","))
	}
	p.NotMemberOf = d.texts("forbidden_aggregates")
	cell := &p.Cell
	if d.yes("allow_cross_cell_move") {
		cell = &p.PreferredCell
	}
	*cell = d.object("cell", "CellMapping 1").text("uuid")
}

// hints reads the scheduler hints: lists of strings. A single value is a list of one.
func hints(r reader) map[string][]string {
	var raws map[string]json.RawMessage
	r.read("scheduler_hints", "a map of lists", &raws)
	if raws == nil {
		return nil
	}
	read := make(map[string][]string, len(raws))
	for name, raw := range raws {
		elements := []json.RawMessage{raw}
		if raw[0] == '[' || isNull(raw) {
			elements = nil
			_ = json.Unmarshal(raw, &elements) // part of JSON that was valid
		}
		values := make([]string, len(elements))
		for i, element := range elements {
			value, ok := scalar(element)
			if !ok {
				r.wrong("scheduler_hints", fmt.Sprintf("has the hint %.100q, which must be a list of strings", name))
			}
			values[i] = value
		}
		read[name] = values
	}
	return read
}

// scalar returns a string, a number or a bool as Python's str does.
func scalar(raw json.RawMessage) (text string, ok bool) {
	switch {
	case isNull(raw) || raw[0] == '[' || raw[0] == '{':
		return "", false
	case raw[0] == '"':
		return unquote(raw)
	case raw[0] == 't':
		return "True", true
	case raw[0] == 'f':
		return "False", true
	}
	return string(raw), true
}

// imageProperties reads an ImageMetaProps as strings. Lists and maps stay JSON.
func imageProperties(r reader) map[string]string {
	if r.data == nil {
		return nil
	}
	read := make(map[string]string, len(r.data))
	for name, raw := range r.data {
		if isNull(raw) {
			continue
		}
		text, ok := scalar(raw)
		if !ok {
			text = string(raw)
		}
		read[name] = text
	}
	return read
}

// group reads a server group. Before version 1.11 its policy was the first of a list.
func group(r reader) *placing.Group {
	if r.data == nil {
		return nil
	}
	g := placing.Group{ID: r.text("uuid"), Policy: r.text("policy"), Hosts: r.texts("hosts"), Members: r.texts("members")}
	if policies := r.texts("policies"); g.Policy == "" && len(policies) > 0 {
		g.Policy = policies[0]
	}
	if most, ok := r.textMap("_rules")["max_server_per_host"]; ok {
		number, ok, tooLarge := parseAmount(most)
		if !ok || tooLarge {
			r.wrong("_rules", "has max_server_per_host, which must be an integer")
		}
		g.MaxPerHost = int(number)
	}
	return &g
}
