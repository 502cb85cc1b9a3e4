// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// Load returns the defaults as changed by the files of paths, in order, and then
// by the *.conf files of dirs, sorted by name in each directory. Later files win
// over earlier ones. Credentials, which are files SECTION.OPTION in the folder
// CREDENTIALS_DIRECTORY of environment, win over all of these, and environment
// variables of the form OS_<GROUP>__<OPTION>, such as OS_DATABASE__CONNECTION,
// over credentials.
//
// The error joins all problems in the order of reading. Each is a *fault.Error of
// kind Invalid, prefixed with its file and line, its credential or its environment
// variable.
func Load(paths, dirs []string, environment map[string]string) (Config, error) {
	var cfg Config
	origin, err := load(table(&cfg), paths, dirs, environment)
	if err != nil {
		return Config{}, err
	}
	cfg.Origin = origin
	return cfg, nil
}

// Defaults returns the configuration in which every option has its default.
func Defaults() Config {
	var cfg Config
	restore(table(&cfg))
	return cfg
}

// load sets the fields of the sections; see Load.
func load(sections []section, paths, dirs []string, environment map[string]string) (Origin, error) {
	l := loader{sections: sections, last: map[setting]int{}}
	restore(l.sections)
	for _, path := range paths {
		l.file(path)
	}
	for _, dir := range dirs {
		l.dir(dir)
	}
	l.credentials(environment[credentialsFolder])
	l.environment(environment)
	err := l.apply()
	o := Origin{Ignored: l.ignored.quiet.list(), Warnings: l.ignored.warnings()}
	switch {
	case len(paths) > 0:
		o.Folder = filepath.Dir(paths[0])
	case len(dirs) > 0:
		o.Folder = dirs[0]
	}
	return o, err
}

// loader reads all sources, and then sets the fields that its sections are bound to, because a
// value may refer to options that are read later.
type loader struct {
	sections []section
	read     []reading
	last     map[setting]int // the index of the last reading of a setting
	ignored  ignored
}

// setting is the name of an option, with the section in lower case.
type setting struct{ section, option string }

func settingOf(section, option string) setting { return setting{strings.ToLower(section), option} }

func (s setting) String() string {
	if s.section == "default" {
		return field("DEFAULT", s.option)
	}
	return field(s.section, s.option)
}

// reading is a statement of a file or the value of a credential or variable, or else an error.
type reading struct {
	statement
	where     string // file and line, credential or variable; empty: err names it
	overrides bool   // files
	literal   bool   // a dollar sign in the value has no meaning
	err       error
}

func (l *loader) add(r reading) {
	if r.err == nil && r.key != "" {
		r.section, r.key = l.present(r.section, r.key)
		l.last[settingOf(r.section, r.key)] = len(l.read)
	}
	l.read = append(l.read, r)
}

func (l *loader) fail(err error) { l.add(reading{err: err}) }

func (l *loader) dir(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.fail(unreadable("configuration directory", path, err))
		return
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".conf") && !strings.HasPrefix(name, ".") {
			l.file(filepath.Join(path, name))
		}
	}
}

func (l *loader) file(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		l.fail(unreadable("configuration file", path, err))
		return
	}
	for s, err := range statements(string(content)) {
		l.add(reading{statement: s, where: fmt.Sprintf("%s:%d", path, s.line), err: err})
	}
}

// environment reads the variables. It refuses those that belong to one of our sections but to no
// option; variables of other sections may belong to another service.
func (l *loader) environment(variables map[string]string) {
	var unknown []reading
	for _, s := range l.sections {
		known := names(s.options, func(o option) string { return variable(s.name, o.name) })
		for i, o := range s.options {
			if raw, ok := variables[known[i]]; ok {
				l.add(reading{
					statement: statement{section: s.name, key: o.name, value: raw}, where: "environment variable " + known[i], overrides: true,
				})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			rest, ours := strings.CutPrefix(name, variable(s.name, ""))
			switch {
			case !ours || slices.Contains(known, name):
			case isForeign(s.name, strings.ToLower(rest)):
				l.add(reading{statement: statement{section: s.name, key: strings.ToLower(rest), value: variables[name]}})
			default:
				unknown = append(unknown, reading{err: fault.New(fault.Invalid, "%s", fault.Unknown("environment variable", name, known))})
			}
		}
	}
	l.read = append(l.read, unknown...)
}

// apply sets the fields and returns all errors.
func (l *loader) apply() error {
	var errs []error
	for _, r := range l.read {
		err := r.err
		if err == nil {
			err = l.set(r)
		}
		if err != nil && r.where != "" {
			err = fmt.Errorf("%s: %w", r.where, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// set sets the field of a reading, unless a credential or a variable overrides it. It notes an
// option that means nothing to Almanac. Like oslo.config, it ignores the case of section names.
func (l *loader) set(r reading) error {
	s := l.section(r.section)
	switch {
	case s == nil && isForeign(r.section, r.key):
		l.ignored.note(r.section, r.key, r.value)
		return nil
	case s == nil && r.key == "":
		return fault.Field("["+r.section+"]", "%s", fault.Unknown("section", r.section, l.sectionNames()))
	case s == nil || r.key == "":
		return nil // the header of the unknown section was refused before
	}
	o := s.option(r.key)
	switch {
	case o == nil && isForeign(s.name, r.key):
		l.ignored.note(s.name, r.key, r.value)
		return nil
	case o == nil:
		return fault.Field(field(s.name, r.key), "%s", fault.Unknown("option", r.key, names(s.options, func(known option) string { return known.name })))
	}
	if winner := l.read[l.last[settingOf(r.section, r.key)]]; winner.overrides && !r.overrides {
		return nil
	}
	value, err := r.value, error(nil)
	if !r.literal {
		value, err = l.expand(settingOf(r.section, r.key), r.value, nil)
	}
	if err == nil {
		err = o.set(value)
	}
	if err != nil {
		return fault.Field(field(s.name, o.name), "%s", err)
	}
	return nil
}

// section returns the section with a name, in any case, or nil.
func (l *loader) section(name string) *section {
	at := slices.IndexFunc(l.sections, func(s section) bool { return strings.EqualFold(s.name, name) })
	if at < 0 {
		return nil
	}
	return &l.sections[at]
}

func (l *loader) sectionNames() []string {
	return names(l.sections, func(s section) string { return s.name })
}

// Usual returns the path of a program's configuration file without others, or nothing if there is no such file. A
// file that this process may not read is there: Load then fails, rather than go on with defaults.
func Usual(path string) []string {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{path}
}

// unreadable returns the error of a file or folder. If permissions are the reason, it names who may read it.
func unreadable(what, path string, err error) error {
	message := "the " + what + " cannot be read"
	if errors.Is(err, fs.ErrPermission) {
		message += " by user " + owner.User() + "; run this as root"
		if group := owner.Group(path); group != "" && group != "root" {
			message += ", or as a member of group " + group
		}
	}
	return &fault.Error{Kind: fault.Invalid, Message: message, Err: err}
}

// field returns the name of an option for errors.
func field(section, option string) string { return fmt.Sprintf("[%s] %s", section, option) }

// variable returns the name of the environment variable that overrides an option.
func variable(section, option string) string {
	return "OS_" + strings.ToUpper(section) + "__" + strings.ToUpper(option)
}

func names[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = name(one)
	}
	return names
}

// Environment returns variables by name from a list in the form of os.Environ.
func Environment(list []string) map[string]string {
	variables := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	return variables
}
