// SPDX-License-Identifier: Apache-2.0

package glance

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Image is an image in Glance's JSON (glance/api/v2/images.py).
type Image struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Status     string `json:"status"`     // "active" if its data exists
	Visibility string `json:"visibility"` // public, community, shared or private
	Owner      string `json:"owner"`      // id of a project
	// Size is the number of bytes to transfer; nil while there is no data.
	Size *int64 `json:"size"`
}

// The states and visibilities that Almanac uses.
const (
	StatusActive   = "active"
	MemberAccepted = "accepted" // status of a member

	VisibilityPublic    = "public"
	VisibilityCommunity = "community"
	VisibilityShared    = "shared"
)

// Image returns the image with that id; a missing image is a NotFound fault.
func (c *Client) Image(ctx context.Context, id string) (Image, error) {
	doing := "show image " + id
	var found Image
	if err := c.service.Get(ctx, doing, "images/"+url.PathEscape(id), &found); err != nil {
		return Image{}, err
	}
	if found.ID == "" || found.Status == "" {
		return Image{}, c.service.Malformed(doing, "the image has no id or status")
	}
	return found, nil
}

const (
	pageSize = 100
	// mostPages bounds a list that a proxy repeats forever.
	mostPages = 100
)

// Filter selects images.
type Filter struct {
	Visibility string // empty means any
	Owner      string // id of a project; empty means any
}

// Named returns the images of that name that Almanac may see, of all projects and of any
// visibility. It returns the errors of Among.
func (c *Client) Named(ctx context.Context, name string) ([]Image, error) {
	return c.Among(ctx, name, Filter{})
}

// Among returns the images of that name that match the filter. It returns an Invalid fault for
// a name that Glance treats as an operator, such as "gt:5".
func (c *Client) Among(ctx context.Context, name string, f Filter) ([]Image, error) {
	const doing = "list the images of a name"
	query := url.Values{"name": {name}, "visibility": {cmp.Or(f.Visibility, "all")}, "limit": {strconv.Itoa(pageSize)}}
	if f.Owner != "" {
		query.Set("owner", f.Owner)
	}
	var all []Image
	for range mostPages {
		var page struct {
			Images []Image `json:"images"`
			Next   string  `json:"next"`
		}
		if err := c.service.Get(ctx, doing, "images?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		if page.Images == nil {
			return nil, c.service.Malformed(doing, "it contains no list of images")
		}
		for _, i := range page.Images {
			if i.Name == name { // Glance treats names such as "in:a,b" as more than one
				all = append(all, i)
			}
		}
		if page.Next == "" || len(page.Images) == 0 {
			return all, nil
		}
		query.Set("marker", page.Images[len(page.Images)-1].ID)
	}
	return nil, c.service.Malformed(doing, "its list does not end")
}

// MemberStatus returns the status of a project as a member of a shared image: accepted, pending
// or rejected; empty if it is not a member.
func (c *Client) MemberStatus(ctx context.Context, id, project string) (string, error) {
	var member struct {
		Status string `json:"status"`
	}
	path := "images/" + url.PathEscape(id) + "/members/" + url.PathEscape(project)
	err := c.service.Get(ctx, "look for a member of image "+id, path, &member)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return member.Status, err
}
