// SPDX-License-Identifier: Apache-2.0

// Package release knows the releases of Nova: how a running Nova reveals its release, and which
// parts of its scheduler a release has.
package release

import "fmt"

// Release is a release of Nova. Later releases are greater.
type Release int

// The releases that Almanac knows. Unknown is that of a cloud that was not read yet; it has what
// Zed has. Newer is any release after Hibiscus; it has what Hibiscus has, as far as Almanac
// knows.
const (
	Unknown Release = iota
	Zed
	Antelope
	Bobcat
	Caracal
	Dalmatian
	Epoxy
	Flamingo
	Gazpacho
	Hibiscus
	Newer
)

// latest is the last release that Almanac knows.
const latest = Newer - 1

// releases has, for each release, its name, the version of Nova, the minor number of the highest
// microversion 2.N (nova/api/openstack/compute/rest_api_version_history.rst), and that of the
// ImageMetaProps 1.N that its nova-conductor sends (nova/objects/image_meta.py).
var releases = [...]struct {
	name                     string
	nova                     int
	microversion, properties int
}{
	Unknown:   {name: "unknown"},
	Zed:       {"zed", 26, 93, 34},
	Antelope:  {"antelope", 27, 95, 34},
	Bobcat:    {"bobcat", 28, 95, 34},
	Caracal:   {"caracal", 29, 96, 37},
	Dalmatian: {"dalmatian", 30, 96, 38},
	Epoxy:     {"epoxy", 31, 100, 39},
	Flamingo:  {"flamingo", 32, 100, 42},
	Gazpacho:  {"gazpacho", 33, 103, 42},
	Hibiscus:  {"hibiscus", 34, 104, 44},
	Newer:     {name: "newer"},
}

// Known returns the releases that Almanac knows, the oldest first.
func Known() []Release {
	all := make([]Release, 0, latest)
	for r := Zed; r <= latest; r++ {
		all = append(all, r)
	}
	return all
}

// Name returns the code name, such as "epoxy".
func (r Release) Name() string { return releases[r].name }

// Nova returns the major version of Nova, such as 31; 0 for Unknown and Newer.
func (r Release) Nova() int { return releases[r].nova }

// Microversion returns the minor number N of the release's highest microversion, 2.N; 0 for Unknown
// and Newer.
func (r Release) Microversion() int { return releases[r].microversion }

// ImageProperties returns the minor number N of the ImageMetaProps 1.N that nova-conductor sends; 0
// for Unknown and Newer.
func (r Release) ImageProperties() int { return releases[r].properties }

// String returns the release for messages, such as "Nova 31 (epoxy)".
func (r Release) String() string {
	switch r {
	case Unknown:
		return "an unknown release of Nova"
	case Newer:
		return fmt.Sprintf("a release of Nova after %d (%s), the last one that Almanac knows", latest.Nova(), latest.Name())
	}
	return fmt.Sprintf("Nova %d (%s)", r.Nova(), r.Name())
}

// OfMicroversion returns the oldest release whose highest microversion is 2.N. Several releases
// have 2.95, 2.96 and 2.100. For a microversion between those of two releases, as of a Nova between
// releases, it returns the earlier one; Zed for older ones than Zed's, and Newer for later ones
// than those of all known releases.
func OfMicroversion(n int) Release {
	if n > releases[latest].microversion {
		return Newer
	}
	found := Zed
	for _, r := range Known() {
		if of := releases[r].microversion; of <= n && of > releases[found].microversion {
			found = r
		}
	}
	return found
}

// OfImageProperties returns the oldest release that sends ImageMetaProps 1.N, or the last known
// one for a greater N. It tells releases of the same microversion apart. A nova-conductor sends
// older objects during an upgrade, so that the release may be later, but is never earlier.
func OfImageProperties(n int) Release {
	found := Unknown
	for _, r := range Known() {
		if of := releases[r].properties; of <= n && of > releases[found].properties {
			found = r
		}
	}
	return found
}
