// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Reload reads the configuration again, as Load does, for a service that runs with
// before. after has the new values of mutable options and the old values of all
// others. changed names the mutable options with a new value, and ignored the other
// options with a new value, which require a restart; both use the form
// "[limits] max_duration" and the order of the sample. If the new configuration is
// invalid, after is before and err is the error of Load.
func Reload(before Config, paths, dirs []string, environment map[string]string) (
	after Config, changed, ignored []string, err error,
) {
	fresh, err := Load(paths, dirs, environment)
	if err != nil {
		return before, nil, nil, err
	}
	after = before
	given, kept := table(&fresh), table(&after)
	for i, s := range given {
		for j, o := range s.options {
			value, old := o.texts(), kept[i].options[j]
			switch {
			case slices.Equal(value, old.texts()):
			case !o.mutable:
				ignored = append(ignored, field(s.name, o.name))
			default:
				changed = append(changed, field(s.name, o.name))
				for _, raw := range value {
					if err := old.set(raw); err != nil {
						return before, nil, nil, fault.Field(field(s.name, old.name), "%s", err)
					}
				}
			}
		}
	}
	return after, changed, ignored, nil
}
