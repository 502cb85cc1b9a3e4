// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// Images implements controller.Glance with Glance's API. Almanac's user sees all images; an image
// that a user of the project could not see counts as absent (glance/db/utils.py is_image_visible).
type Images struct {
	Glance *glance.Client
}

var _ controller.Glance = Images{}

// IsID implements controller.Glance.
func (i Images) IsID(text string) bool { return placing.IsUUID(text) }

// Find implements controller.Glance.
func (i Images) Find(ctx context.Context, text, project string) (controller.Image, error) {
	found, err := i.meant(ctx, text, project)
	switch {
	case errors.Is(err, keystone.ErrNoService):
		return controller.Image{}, controller.ErrNoGlance
	case err != nil:
		return controller.Image{}, fmt.Errorf("look up image %q: %w", text, err)
	}
	if found.Status != glance.StatusActive || found.Size == nil || *found.Size <= 0 {
		return controller.Image{}, fault.Field("image", "image %s is %s and has no data yet; upload it first", found.ID, found.Status)
	}
	return known(found), nil
}

func known(i glance.Image) controller.Image {
	one := controller.Image{ID: i.ID, Name: i.Name}
	if i.Size != nil {
		one.Bytes = *i.Size
	}
	return one
}

// meant returns the image that a user of a project means by an id or a name.
func (i Images) meant(ctx context.Context, text, project string) (glance.Image, error) {
	if placing.IsUUID(text) {
		found, err := i.Glance.Image(ctx, strings.ToLower(text))
		if err == nil {
			if seen, err := i.sees(ctx, found, project, false); seen || err != nil {
				return found, err
			}
		} else if !fault.Is(err, fault.NotFound) {
			return glance.Image{}, err
		}
	}
	seen, err := i.named(ctx, text, project)
	if fault.Is(err, fault.Invalid) && fault.Of(err).Field == "" {
		return glance.Image{}, fault.Field("image", "Glance cannot search for an image named %q; use its id", text)
	}
	if err != nil {
		return glance.Image{}, err
	}
	var ready []glance.Image
	for _, one := range seen {
		if one.Status == glance.StatusActive {
			ready = append(ready, one)
		}
	}
	if len(ready) > 0 {
		seen = ready
	}
	switch len(seen) {
	case 0:
		return glance.Image{}, fault.Field("image", "there is no image %q; use the id or name of an image that your project can use", text)
	case 1:
		return seen[0], nil
	}
	return glance.Image{}, fault.Field("image", "%d images have the name %q; use the id of one of them", len(seen), text)
}

// mostShared is the largest number of images with one name for which Images checks whether the
// project has accepted them; each check is a call to Glance.
const mostShared = 20

// named returns the images with a name that a user of a project sees in lists: public ones and the
// project's own or, if there are none, those that others share with the project.
func (i Images) named(ctx context.Context, name, project string) (seen []glance.Image, err error) {
	filters := []glance.Filter{{Visibility: glance.VisibilityPublic}}
	if project != "" {
		filters = append(filters, glance.Filter{Owner: project})
	}
	for _, f := range filters {
		found, err := i.Glance.Among(ctx, name, f)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if !slices.ContainsFunc(seen, func(o glance.Image) bool { return o.ID == one.ID }) {
				seen = append(seen, one)
			}
		}
	}
	if len(seen) > 0 {
		return seen, nil
	}
	shared, err := i.Glance.Among(ctx, name, glance.Filter{Visibility: glance.VisibilityShared})
	if err != nil {
		return nil, err
	}
	if len(shared) > mostShared {
		return nil, fault.Field("image", "%d images of other projects have the name %q; use the id of the one that is shared with you", len(shared), name)
	}
	for _, one := range shared {
		ok, err := i.sees(ctx, one, project, true)
		if err != nil {
			return nil, err
		}
		if ok {
			seen = append(seen, one)
		}
	}
	return seen, nil
}

// sees reports whether a user of a project sees an image: in lists if listed is true, otherwise
// also if only its id leads to it.
func (i Images) sees(ctx context.Context, image glance.Image, project string, listed bool) (bool, error) {
	switch {
	case image.Visibility == glance.VisibilityPublic, image.Owner == project && project != "":
		return true, nil
	case image.Visibility == glance.VisibilityCommunity:
		return !listed, nil
	case image.Visibility != glance.VisibilityShared:
		return false, nil
	}
	status, err := i.Glance.MemberStatus(ctx, image.ID, project)
	return status == glance.MemberAccepted || status != "" && !listed, err
}

// Look implements controller.Glance.
func (i Images) Look(ctx context.Context, id string) (one controller.Image, gone bool, err error) {
	found, err := i.Glance.Image(ctx, id)
	switch {
	case errors.Is(err, keystone.ErrNoService):
		return controller.Image{}, false, controller.ErrNoGlance
	case fault.Is(err, fault.NotFound):
		return controller.Image{}, true, nil
	case err != nil:
		return controller.Image{}, false, err
	}
	return known(found), found.Status != glance.StatusActive, nil
}
