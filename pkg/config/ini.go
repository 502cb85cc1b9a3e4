// SPDX-License-Identifier: Apache-2.0

package config

import (
	"iter"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// statement is a section header, with an empty key, or the value of an option
// with its continuation lines.
type statement struct {
	line                int // from 1
	section, key, value string
}

// statements reads text by the rules of oslo.config (oslo_config/iniparser.py):
// a comment is a whole line that starts with # or ;, an indented line continues
// the value above it, and quotes around a value are removed. It yields statements
// and errors in the order of their lines; an error comes with a statement that has
// only its line. It skips options under an invalid header.
func statements(text string) iter.Seq2[statement, error] {
	return func(yield func(statement, error) bool) {
		r := reader{yield: yield}
		line := 0
		for raw := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			line++
			if !r.read(line, strings.TrimRight(raw, " \t\r\n")) {
				return
			}
		}
		r.flush()
	}
}

// reader is the state between two lines. Its methods report whether to continue.
type reader struct {
	yield   func(statement, error) bool
	section string
	lost    bool      // the section is unknown, and its error has been yielded
	open    statement // the option that the next line may continue; none if its line is 0
}

func (r *reader) read(line int, text string) bool {
	switch {
	case strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t"):
		if r.open.line == 0 {
			return r.fail(line, "the line is indented, but there is no option right above it to continue")
		}
		r.open.value += "\n" + strings.TrimSpace(text)
		return true
	case !r.flush():
		return false
	case text == "" || text[0] == '#' || text[0] == ';':
		return true
	case text[0] == '[':
		return r.header(line, text)
	default:
		return r.option(line, text)
	}
}

func (r *reader) header(line int, text string) bool {
	name, closed := strings.CutSuffix(text[1:], "]")
	r.section = strings.TrimSpace(name)
	r.lost = !closed || r.section == ""
	if r.lost {
		return r.fail(line, "a section header is a name in brackets, alone on its line, such as [database]")
	}
	return r.yield(statement{line: line, section: r.section}, nil)
}

func (r *reader) option(line int, text string) bool {
	at := strings.IndexAny(text, "=:")
	if at < 0 {
		// The line is not repeated: it may be a password that slipped.
		return r.fail(line, "the line has no =; write option = value")
	}
	key := strings.TrimSpace(text[:at])
	if key == "" {
		return r.fail(line, "the name of the option is missing before the "+text[at:at+1])
	}
	r.open = statement{line, r.section, key, unquote(strings.TrimSpace(text[at+1:]))}
	if r.section == "" && !r.lost {
		r.lost = true
		return r.fail(line, "an option stands under a section header, such as [DEFAULT], and there is none above")
	}
	return true
}

// flush yields the open option, which no further line continues.
func (r *reader) flush() bool {
	done := r.open
	r.open = statement{}
	return done.line == 0 || r.lost || r.yield(done, nil)
}

func (r *reader) fail(line int, message string) bool {
	return r.yield(statement{line: line}, fault.New(fault.Invalid, "%s", message))
}

func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		return value[1 : n-1]
	}
	return value
}
