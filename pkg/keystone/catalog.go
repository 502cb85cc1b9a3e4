// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// service returns the ID of our service, or "" if a dry run would create it.
//
// Keystone allows several services of one type and name. After creating one, service lists
// them again and keeps only the one with the smallest ID: of two concurrent calls the last
// one sees both services, and the other starts again when its own is gone.
func (r *registrar) service(ctx context.Context) (string, error) {
	ours, others, err := r.services(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range others {
		r.report(Warning, "service %s has type %s too; clients may find it instead", name, r.ServiceType)
	}
	if len(ours) > 0 {
		if len(ours) > 1 {
			r.report(Warning, "there are %d services %s of type %s; using %s; delete the others with openstack service delete",
				len(ours), r.ServiceName, r.ServiceType, ours[0])
		}
		r.report(Present, "service %s (%s)", r.ServiceName, r.ServiceType)
		return ours[0], nil
	}
	if r.DryRun {
		r.report(Created, "service %s (%s)", r.ServiceName, r.ServiceType)
		return "", nil
	}
	_, err = services.Create(ctx, r.client, services.CreateOpts{
		Type: r.ServiceType, Name: r.ServiceName, Description: r.Description,
	}).Extract()
	if err != nil {
		return "", told(err)
	}
	if ours, _, err = r.services(ctx); err != nil {
		return "", err
	}
	if len(ours) == 0 {
		return "", errGone
	}
	for _, extra := range ours[1:] {
		if err := told(services.Delete(ctx, r.client, extra).ExtractErr()); err != nil && openstack.Status(err) != http.StatusNotFound {
			return "", err
		}
	}
	r.report(Created, "service %s (%s)", r.ServiceName, r.ServiceType)
	return ours[0], nil
}

// errGone means that a concurrent call deleted what this one created.
var errGone = &openstack.Answer{Service: "keystone", Status: http.StatusNotFound, Method: "GET", URL: "what was just created", Message: "it is gone"}

// services returns the IDs of the services of our type and name, sorted, and the names of
// the others of our type.
func (r *registrar) services(ctx context.Context) (ours, others []string, err error) {
	pages, err := services.List(r.client, services.ListOpts{ServiceType: r.ServiceType}).AllPages(ctx)
	if err != nil {
		return nil, nil, told(err)
	}
	all, err := services.ExtractServices(pages)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if s.Name == r.ServiceName {
			ours = append(ours, s.ID)
		} else {
			others = append(others, s.Name)
		}
	}
	slices.Sort(ours)
	return ours, others, nil
}

// endpoint creates or corrects the endpoint of one interface. If concurrent calls created
// several, it keeps the one with the smallest ID, as service does.
func (r *registrar) endpoint(ctx context.Context, service, name string) error {
	url := r.URLs[name]
	if service == "" {
		r.report(Created, "%s endpoint %s in region %s", name, url, r.Region)
		return nil
	}
	ours, err := r.endpoints(ctx, service, name)
	if err != nil {
		return err
	}
	if len(ours) > 0 {
		return r.correct(ctx, ours, name)
	}
	if !r.DryRun {
		_, err := endpoints.Create(ctx, r.client, endpoints.CreateOpts{
			Availability: gophercloud.Availability(name), Region: r.Region, URL: url, ServiceID: service,
		}).Extract()
		if err != nil {
			return told(err)
		}
		if ours, err = r.endpoints(ctx, service, name); err != nil {
			return err
		}
		if len(ours) == 0 {
			return errGone
		}
		for _, extra := range ours[1:] {
			if err := told(endpoints.Delete(ctx, r.client, extra.ID).ExtractErr()); err != nil && openstack.Status(err) != http.StatusNotFound {
				return err
			}
		}
	}
	r.report(Created, "%s endpoint %s in region %s", name, url, r.Region)
	return nil
}

// correct changes the address of the first endpoint if it differs.
func (r *registrar) correct(ctx context.Context, ours []endpoints.Endpoint, name string) error {
	if len(ours) > 1 {
		r.report(Warning, "there are %d %s endpoints in region %s; using %s; delete the others with openstack endpoint delete",
			len(ours), name, r.Region, ours[0].ID)
	}
	url, before := r.URLs[name], ours[0].URL
	if before == url {
		r.report(Present, "%s endpoint %s in region %s", name, url, r.Region)
		return nil
	}
	if !r.DryRun {
		if _, err := endpoints.Update(ctx, r.client, ours[0].ID, endpoints.UpdateOpts{URL: url}).Extract(); err != nil {
			return told(err)
		}
	}
	r.report(Changed, "%s endpoint %s in region %s, which was %s", name, url, r.Region, before)
	return nil
}

// endpoints returns the endpoints of a service in the region with that interface, by id.
func (r *registrar) endpoints(ctx context.Context, service, name string) ([]endpoints.Endpoint, error) {
	pages, err := endpoints.List(r.client, endpoints.ListOpts{
		ServiceID: service, RegionID: r.Region, Availability: gophercloud.Availability(name),
	}).AllPages(ctx)
	if err != nil {
		return nil, told(err)
	}
	all, err := endpoints.ExtractEndpoints(pages)
	slices.SortFunc(all, func(a, b endpoints.Endpoint) int { return strings.Compare(a.ID, b.ID) })
	return all, err
}
