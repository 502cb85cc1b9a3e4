// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Ignored are options of the files that mean nothing to Almanac, with the reason.
type Ignored struct {
	Options string // by section, such as "[DEFAULT] use_syslog, use_stderr; [cache] enabled"
	Why     string // the rest of a sentence
}

// Notice returns all ignored options by section, or nothing.
func (o Origin) Notice() string {
	texts := make([]string, len(o.Ignored))
	for i, group := range o.Ignored {
		texts[i] = group.Options
	}
	return strings.Join(texts, "; ")
}

// Tell writes one notice of the ignored options, with the reasons, and the warnings.
func Tell(w io.Writer, ignored []Ignored, warnings []string) error {
	var b strings.Builder
	if len(ignored) > 0 {
		b.WriteString("notice: these options mean nothing to Almanac:\n")
	}
	for _, group := range ignored {
		fmt.Fprintf(&b, "  %s: %s\n", group.Options, group.Why)
	}
	for _, warning := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// present returns the present name of an option that is given under a former one.
func (l *loader) present(section, option string) (presentSection, presentOption string) {
	if now, former := formerNames[settingOf(section, option)]; former && l.option(now) != nil {
		return now.section, now.option
	}
	return section, option
}

// rowOf returns the index of the row of foreigns that has an option, or -1. An empty option stands
// for the section as a whole.
func rowOf(section, option string) int {
	return slices.IndexFunc(foreigns, func(f foreign) bool {
		return slices.ContainsFunc(f.sections, func(known string) bool { return strings.EqualFold(known, section) }) &&
			(len(f.options) == 0 || slices.Contains(f.options, option))
	})
}

// isForeign reports whether an option, or with an empty one the whole section, means nothing to Almanac.
func isForeign(section, option string) bool { return rowOf(section, option) >= 0 }

// ignored collects the options that mean nothing to Almanac.
type ignored struct {
	quiet, weighty notes
}

// notes are the settings of each row of foreigns, once each, in order of reading.
type notes map[int][]setting

// note adds an option with its value. An empty option is the header of a section.
func (g *ignored) note(section, option, value string) {
	if option == "" {
		return
	}
	at := rowOf(section, option)
	into := &g.quiet
	if f := foreigns[at]; f.weighs && !slices.Contains(f.harmless, strings.ToLower(value)) {
		into = &g.weighty
	}
	if *into == nil {
		*into = notes{}
	}
	if s := settingOf(section, option); !slices.Contains((*into)[at], s) {
		(*into)[at] = append((*into)[at], s)
	}
}

// list returns the noted options, by row.
func (n notes) list() (list []Ignored) {
	for _, at := range slices.Sorted(maps.Keys(n)) {
		list = append(list, Ignored{Options: bySection(n[at]), Why: foreigns[at].why})
	}
	return list
}

// warnings returns a sentence for each row of options that have weight.
func (g *ignored) warnings() (list []string) {
	for _, group := range g.weighty.list() {
		list = append(list, fmt.Sprintf("ignored: %s: %s", group.Options, group.Why))
	}
	return list
}

func bySection(settings []setting) string {
	var b strings.Builder
	for i, s := range settings {
		switch {
		case i == 0:
			b.WriteString(s.String())
		case s.section == settings[i-1].section:
			b.WriteString(", " + s.option)
		default:
			b.WriteString("; " + s.String())
		}
	}
	return b.String()
}
