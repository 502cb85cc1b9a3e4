package store

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// busy returns a fault that passes in a moment.
func busy(err error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "the database is busy; try again in a moment",
		RetryAfter: time.Second,
		Err:        err,
	}
}

// away returns a fault that passes when the database is back.
func away(err error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "the database does not answer; try again in a moment",
		RetryAfter: 5 * time.Second,
		Err:        err,
	}
}

// unavailable returns a fault that the operator must correct.
func unavailable(err error, message string) error {
	return &fault.Error{Kind: fault.Unavailable, Message: message, RetryAfter: 30 * time.Second, Err: err}
}
