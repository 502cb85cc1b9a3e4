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

func integer(field *int, name string, preset, least, most int, help string) option {
	o := ranged(field, preset, least, most, "a whole number", strconv.Itoa, strconv.Atoi)
	o.name, o.help, o.kind = name, help, "integer value"
	return o
}

func float(field *float64, name string, preset float64, help string) option {
	o := ranged(field, preset, -math.MaxFloat64, math.MaxFloat64, "a number",
		func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	o.name, o.help, o.kind, o.limits = name, help, "floating point value", nil
	return o
}

// duration returns an option for a time in whole seconds, as span.ParseDuration reads it.
func duration(field *time.Duration, name string, preset, least, most time.Duration, help string) option {
	o := ranged(field, preset, least, most, "a duration in whole seconds such as 90, 2h30m or 30d", formatDuration, parseDuration)
	o.name, o.help, o.kind = name, help, "duration"
	return o
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

// ranged returns an option whose value lies between least and most, inclusive.
// noun describes the value in errors.
func ranged[T cmp.Ordered](
	field *T, preset, least, most T, noun string, format func(T) string, parse func(string) (T, error),
) option {
	return option{
		limits:  []string{"Minimum value: " + format(least), "Maximum value: " + format(most)},
		restore: func() { *field = preset },
		texts:   func() []string { return []string{format(*field)} },
		set: func(raw string) error {
			v, err := parse(raw)
			if err != nil || !(least <= v && v <= most) {
				return fmt.Errorf("must be %s, from %s to %s, not %q", noun, format(least), format(most), raw)
			}
			*field = v
			return nil
		},
	}
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

func choice(field *string, name, preset string, choices []string, help string) option {
	allowed := strings.Join(choices, ", ")
	return option{
		name: name, help: help, kind: "string value", limits: []string{"Allowed values: " + allowed},
		restore: func() { *field = preset },
		texts:   func() []string { return []string{*field} },
		set: func(raw string) error {
			if !slices.Contains(choices, raw) {
				return fmt.Errorf("must be one of %s, not %q", allowed, raw)
			}
			*field = raw
			return nil
		},
	}
}

// list returns an option for comma-separated texts. It ignores empty items.
func list(field *[]string, name string, preset []string, help string) option {
	return option{
		name: name, help: help, kind: "list value",
		restore: func() { *field = preset },
		texts:   func() []string { return []string{strings.Join(*field, ",")} },
		set: func(raw string) error {
			var items []string
			for item := range strings.SplitSeq(raw, ",") {
				item = strings.TrimSpace(item)
				if err := oneLine(item); err != nil {
					return err
				}
				if item != "" {
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
