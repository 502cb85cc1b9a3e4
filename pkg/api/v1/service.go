package v1

import "time"

// Readiness is the answer to GET /v1/readiness.
type Readiness struct {
	// Ready says that every part is well and that no stop is under way.
	Ready    bool   `json:"ready"`
	Draining bool   `json:"draining"`
	Parts    []Part `json:"parts"`
}

// Part is something that Almanac needs or does.
type Part struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not
	// Since is when the part was first seen as it is now.
	Since time.Time `json:"since"`
}

// Feed is the answer to GET /v1/feed.
type Feed struct {
	// URL is where anybody who has it reads the project's reservations as iCalendar.
	URL string `json:"url"`
}
