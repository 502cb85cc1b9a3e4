// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

const localForm = "2006-01-02T15:04:05"

// readLocal returns a local time in full, "2026-12-01T09:00:00"; false for another text.
func readLocal(text string) (string, bool) {
	for _, form := range []string{localForm, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil && t.Format(form) == text {
			return t.Format(localForm), true
		}
	}
	return "", false
}

// localTime is a flag for what clocks show in the time zone of a series.
type localTime string

func (l *localTime) Set(text string) error {
	local, ok := readLocal(text)
	if !ok {
		return fmt.Errorf("%q is no local time; write one such as 2026-12-01T09:00, without an offset, since --time-zone tells where", text)
	}
	*l = localTime(local)
	return nil
}

func (l *localTime) String() string { return string(*l) }

func (l *localTime) Type() string { return "local time" }

// since is a flag for the first occurrence that a command is about: a time as parseTime reads it, or a local time or a
// date of the series.
type since struct {
	at    moment
	local string
}

func (s *since) Set(text string) error {
	local, ok := readLocal(text)
	if day, err := time.Parse(time.DateOnly, text); !ok && err == nil {
		local, ok = day.Format(localForm), true
	}
	*s = since{local: local}
	if ok {
		return nil
	}
	return s.at.Set(text)
}

func (s *since) String() string {
	if s.local != "" {
		return s.local
	}
	return s.at.String()
}

func (s *since) Type() string { return "time" }

func (s *since) moment() *moment { return &s.at }

// text returns the first occurrence as the API reads it; "" without the flag.
func (s *since) text() string {
	if s.local != "" || s.at.at.IsZero() {
		return s.local
	}
	return s.at.at.Format(time.RFC3339)
}
