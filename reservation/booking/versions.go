// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"fmt"
	"hash/fnv"

	"github.com/almanac-cloud/almanac/reservation"
)

// imagesRow is a name under which the records count the commits of reservations with an image,
// as they do for hosts: transfers share channels, so two such reservations may conflict even
// on different hosts. No host has a space in its name.
const imagesRow = "images of reservations"

// looksAtImages reports whether decisions consider images.
func (m *memory) looksAtImages() bool { return m.options.Images != nil }

// holdsRow returns a name under which the records count the new holds and waiting reservations of a project, as imagesRow does for images, so that
// replicas keep the limits on them together. The names of two projects may be the same.
func holdsRow(project string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(project)) // always succeeds
	return fmt.Sprintf("holds of %016x", h.Sum64())
}

// versioned returns the names whose versions a decision on r depends on: its hosts, imagesRow if it
// has an image, and holdsRow if its owner has not confirmed it or it waits.
func (m *memory) versioned(r *reservation.Reservation) []string {
	names := r.HostNames()
	if r.Image != "" && m.looksAtImages() {
		names = append(names, imagesRow)
	}
	if r.HeldUntil() != 0 || r.Status == reservation.Waiting {
		names = append(names, holdsRow(r.ProjectID))
	}
	return names
}
