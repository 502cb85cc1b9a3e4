// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// reference matches what is replaced in a value: $$, or the name of an option as in $log_dir,
// ${log_dir} or ${database.connection}.
var reference = regexp.MustCompile(`(?i)\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})`)

// expand returns the value of an option with the values of other options in the place of their
// names, and $ in the place of $$ and \$, as in oslo.config (cfg.py, _substitute). open are the
// options whose values refer to this one.
func (l *loader) expand(of setting, value string, open []setting) (string, error) {
	if slices.Contains(open, of) {
		path := names(append(open, of), setting.String)
		return "", fmt.Errorf("refers to itself: %s", strings.Join(path, " -> "))
	}
	open = append(slices.Clone(open), of)
	var failed error
	expanded := reference.ReplaceAllStringFunc(strings.ReplaceAll(value, `\$`, "$$"), func(match string) string {
		if match == "$$" {
			return "$"
		}
		text, err := l.referred(of, strings.Trim(match, "${}"), open)
		failed = cmp.Or(failed, err)
		return text
	})
	return expanded, failed
}

// referred returns the value of the option to which the value of another one refers by name.
func (l *loader) referred(from setting, name string, open []setting) (string, error) {
	hides := l.secret(from)
	to, ok := l.named(from, name)
	switch {
	case !ok && hides: // the name may be a part of a password
		return "", errors.New("a $ is followed by a name that no option has; write $$ for a dollar sign")
	case !ok:
		return "", fmt.Errorf("there is no option %q to which $%s could refer; write $$ for a dollar sign", name, name)
	case l.secret(to) && !hides:
		return "", fmt.Errorf("must not refer to %s, which is a secret", to)
	}
	at, given := l.last[to]
	if !given {
		return strings.Join(l.option(to).texts(), ","), nil
	}
	if r := l.read[at]; r.literal {
		return r.value, nil
	}
	return l.expand(to, l.read[at].value, open)
}

// named returns the option that a name means in a value of from: OPTION of the same section or of
// [DEFAULT], or SECTION.OPTION.
func (l *loader) named(from setting, name string) (setting, bool) {
	candidates := []setting{{from.section, name}, {"default", name}}
	if group, option, dotted := strings.Cut(name, "."); dotted {
		candidates = []setting{settingOf(group, option)}
	}
	for _, s := range candidates {
		s.section, s.option = l.present(s.section, s.option)
		s = settingOf(s.section, s.option)
		if _, given := l.last[s]; given || l.option(s) != nil {
			return s, true
		}
	}
	return setting{}, false
}

// option returns our option of that name, or nil.
func (l *loader) option(s setting) *option {
	if known := l.section(s.section); known != nil {
		return known.option(s.option)
	}
	return nil
}

func (l *loader) secret(s setting) bool {
	o := l.option(s)
	return o != nil && o.secret
}

// escape returns value as a file must have it, so that no dollar sign has a meaning.
func escape(value string) string {
	if strings.Contains(value, `\$`) {
		return strings.ReplaceAll(value, "$", `\$`)
	}
	return strings.ReplaceAll(value, "$", "$$")
}
