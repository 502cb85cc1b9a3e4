// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Readiness is the answer to GET /v1/readiness.
type Readiness struct {
	// Ready is true if every part is healthy and the service is not stopping.
	Ready    bool   `json:"ready"`
	Draining bool   `json:"draining"`
	Parts    []Part `json:"parts"`
}

// Part is something that Almanac requires or does.
type Part struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not healthy
	// Since is when the part was first seen in its present state.
	Since time.Time `json:"since"`
}

// Feed is the answer to GET /v1/feed.
type Feed struct {
	// URL is a link to the project's reservations in iCalendar form; anybody who has it can read
	// them.
	URL string `json:"url"`
}
