// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
)

func TestTheMicroversionRevealsTheRelease(t *testing.T) {
	for minor, want := range map[int]release.Release{
		90: release.Zed, 93: release.Zed, 94: release.Zed, 95: release.Antelope, 96: release.Caracal,
		97: release.Caracal, 100: release.Epoxy, 101: release.Epoxy, 103: release.Gazpacho, 104: release.Hibiscus, 105: release.Newer,
	} {
		if got := release.OfMicroversion(minor); got != want {
			t.Errorf("2.%d is of %v, not of %v", minor, got, want)
		}
	}
}

func TestTheObjectsTellReleasesOfOneMicroversionApart(t *testing.T) {
	for minor, want := range map[int]release.Release{
		30: release.Unknown, 34: release.Zed, 35: release.Zed, 37: release.Caracal, 38: release.Dalmatian,
		39: release.Epoxy, 41: release.Epoxy, 42: release.Flamingo, 44: release.Hibiscus, 46: release.Hibiscus,
	} {
		if got := release.OfImageProperties(minor); got != want {
			t.Errorf("ImageMetaProps 1.%d is of %v, not of %v", minor, got, want)
		}
	}
}

func TestEachReleaseHasAPartFromItsFirstToBeforeTheReleaseThatDropsIt(t *testing.T) {
	for _, tc := range []struct {
		release release.Release
		part    release.Part
		want    bool
	}{
		{release.Zed, release.Always, true},
		{release.Antelope, release.HypervisorVersionWeigher, false},
		{release.Bobcat, release.HypervisorVersionWeigher, true},
		{release.Newer, release.HypervisorVersionWeigher, true},
		{release.Antelope, release.AvailabilityZoneFilter, true},
		{release.Bobcat, release.AvailabilityZoneFilter, false},
		{release.Newer, release.AvailabilityZoneFilter, false},
		{release.Unknown, release.AvailabilityZoneFilter, true},
		{release.Unknown, release.VirtioSoundFilter, false},
	} {
		if got := tc.release.Has(tc.part); got != tc.want {
			t.Errorf("%v has %v: %v", tc.release, tc.part, got)
		}
	}
}
