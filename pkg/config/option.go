// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// option is one row of the table, bound to the field that it fills.
type option struct {
	name, help string
	// kind and limits describe the allowed values in the sample.
	kind   string
	limits []string
	// secret hides the value in Show. Only a text may be secret, because the errors
	// of the other kinds quote the value.
	secret bool
	// mutable options may change while the service runs.
	mutable bool

	restore func()                 // puts the default into the field
	set     func(raw string) error // puts a value of a file into the field
	texts   func() []string        // the field as written in a file, one item per line
}

func (o option) asSecret() option {
	o.secret = true
	return o
}

func (o option) asMutable() option {
	o.mutable = true
	return o
}

func boolean(field *bool, name string, preset bool, help string) option {
	return option{
		name: name, help: help, kind: "boolean value",
		restore: func() { *field = preset },
		texts:   func() []string { return []string{strconv.FormatBool(*field)} },
		set: func(raw string) error {
			switch strings.ToLower(raw) {
			case "true", "yes", "on", "1":
				*field = true
			case "false", "no", "off", "0":
				*field = false
			default:
				return fmt.Errorf("must be true or false (or yes, no, on, off, 1, 0), not %q", raw)
			}
			return nil
		},
	}
}

// place is where an option keeps its value, in the form that files have.
type place[T any] struct {
	get func() T
	set func(T)
}

func in[T any](field *T) place[T] {
	return place[T]{func() T { return *field }, func(v T) { *field = v }}
}

func integer[T int | int64 | float64](field *T, name string, preset, least, most int, help string) option {
	return scaled(field, 1, name, preset, least, most, help)
}

// scaled returns an option for a whole number of units.
func scaled[T int | int64 | float64](field *T, unit int, name string, preset, least, most int, help string) option {
	at := place[int]{func() int { return int(*field / T(unit)) }, func(v int) { *field = T(v) * T(unit) }}
	o := option{name: name, help: help, kind: "integer value"}
	return ranged(o, at, preset, least, most, "a whole number", strconv.Itoa, strconv.Atoi)
}

// number returns an option for a number from least to most.
func number(at place[float64], name string, preset, least, most float64, help string) option {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	o := ranged(option{name: name, help: help, kind: "floating point value"}, at, preset, least, most, "a number", format,
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	// The limits of the type are none.
	o.limits = slices.DeleteFunc(o.limits, func(limit string) bool { return strings.HasSuffix(limit, format(math.MaxFloat64)) })
	return o
}

// duration returns an option for a time in whole seconds, as span.ParseDuration reads it. An int64
// field holds seconds.
func duration[T time.Duration | int64](field *T, name string, preset, least, most time.Duration, help string) option {
	unit := time.Nanosecond
	if _, seconds := any(*field).(int64); seconds {
		unit = time.Second
	}
	at := place[time.Duration]{func() time.Duration { return time.Duration(*field) * unit }, func(d time.Duration) { *field = T(d / unit) }}
	o := option{name: name, help: help, kind: "duration"}
	return ranged(o, at, preset, least, most, "a duration in whole seconds such as 90, 2h30m or 30d", formatDuration, parseDuration)
}

func parseDuration(raw string) (time.Duration, error) {
	seconds, err := span.ParseDuration(raw)
	if most := int64(math.MaxInt64 / time.Second); err == nil && (seconds > most || seconds < -most) {
		return 0, errors.New("is too long")
	}
	return time.Duration(seconds) * time.Second, err
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return span.FormatDuration(int64(d / time.Second))
}

// ranged completes an option whose value lies between least and most, inclusive. noun describes the
// value in errors.
func ranged[T cmp.Ordered](
	o option, at place[T], preset, least, most T, noun string, format func(T) string, parse func(string) (T, error),
) option {
	o.limits = []string{"Minimum value: " + format(least), "Maximum value: " + format(most)}
	o.restore = func() { at.set(preset) }
	o.texts = func() []string { return []string{format(at.get())} }
	o.set = func(raw string) error {
		v, err := parse(raw)
		if err != nil || !(least <= v && v <= most) {
			return fmt.Errorf("must be %s, from %s to %s, not %q", noun, format(least), format(most), raw)
		}
		at.set(v)
		return nil
	}
	return o
}

// text returns an option for a line of text. Its value may be empty only if its
// default is.
func text(field *string, name, preset, help string) option {
	return option{
		name: name, help: help, kind: "string value",
		restore: func() { *field = preset },
		texts:   func() []string { return []string{*field} },
		set: func(raw string) error {
			if raw == "" && preset != "" {
				return errors.New("must not be empty")
			}
			*field = raw
			return oneLine(raw)
		},
	}
}

func choice[T ~string](field *T, name string, preset T, choices []T, help string) option {
	words := make([]word[T], len(choices))
	for i, c := range choices {
		words[i] = word[T]{string(c), c}
	}
	return named(field, name, preset, words, help)
}

// word is a word in files with the value that it stands for.
type word[T any] struct {
	text  string
	value T
}

// named returns an option whose values have names.
func named[T comparable](field *T, name string, preset T, words []word[T], help string) option {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.text
	}
	allowed := strings.Join(names, ", ")
	return option{
		name: name, help: help, kind: "string value", limits: []string{"Allowed values: " + allowed},
		restore: func() { *field = preset },
		texts: func() []string {
			i := slices.IndexFunc(words, func(w word[T]) bool { return w.value == *field })
			return []string{names[i]}
		},
		set: func(raw string) error {
			i := slices.Index(names, raw)
			if i < 0 {
				return fmt.Errorf("must be one of %s, not %q", allowed, raw)
			}
			*field = words[i].value
			return nil
		},
	}
}

// list returns an option for comma-separated texts. It ignores empty items.
func list[T ~string](field *[]T, name string, preset []T, help string) option {
	return subset(field, name, preset, nil, help)
}

// hosts returns a list of hosts, which may have ranges.
func hosts(field *[]string, name, help string) option {
	o := list(field, name, nil, help+" Ranges such as node-[01-16,18] stand for several.")
	o.set = func(raw string) (err error) {
		if raw = strings.TrimSpace(raw); raw == "" {
			*field = nil
			return nil
		}
		*field, err = inventory.ExpandNames(raw)
		return err
	}
	return o
}

// subset returns a list whose items are among allowed, unless that is nil.
func subset[T ~string](field *[]T, name string, preset, allowed []T, help string) option {
	return option{
		name: name, help: help, kind: "list value",
		restore: func() { *field = preset },
		texts:   func() []string { return []string{strings.Join(fault.Texts(*field), ",")} },
		set: func(raw string) error {
			var items []T
			for item := range strings.SplitSeq(raw, ",") {
				item := T(strings.TrimSpace(item))
				switch err := oneLine(string(item)); {
				case err != nil:
					return err
				case item == "":
				case allowed != nil && !slices.Contains(allowed, item):
					return fmt.Errorf("must be some of %s, not %q", strings.Join(fault.Texts(allowed), ", "), item)
				default:
					items = append(items, item)
				}
			}
			*field = items
			return nil
		},
	}
}

// oneLine refuses a text of several lines: the second line is usually an option
// that was indented by mistake.
func oneLine(raw string) error {
	if strings.Contains(raw, "\n") {
		return errors.New("must be one line; an indented line continues the value of the line above it")
	}
	return nil
}
