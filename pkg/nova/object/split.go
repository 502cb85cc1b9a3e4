// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// bounded returns an error for input that is larger or nested deeper than anything Nova sends:
// each level parses the fields of its objects again, so the time would grow with the square of
// the depth.
func bounded(raw []byte) error {
	if len(raw) > maxSize {
		return fault.New(fault.Invalid, "a versioned object of Nova has at most %d MiB, and this one has %d bytes", maxSize>>20, len(raw))
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = endOfString(raw, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return fault.New(fault.Invalid, "a versioned object of Nova is nested at most %d deep", maxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// members splits a valid JSON object into its members, which share its memory. It is several
// times as fast as encoding/json, which validates each level again. ok is false for any other
// value.
func members(raw []byte) (parts map[string]json.RawMessage, ok bool) {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return nil, false
	}
	parts = make(map[string]json.RawMessage)
	for i = space(raw, i+1); i < len(raw) && raw[i] == '"'; i = space(raw, i) {
		end := endOfString(raw, i)
		name, ok := unquote(raw[i:end])
		if !ok {
			return nil, false
		}
		start := space(raw, space(raw, end)+1) // after the colon
		if start >= len(raw) {
			return nil, false
		}
		i = endOfValue(raw, start)
		parts[name] = raw[start:i:i]
		if i = space(raw, i); i < len(raw) && raw[i] == ',' {
			i++
		}
	}
	return parts, true
}

// unquote parses a JSON string.
func unquote(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; plain(inner) {
		return string(inner), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// plain reports whether a text is the same inside and outside a JSON string.
func plain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// space returns the index of the first character from i on that is not white space.
func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// endOfString returns the end of the string that begins at i.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// endOfValue returns the end of the value that begins at i.
func endOfValue(raw []byte, i int) int {
	for depth := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = endOfString(raw, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(raw)
}
