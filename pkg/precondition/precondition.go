// SPDX-License-Identifier: Apache-2.0

// Package precondition decides whether what a client wants to change still is what it has read: the tags of
// answers, and what a request expects of them (RFC 9110, section 13).
//
// A tag is "VERSION-HASH". VERSION is that of what is stored and can be changed; HASH is that of the answer, which also
// changes with what nobody can change, such as the progress of an image. If-Match asks for the version alone.
package precondition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// hashed is how many bytes of a hash are in a tag.
const hashed = 8

// Tag returns the tag, in quotes, of an answer with a version, which has no "-".
func Tag(version string, answer []byte) string {
	hash := sha256.Sum256(answer)
	return `"` + version + "-" + hex.EncodeToString(hash[:hashed]) + `"`
}

// Hash returns the version of what is stored without a number that counts its changes. It is the same if and only if
// the JSON of stored is.
func Hash(stored any) string {
	text, err := json.Marshal(stored)
	if err != nil {
		panic(err) // what is stored is JSON
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:hashed])
}

// Versions are what a request expects: one of them must be that of what it changes. The zero value expects nothing.
type Versions struct {
	of  []string // nil expects nothing
	all bool     // *: any version will do
}

// element matches one tag of a list with the comma before the next one.
var element = regexp.MustCompile(`^[ \t]*(?:(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)")?[ \t]*(?:,|$)`)

// Parse returns the versions in the values of a header If-Match. It reports false if they are neither a list of tags nor
// "*". Weak tags, and what a proxy adds to the end of a tag, count: proxies that compress an answer change its tag so.
func Parse(values []string) (v Versions, is bool) {
	if len(values) == 0 {
		return Versions{}, true
	}
	text := strings.Join(values, ",")
	if strings.Trim(text, " \t") == "*" {
		return Versions{all: true}, true
	}
	for text != "" {
		found := element.FindStringSubmatchIndex(text)
		if found == nil {
			return Versions{}, false
		}
		if found[2] >= 0 {
			version, _, _ := strings.Cut(text[found[2]:found[3]], "-")
			v.of = append(v.of, version)
		}
		text = text[found[1]:]
	}
	return v, len(v.of) > 0
}

// Expect returns what expects one of these versions.
func Expect(versions ...string) Versions { return Versions{of: versions} }

// Any reports whether every version meets what v expects.
func (v Versions) Any() bool { return v.all || v.of == nil }

// Met reports whether a version is one of those expected.
func (v Versions) Met(version string) bool { return v.Any() || slices.Contains(v.of, version) }
