// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// bound returns the hosts of the aggregates that have a metadata key, and those of them that are in
// an aggregate with a fitting value. A key can have several values, separated by commas
// (nova/scheduler/filters/utils.py aggregate_metadata_get_by_host).
func bound(s *inventory.States, key string, fits func(value string) bool) (all, fitting hostset.Set) {
	all, fitting = hostset.New(s.Len()), hostset.New(s.Len())
	for _, a := range s.Aggregates() {
		list, has := a.Metadata[key]
		if !has {
			continue
		}
		all.Unite(s.Members(a.UUID))
		for value := range strings.SplitSeq(list, ",") {
			if fits(strings.TrimFunc(value, space)) {
				fitting.Unite(s.Members(a.UUID))
				break
			}
		}
	}
	return all, fitting
}

// outside returns the hosts without a value under the key, and those with a fitting one.
func outside(s *inventory.States, key string, fits func(value string) bool) hostset.Set {
	all, fitting := bound(s, key, fits)
	all.Subtract(fitting)
	open := s.All().Clone()
	open.Subtract(all)
	return open
}

// MultiTenancy keeps other projects' requests off the hosts of aggregates whose metadata
// filter_tenant_id lists projects (nova/scheduler/filters/aggregate_multitenancy_isolation.py).
// A host in several such aggregates accepts the projects of all of them.
type MultiTenancy struct{ oncePerRequest }

func (MultiTenancy) Name() string { return "AggregateMultiTenancyIsolation" }

func (MultiTenancy) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	open := outside(s, tenantKey, func(project string) bool { return project == r.ProjectID })
	return subset{open, func(int) string { return "the host is in an aggregate of other projects" }}
}

// TypeAffinity keeps a host whose aggregates list flavors in their metadata instance_type to
// these flavors (nova/scheduler/filters/type_filter.py).
type TypeAffinity struct{ oncePerRequest }

func (TypeAffinity) Name() string { return "AggregateTypeAffinityFilter" }

func (TypeAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	open := outside(s, "instance_type", func(flavor string) bool { return flavor == r.FlavorName })
	return subset{open, func(int) string { return "the host is in an aggregate for other flavors than " + r.FlavorName }}
}

// ImageIsolation keeps a host to images whose properties match the metadata of its aggregates.
// Only properties that the image has are compared
// (nova/scheduler/filters/aggregate_image_properties_isolation.py).
type ImageIsolation struct {
	oncePerRequest
	// Namespace and Separator form the prefix of the keys that count
	// (aggregate_image_properties_isolation_namespace and _separator). An empty Namespace means
	// that all keys count.
	Namespace, Separator string
}

func (ImageIsolation) Name() string { return "AggregateImagePropertiesIsolation" }

// For implements Filter. A host in an aggregate for other images is left out.
func (f ImageIsolation) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if forced(r) {
		return nil
	}
	open, keys := s.All().Clone(), f.keys(r)
	for _, key := range keys {
		open.Keep(fittingImage(s, r, key))
	}
	return subset{open, func(i int) string {
		for _, key := range keys {
			if !fittingImage(s, r, key).Has(i) {
				return fmt.Sprintf("the host is in an aggregate for images with another %s than %q", key, r.ImageProperties[key])
			}
		}
		return ""
	}}
}

func fittingImage(s *inventory.States, r *placing.Request, key string) hostset.Set {
	return outside(s, key, func(value string) bool { return value == r.ImageProperties[key] })
}

// keys returns the names of the image's properties that are compared, sorted: those that begin with
// the prefix, or all if no namespace is set, without those that Nova treats as absent.
func (f ImageIsolation) keys(r *placing.Request) (keys []string) {
	for key, value := range r.ImageProperties {
		if !nothing(key, value) && (f.Namespace == "" || strings.HasPrefix(key, f.Namespace+f.Separator)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// nothing reports whether Nova's filter treats a property as absent: it is empty, zero or
// false.
func nothing(key, value string) bool {
	return value == "" || value == "[]" || (value == "0" || value == "False") && !slices.Contains(textual, key)
}

// textual are the properties with arbitrary text (nova/objects/image_meta.py).
var textual = strings.Fields("hw_auto_disk_config hw_cpu_realtime_mask hw_disk_type hw_machine_type hw_mem_page_size img_owner_id " +
	"img_root_device_name img_signature os_admin_user os_command_line os_distro")

// InstanceExtraSpecs keeps a request to hosts whose aggregates' metadata meets the flavor's
// extra specs: those without a namespace, and those of aggregate_instance_extra_specs
// (nova/scheduler/filters/aggregate_instance_extra_specs.py).
type InstanceExtraSpecs struct{ oncePerRequest }

func (InstanceExtraSpecs) Name() string { return "AggregateInstanceExtraSpecsFilter" }

// For implements Filter. Each extra spec of the flavor must fit the metadata of the host's aggregates.
func (InstanceExtraSpecs) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	var specs []membership
	for _, spec := range slices.Sorted(maps.Keys(r.ExtraSpecs)) {
		key := spec
		if namespace, rest, scoped := strings.Cut(spec, ":"); scoped {
			if key = rest; namespace != "aggregate_instance_extra_specs" {
				continue
			}
		}
		specs = append(specs, newMembership(s, spec, key, compare(r.ExtraSpecs[spec])))
	}
	if specs == nil {
		return nil
	}
	return &memberships{specs: specs}
}

// membership is what an extra spec requires of the aggregates of a host.
type membership struct {
	spec, key string
	asked     comparison
	// having are the hosts with the key, fitting those with a value that meets the requirement,
	// and wrong those with a value that cannot be compared; err is the reason.
	having, fitting, wrong hostset.Set
	err                    error
}

func newMembership(s *inventory.States, spec, key string, asked comparison) membership {
	m := membership{spec: spec, key: key, asked: asked}
	m.having, m.fitting = bound(s, key, func(value string) bool { fits, _ := asked.holds(value); return fits })
	_, m.wrong = bound(s, key, func(value string) bool {
		_, err := asked.holds(value)
		if err != nil {
			m.err = err
		}
		return err != nil
	})
	return m
}

// memberships contains the memberships of all extra specs. If a value cannot be compared, Nova may
// fail the request or not, depending on the random order of a host's values; this filter always
// refuses it.
type memberships struct {
	specs  []membership
	failed string
}

func (m *memberships) Keep(hosts hostset.Set) {
	for _, spec := range m.specs {
		wrong := hosts.Clone()
		if wrong.Keep(spec.wrong); !wrong.Empty() {
			m.failed = fmt.Sprintf("the extra spec %s cannot be compared with what an aggregate has for it: %v", spec.spec, spec.err)
			clear(hosts)
			return
		}
		hosts.Keep(spec.fitting)
	}
}

func (m *memberships) Why(i int) string {
	for _, spec := range m.specs {
		switch {
		case spec.fitting.Has(i):
		case !spec.having.Has(i):
			return fmt.Sprintf("no aggregate of the host has %s, which the extra spec %s requires", spec.key, spec.spec)
		default:
			return fmt.Sprintf("the aggregates of the host have another %s than the extra spec %s requires, %q", spec.key, spec.spec, spec.asked.text)
		}
	}
	return m.failed
}
