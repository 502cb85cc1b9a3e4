// SPDX-License-Identifier: Apache-2.0

package neutron

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// Marks of floating IPs that were created for reservations: the tags are those of Blazar. A floating IP
// gets the description when it is created, and the tags by a second request, so the description tells
// what is Almanac's if there was none.
const (
	tag               = "blazar"
	reservationTag    = "reservation:"
	descriptionPrefix = "Almanac reservation "
)

// atOnce is the number of addresses in one question, which bounds its URL.
const atOnce = 50

// floatingIP is a floating IP in Neutron's JSON.
type floatingIP struct {
	ID          string   `json:"id"`
	Network     string   `json:"floating_network_id"`
	Address     string   `json:"floating_ip_address"`
	Project     string   `json:"project_id"`
	Port        string   `json:"port_id"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// floating returns Neutron's floating IP, with the reservation that its tags or description name.
func (f floatingIP) floating() address.Floating {
	out := address.Floating{ID: f.ID, Network: f.Network, Address: f.Address, Project: f.Project, Port: f.Port}
	if id, marked := strings.CutPrefix(f.Description, descriptionPrefix); marked {
		out.Reservation = id
	}
	for _, t := range f.Tags {
		if id, marked := strings.CutPrefix(t, reservationTag); marked && slices.Contains(f.Tags, tag) {
			out.Reservation, out.Tagged = id, true
		}
	}
	return out
}

// Floating returns the floating IPs that exist at addresses of a network, in any project.
func (c *Client) Floating(ctx context.Context, network string, addresses []string) (list []address.Floating, err error) {
	for chunk := range slices.Chunk(addresses, atOnce) {
		query := url.Values{"floating_network_id": {network}, "floating_ip_address": chunk}
		err := pages(ctx, c, "list the floating IPs of network "+network, "floatingips", query, func(f floatingIP) {
			list = append(list, f.floating())
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// PutFloating creates a floating IP of a reservation, unless it has an id, and sets its tags. It fails
// with a Conflict fault if the address is in use or the quota of the project is used up.
func (c *Client) PutFloating(ctx context.Context, f address.Floating) error {
	if f.ID == "" {
		var made struct {
			FloatingIP floatingIP `json:"floatingip"`
		}
		body := map[string]any{"floatingip": map[string]string{
			"floating_network_id": f.Network, "floating_ip_address": f.Address, "project_id": f.Project,
			"description": descriptionPrefix + f.Reservation,
		}}
		doing := "create floating IP " + f.Address
		if err := c.service.Send(ctx, doing, http.MethodPost, "floatingips", body, &made, http.StatusCreated); err != nil {
			return err
		}
		if f.ID = made.FloatingIP.ID; f.ID == "" {
			return c.service.Malformed(doing, "the floating IP has no id")
		}
	}
	tags := map[string]any{"tags": []string{tag, reservationTag + f.Reservation}}
	return c.service.Send(ctx, "tag floating IP "+f.Address, http.MethodPut, "floatingips/"+url.PathEscape(f.ID)+"/tags", tags, nil, http.StatusOK)
}

// DeleteFloating detaches and deletes a floating IP; a missing one is no error.
func (c *Client) DeleteFloating(ctx context.Context, f address.Floating) error {
	path := "floatingips/" + url.PathEscape(f.ID)
	if f.Port != "" {
		body := map[string]any{"floatingip": map[string]any{"port_id": nil}}
		if err := c.service.Send(ctx, "detach floating IP "+f.Address, http.MethodPut, path, body, nil, http.StatusOK); err != nil {
			return openstack.UnlessMissing(err)
		}
	}
	return openstack.UnlessMissing(c.service.Send(ctx, "delete floating IP "+f.Address, http.MethodDelete, path, nil, nil, http.StatusNoContent))
}
