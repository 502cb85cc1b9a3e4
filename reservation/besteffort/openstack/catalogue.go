// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// borrowed is a session with a caller's token and the catalog of the service user: its calls run as
// the caller, who sees only what they may use.
type borrowed struct {
	openstack.Session
	token string
}

// Token implements openstack.Session. The caller's token is not renewed.
func (b borrowed) Token(context.Context, string) (string, error) { return b.token, nil }

// Flavor implements requests.Catalogue.
func (c *Servers) Flavor(ctx context.Context, by requests.Caller, named string) (state.Named, resource.Vector, error) {
	compute, err := nova.New(borrowed{c.Session, by.Token}, c.Nova)
	if err != nil {
		return state.Named{}, resource.Vector{}, err
	}
	all, err := compute.Flavors(ctx)
	if err != nil {
		return state.Named{}, resource.Vector{}, err
	}
	at := slices.IndexFunc(all, func(f inventory.Flavor) bool { return f.ID == named })
	if at < 0 {
		at = slices.IndexFunc(all, func(f inventory.Flavor) bool { return f.Name == named })
	}
	if at < 0 {
		return state.Named{}, resource.Vector{}, fault.Field("flavor", "there is no flavor %.100q that you may use", named)
	}
	f := all[at]
	if why := unsuspendable(f.ExtraSpecs); why != "" {
		return state.Named{}, resource.Vector{}, fault.Field("flavor", "%.100q cannot be used for best-effort work: %s", named, why)
	}
	if why := c.unserved(f.ExtraSpecs); why != "" {
		return state.Named{}, resource.Vector{}, fault.Field("flavor", "%.100q cannot be used for best-effort work: %s", named, why)
	}
	return state.Named{ID: f.ID, Name: f.Name}, f.Resources, nil
}

// unserved returns the reason why servers of a flavor cannot run on every host of the pool; "" if
// they can. Best-effort work is placed by free capacity alone.
func (c *Servers) unserved(specs map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		if strings.HasPrefix(key, "aggregate_instance_extra_specs:") {
			return "it asks for hosts of some aggregates"
		}
		group, trait, is := strings.Cut(key, ":")
		if value := specs[key]; !is || !strings.HasPrefix(group, "trait") || value != "required" && value != "forbidden" || c.Hosts == nil {
			continue
		}
		for _, h := range c.Hosts().Hosts() {
			if has := slices.Contains(h.Traits, trait); h.Reservable && has != (specs[key] == "required") {
				return fmt.Sprintf("trait %s is %s, and not every host for best-effort work is such", trait, specs[key])
			}
		}
	}
	return ""
}

// unsuspendable returns the reason why suspended servers of a flavor would not make room: Nova
// refuses to suspend them (nova/compute/api.py suspend), or they keep resources of the host that
// Placement does not count. It returns "" if they can be suspended.
func unsuspendable(specs map[string]string) string {
	for key, value := range specs {
		switch {
		case key == inventory.ReservationMark:
			return "it is that of a reservation"
		case key == "pci_passthrough:alias", key == "accel:device_profile":
			return "servers with devices of the host cannot be suspended for others"
		case key == "hw:cpu_policy" && value != "shared", strings.HasPrefix(key, "resources") && strings.HasSuffix(key, ":PCPU"):
			return "a host keeps dedicated CPUs for a server that is suspended"
		case strings.HasPrefix(key, "resources") && strings.HasSuffix(key, "VGPU"):
			return "a host keeps a virtual GPU for a server that is suspended"
		case key == "hw:mem_encryption" && strings.EqualFold(value, "true"):
			return "encrypted memory cannot be suspended"
		}
	}
	return ""
}

// Image implements requests.Catalogue.
func (c *Servers) Image(ctx context.Context, by requests.Caller, named string) (state.Named, error) {
	images, err := glance.New(borrowed{c.Session, by.Token}, c.Glance)
	if err != nil {
		return state.Named{}, err
	}
	one, err := images.Image(ctx, named)
	if fault.Is(err, fault.NotFound) {
		var all []glance.Image
		if all, err = images.Named(ctx, named); err == nil && len(all) > 1 {
			return state.Named{}, fault.Field("image", "there are %d images with the name %.100q; use an id", len(all), named)
		}
		if len(all) == 1 {
			one = all[0]
		}
	}
	switch {
	case err != nil:
		return state.Named{}, err
	case one.ID == "":
		return state.Named{}, fault.Field("image", "there is no image %.100q that you may use", named)
	case one.Status != glance.StatusActive:
		return state.Named{}, fault.Field("image", "%.100q cannot be used: it is %s", named, one.Status)
	}
	return state.Named{ID: one.ID, Name: one.Name}, nil
}
