// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Token returns the service user's token. stale is a token that a service refused, or empty;
// if it is the session's own, the session logs in again. While Keystone refuses the login,
// the session pauses between logins, so that Keystone does not lock the account.
//
// It fails with an Unavailable fault.
func (s *Session) Token(ctx context.Context, stale string) (string, error) {
	g, err := s.login(ctx, stale)
	return g.token, err
}

// login returns the grant of the session. Its errors are meant for callers of other services.
func (s *Session) login(ctx context.Context, stale string) (grant, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	g, err := s.holder.get(ctx, stale)
	if err == nil {
		return g, nil
	}
	f := &fault.Error{Kind: fault.Unavailable, Message: "Almanac gets no token from Keystone at the moment; try again", Err: err}
	if paused, ok := errors.AsType[*fault.Error](err); ok && paused.Kind == fault.Unavailable {
		f.RetryAfter, f.Err = paused.RetryAfter, paused.Err
	}
	return grant{}, f
}

// call calls do with the grant of the session, and once more with a new one if Keystone has revoked its
// token.
func (s *Session) call(ctx context.Context, do func(g grant) error) error {
	g, err := s.login(ctx, "")
	if err != nil {
		return err
	}
	if err = do(g); openstack.Status(err) != http.StatusUnauthorized {
		return err
	}
	if g, err = s.login(ctx, g.token); err != nil {
		return err
	}
	return do(g)
}

// Endpoint returns the address of a service from the catalog, in the region or, with an empty
// region, in any, at the first of the interfaces that has one. If the catalog has none, it
// logs in again, because the service may have been registered since.
//
// It fails with an Unavailable fault, and with an Invalid fault if the service is in several
// regions and region is empty.
func (s *Session) Endpoint(ctx context.Context, serviceType, region string, interfaces []string) (string, error) {
	stale := ""
	for {
		g, err := s.login(ctx, stale)
		if err != nil {
			return "", err
		}
		address, err := choose(g.catalog, serviceType, region, interfaces, "region_name")
		if !fault.Is(err, fault.Unavailable) || stale != "" {
			return address, err
		}
		stale = g.token
	}
}

// choose returns the address of a service; see Session.Endpoint. option is the option that
// selects a region, for errors.
func choose(catalog []tokens.CatalogEntry, serviceType, region string, interfaces []string, option string) (string, error) {
	var all []string
	for _, face := range interfaces {
		found, elsewhere := endpointsOf(catalog, serviceType, region, face)
		if regions := regionsOf(found); len(regions) > 1 {
			return "", fault.Field(option, "the catalog has service %s in the regions %s; choose one of them", serviceType, strings.Join(regions, ", "))
		}
		if len(found) > 0 {
			return found[0].URL, nil
		}
		all = elsewhere
	}
	where := ""
	if region != "" {
		where = " of region " + region
	}
	if len(all) > 0 {
		return "", fault.New(fault.Unavailable, "the catalog%s has no endpoint of service %s with interface %s; there is %s",
			where, serviceType, strings.Join(interfaces, " or "), strings.Join(all, ", "))
	}
	return "", &fault.Error{
		Kind: fault.Unavailable, Message: fmt.Sprintf("there is no service %s in the catalog%s", serviceType, where), Err: ErrNoService,
	}
}

// ErrNoService means that the catalog has no endpoint of a service.
var ErrNoService = errors.New("the service is not in the catalog")

// endpointsOf returns the endpoints of a service with one interface, in a region or, with an
// empty region, in any. elsewhere describes its other endpoints: "public in RegionTwo".
func endpointsOf(catalog []tokens.CatalogEntry, serviceType, region, face string) (found []tokens.Endpoint, elsewhere []string) {
	for _, service := range catalog {
		for _, e := range service.Endpoints {
			switch {
			case service.Type != serviceType:
			case e.Interface == face && (region == "" || region == e.RegionID):
				found = append(found, e)
			default:
				elsewhere = append(elsewhere, e.Interface+" in "+e.RegionID)
			}
		}
	}
	return found, elsewhere
}

// regionsOf returns the regions of endpoints, sorted, each once.
func regionsOf(found []tokens.Endpoint) []string {
	var regions []string
	for _, e := range found {
		regions = append(regions, e.RegionID)
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}
