// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Microversion returns the microversion in use with the service.
func (s *Service) Microversion(ctx context.Context) (Microversion, error) {
	var spoken Microversion
	err := s.Read(ctx, "agree on a microversion", func(_ context.Context, c *gophercloud.ServiceClient) (err error) {
		spoken, err = ParseMicroversion(c.Microversion)
		return err
	})
	return spoken, err
}

// Highest returns the highest microversion that the service offers, which may be higher than the one
// in use. It asks the service each time.
func (s *Service) Highest(ctx context.Context) (Microversion, error) {
	var most Microversion
	err := s.Read(ctx, "read its highest microversion", func(ctx context.Context, c *gophercloud.ServiceClient) (err error) {
		_, most, err = offered(ctx, c)
		return err
	})
	return most, err
}

// offered returns the lowest and the highest microversion that the service offers.
func offered(ctx context.Context, c *gophercloud.ServiceClient) (least, most Microversion, err error) {
	var document versions
	if _, err := c.Get(ctx, c.Endpoint, &document, &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK, http.StatusMultipleChoices},
	}); err != nil {
		return least, most, err
	}
	least, most = document.speaks()
	return least, most, nil
}

// found returns a client for the service at its present address. Concurrent calls after a start
// may each look it up; the last client is kept.
func (s *Service) found(ctx context.Context) (*gophercloud.ServiceClient, error) {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client != nil {
		return client, nil
	}
	client, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
	return client, nil
}

// forget drops a client, so that the next call finds the service again.
func (s *Service) forget(client *gophercloud.ServiceClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client {
		s.client = nil
	}
}

// find returns a client for the service, at the address of the catalog or of the option, with the
// microversion that both speak.
func (s *Service) find(ctx context.Context) (*gophercloud.ServiceClient, error) {
	address := s.options.Override
	if address == "" {
		var err error
		if address, err = s.session.Endpoint(ctx, s.kind.Type, s.options.Region, s.options.Interfaces); err != nil {
			return nil, err
		}
	}
	endpoint, err := s.kind.root(address)
	if err != nil {
		return nil, err
	}
	provider := &gophercloud.ProviderClient{HTTPClient: *s.http}
	provider.UserAgent.Prepend("almanac")
	client := &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: s.kind.Type}
	if (s.kind.Most == Microversion{}) {
		return client, nil
	}
	least, most, err := offered(ctx, client)
	if err != nil {
		return nil, AsAnswer(s.kind.Name, err)
	}
	spoken, err := s.kind.agree(least, most)
	if err != nil {
		return nil, err
	}
	client.Microversion = spoken.String()
	return client, nil
}

// ofProject matches the project id that some catalogs append to an address.
var ofProject = regexp.MustCompile(`(/v\d+(\.\d+)?)/[^/]+$`)

// root returns the base address of the API; it ends in a slash.
func (k Kind) root(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return "", fault.New(fault.Unavailable, "the address of %s is no http or https URL; correct its endpoint in the catalog, or endpoint_override", k.Name)
	}
	address = strings.TrimRight(address, "/")
	if k.Path != "" {
		address = ofProject.ReplaceAllString(address, "$1")
		if !ofVersion.MatchString(address) {
			address += "/" + k.Path
		}
	}
	return address + "/", nil
}

var ofVersion = regexp.MustCompile(`/v\d+(\.\d+)?$`)

// agree returns the highest microversion that both sides support.
func (k Kind) agree(least, most Microversion) (Microversion, error) {
	switch {
	case most == Microversion{}:
		return Microversion{}, fault.New(fault.Unavailable, "the server at the address of %s lists no microversions; is it %s?", k.Name, k.Name)
	case most.Less(k.Least), k.Most.Less(least):
		return Microversion{}, fault.New(fault.Unavailable, "%s speaks microversions %s to %s; Almanac needs one from %s to %s",
			k.Name, least, most, k.Least, k.Most)
	case most.Less(k.Most):
		return most, nil
	}
	return k.Most, nil
}
