// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versions are comparisons that a version must satisfy, such as ">=1.0, !=2.0.1"
// (distutils.versionpredicate, with which Nova parses img_hv_requested_version).
type versions struct {
	text  string
	parts []versionPart
}

type versionPart struct {
	op string
	version
}

// version is major, minor and patch. A pre-release precedes its release.
type version struct {
	numbers [3]int64
	before  bool
}

var (
	versionPattern   = regexp.MustCompile(`^(\d{1,18})\.(\d{1,18})(?:\.(\d{1,18}))?([ab]\d+)?$`)
	versionOperation = regexp.MustCompile(`^\s*(<=|>=|<|>|!=|==)\s*([^\s,]+)\s*$`)
)

// readVersions parses comparisons that are separated by commas; an empty text requires nothing.
func readVersions(text string) (versions, error) {
	v := versions{text: text}
	if text == "" {
		return v, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		words := versionOperation.FindStringSubmatch(part)
		if words == nil {
			return v, fmt.Errorf("the image requires the hypervisor version %q, which is not a list of comparisons", text)
		}
		of, err := readVersion(words[2])
		if err != nil {
			return v, fmt.Errorf("the image requires the hypervisor version %q: %w", text, err)
		}
		v.parts = append(v.parts, versionPart{words[1], of})
	}
	return v, nil
}

// readVersion reads a version such as 1.2 or 1.2.3.
func readVersion(text string) (v version, err error) {
	words := versionPattern.FindStringSubmatch(text)
	if words == nil {
		return v, fmt.Errorf("%q is not a version such as 1.2 or 1.2.3", text)
	}
	for n, word := range words[1:4] {
		if word == "" {
			continue // no patch
		}
		if v.numbers[n], err = strconv.ParseInt(word, 10, 64); err != nil {
			return v, fmt.Errorf("read %q: %w", text, err)
		}
	}
	v.before = words[4] != ""
	return v, nil
}

// on reports whether a hypervisor's version satisfies all comparisons; 0 means unknown.
func (v versions) on(number int64) answer {
	if v.text == "" {
		return yes
	}
	if number == 0 {
		return unsure
	}
	if holds, err := v.hold(number); err != nil || !holds {
		return no
	}
	return yes
}

// hold reports whether a version in Nova's form, 1002003 for 1.2.3, satisfies all comparisons.
func (v versions) hold(number int64) (bool, error) {
	var dotted []string
	for ; number > 0; number /= 1000 {
		dotted = append(dotted, strconv.FormatInt(number%1000, 10))
	}
	slices.Reverse(dotted)
	is, err := readVersion(strings.Join(dotted, "."))
	if err != nil {
		return false, err
	}
	for _, part := range v.parts {
		order := slices.Compare(is.numbers[:], part.numbers[:])
		if order == 0 && part.before {
			order = 1
		}
		if !ordered(part.op, cmp.Compare(order, 0)) {
			return false, nil
		}
	}
	return true, nil
}
