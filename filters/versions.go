package filters

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versions are the comparisons that a version must hold, such as ">=1.0, !=2.0.1"
// (distutils.versionpredicate, by which Nova reads img_hv_requested_version).
type versions struct {
	text  string
	parts []versionPart
}

type versionPart struct {
	op string
	version
}

// version is major, minor and patch. One before a release comes before it.
type version struct {
	numbers [3]int64
	before  bool
}

var (
	versionPattern   = regexp.MustCompile(`^(\d{1,18})\.(\d{1,18})(?:\.(\d{1,18}))?([ab]\d+)?$`)
	versionOperation = regexp.MustCompile(`^\s*(<=|>=|<|>|!=|==)\s*([^\s,]+)\s*$`)
)

// readVersions reads comparisons with commas between them; nothing asks for nothing.
func readVersions(text string) (versions, error) {
	v := versions{text: text}
	if text == "" {
		return v, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		words := versionOperation.FindStringSubmatch(part)
		if words == nil {
			return v, fmt.Errorf("the image asks for the hypervisor version %q, which cannot be read", text)
		}
		of, err := readVersion(words[2])
		if err != nil {
			return v, fmt.Errorf("the image asks for the hypervisor version %q: %w", text, err)
		}
		v.parts = append(v.parts, versionPart{words[1], of})
	}
	return v, nil
}

func readVersion(text string) (v version, err error) {
	words := versionPattern.FindStringSubmatch(text)
	if words == nil {
		return v, fmt.Errorf("%q is no version such as 1.2 or 1.2.3", text)
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

// on says whether a hypervisor's version holds all; 0 is not known.
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

// hold says whether a version as Nova has it, 1002003 for 1.2.3, holds all.
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
