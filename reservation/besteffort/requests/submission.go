// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Submission is the content of a user's request.
type Submission struct {
	Name     string
	VMs      int
	Flavor   string // id or name
	Image    string // id or name
	Duration int64  // the most that each VM runs, in seconds
	Parallel bool
	Networks []string // as state.Request; none is "auto"
	KeyName  string
	UserData string // base64
	Metadata map[string]string
	// Key and BodyHash are stored as the fields of state.Request with these names.
	Key, BodyHash string
}

const (
	// MostVMsOfOne is the largest number of VMs of a request.
	MostVMsOfOne = 100
	// LongestDuration is the largest number of seconds that a VM may run: 100 years.
	LongestDuration = 100 * 365 * 86400

	longestName     = 255
	longestUserData = 65535 // nova/api/openstack/compute/schemas/servers.py
	mostMetadata    = 100
)

// MarkPrefix is the prefix of the metadata keys that are reserved for Almanac.
const MarkPrefix = "almanac:"

var id = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// check returns an Invalid fault for the first field that is wrong.
func (s *Submission) check() error {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return fault.Field("name", "must not be empty")
	case utf8.RuneCountInString(s.Name) > longestName:
		return fault.Field("name", "has more than %d characters", longestName)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fault.Field("name", "has characters that cannot be shown")
	case s.VMs < 1 || s.VMs > MostVMsOfOne:
		return fault.Field("vms", "must be from 1 to %d, not %d", MostVMsOfOne, s.VMs)
	case s.Duration < 1:
		return fault.Field("duration", "must be at least one second")
	case s.Duration > LongestDuration:
		return fault.Field("duration", "must be at most 100 years")
	case s.Flavor == "":
		return fault.Field("flavor", "is required: the id or the name of a flavor")
	case s.Image == "":
		return fault.Field("image", "is required: the id or the name of an image")
	case utf8.RuneCountInString(s.Flavor) > longestName:
		return fault.Field("flavor", "has more than %d characters", longestName)
	case utf8.RuneCountInString(s.Image) > longestName:
		return fault.Field("image", "has more than %d characters", longestName)
	case utf8.RuneCountInString(s.KeyName) > longestName:
		return fault.Field("key_name", "has more than %d characters", longestName)
	case utf8.RuneCountInString(s.UserData) > longestUserData:
		return fault.Field("user_data", "has more than %d characters", longestUserData)
	}
	if _, err := base64.StdEncoding.DecodeString(s.UserData); err != nil {
		return fault.Field("user_data", "must be base64")
	}
	if err := s.checkNetworks(); err != nil {
		return err
	}
	return s.checkMetadata()
}

func (s *Submission) checkNetworks() error {
	for _, n := range s.Networks {
		if (n == "none" || n == "auto") && len(s.Networks) == 1 {
			return nil
		}
		if !id.MatchString(n) {
			return fault.Field("networks", `must be "none", "auto" or a list of ids of networks, and has %.60q`, n)
		}
	}
	return nil
}

// checkMetadata returns an Invalid fault if there are too many keys, one is too long, or one is
// Almanac's own.
func (s *Submission) checkMetadata() error {
	if len(s.Metadata) > mostMetadata {
		return fault.Field("metadata", "has more than %d items", mostMetadata)
	}
	for key, value := range s.Metadata {
		switch {
		case strings.HasPrefix(key, MarkPrefix):
			return fault.Field("metadata", "%.60q is reserved for Almanac", key)
		case key == "" || utf8.RuneCountInString(key) > longestName || utf8.RuneCountInString(value) > longestName:
			return fault.Field("metadata", "keys have 1 to %d characters, and values at most %[1]d", longestName)
		}
	}
	return nil
}
