// SPDX-License-Identifier: Apache-2.0

package booking

import "github.com/almanac-cloud/almanac/reservation"

// imagesRow is a name under which the records count the commits of reservations with an image,
// as they do for hosts: transfers share channels, so two such reservations may conflict even
// on different hosts. No host has a space in its name.
const imagesRow = "images of reservations"

// looksAtImages reports whether decisions consider images.
func (m *memory) looksAtImages() bool { return m.options.Images != nil }

// versioned returns the names whose versions a decision on r depends on: its hosts, and
// imagesRow if it has an image.
func (m *memory) versioned(r *reservation.Reservation) []string {
	names := r.HostNames()
	if r.Image != "" && m.looksAtImages() {
		names = append(names, imagesRow)
	}
	return names
}
