// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// HostImage is the image of a reservation on one of its hosts. Start and End are those of its
// transfer, null if there is none.
type HostImage struct {
	// Host is empty for an owner who does not see the hosts yet.
	Host   string     `json:"host,omitempty"`
	State  string     `json:"state"` // scheduled, transferring, there, late, waiting or failed
	Start  *time.Time `json:"start"`
	End    *time.Time `json:"end"`
	Detail string     `json:"detail,omitempty"`
}

// Images is the answer to GET /v1/images.
type Images struct {
	Images []Image `json:"images"`
}

// Image is an image on a host, or on its way to one.
type Image struct {
	ID    string     `json:"id"`
	Name  string     `json:"name"`
	Host  string     `json:"host"`
	Bytes int64      `json:"bytes"`
	State string     `json:"state"`
	Start *time.Time `json:"start"`
	End   *time.Time `json:"end"`
	// KeptUntil is when the host may remove the image if no instance uses it.
	KeptUntil    *time.Time `json:"kept_until"`
	Reservations []string   `json:"reservations"` // those that have not begun and need the image here
	Detail       string     `json:"detail,omitempty"`
}
