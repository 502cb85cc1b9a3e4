package keystone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Token gives the service user's token. stale is one that a service did not accept,
// or empty; where it is the session's own, the session logs in anew. While Keystone
// refuses the login, it is asked rarely, so that it does not lock the account.
//
// It fails with an Unavailable fault.
func (s *Session) Token(ctx context.Context, stale string) (string, error) {
	client, err := s.login(ctx, stale)
	if err != nil {
		return "", err
	}
	return client.Token(), nil
}

// login is use in the words of those who call other services.
func (s *Session) login(ctx context.Context, stale string) (*gophercloud.ServiceClient, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	client, err := s.use(ctx, stale)
	if err == nil {
		return client, nil
	}
	f := &fault.Error{Kind: fault.Unavailable, Message: "Almanac gets no token from Keystone at the moment; try again", Err: err}
	if paused, ok := errors.AsType[*fault.Error](err); ok && paused.Kind == fault.Unavailable {
		f.RetryAfter, f.Err = paused.RetryAfter, paused.Err
	}
	return nil, f
}

// Endpoint gives the address of a service from the catalog, in the region, where one
// is named, and by the first of the interfaces that is there. One that is missing may
// have been registered since the login, so that the catalog is fetched anew.
//
// It fails with an Unavailable fault; with an Invalid one where the service is in
// several regions and none is named.
func (s *Session) Endpoint(ctx context.Context, serviceType, region string, interfaces []string) (string, error) {
	stale := ""
	for {
		client, err := s.login(ctx, stale)
		if err != nil {
			return "", err
		}
		catalog, err := catalogOf(client)
		if err != nil {
			return "", err
		}
		address, err := choose(catalog, serviceType, region, interfaces)
		if !fault.Is(err, fault.Unavailable) || stale != "" {
			return address, err
		}
		stale = client.Token()
	}
}

func catalogOf(client *gophercloud.ServiceClient) ([]tokens.CatalogEntry, error) {
	granted, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return nil, errNoToken
	}
	catalog, err := granted.ExtractServiceCatalog()
	if err != nil {
		return nil, err
	}
	return catalog.Entries, nil
}

func choose(catalog []tokens.CatalogEntry, serviceType, region string, interfaces []string) (string, error) {
	var all []string
	for _, face := range interfaces {
		found, elsewhere := endpointsOf(catalog, serviceType, region, face)
		if regions := regionsOf(found); len(regions) > 1 {
			return "", fault.New(fault.Invalid, "the catalog has service %s in the regions %s; say by region_name which is meant",
				serviceType, strings.Join(regions, ", "))
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

// ErrNoService says that the catalog does not have a service at all.
var ErrNoService = errors.New("the service is not in the catalog")

// endpointsOf gives the endpoints of a service by one interface, in a region or in
// any, and says where else there are some: "public in RegionTwo".
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

func regionsOf(found []tokens.Endpoint) []string {
	var regions []string
	for _, e := range found {
		regions = append(regions, e.RegionID)
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}
