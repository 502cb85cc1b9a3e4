package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Load returns the defaults as changed by the files of paths, in order, and then
// by the *.conf files of dirs, sorted by name in each directory. Later files win
// over earlier ones. Environment variables of the form OS_<GROUP>__<OPTION>, such
// as OS_DATABASE__CONNECTION, win over all files.
//
// The error joins all problems in the order of reading. Each is a *fault.Error of
// kind Invalid, prefixed with its file and line or its environment variable.
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
	l := loader{sections: sections, variables: environment}
	restore(l.sections)
	for _, path := range paths {
		l.file(path)
	}
	for _, dir := range dirs {
		l.dir(dir)
	}
	l.environment()
	l.unknownVariables()
	var o Origin
	switch {
	case len(paths) > 0:
		o.Folder = filepath.Dir(paths[0])
	case len(dirs) > 0:
		o.Folder = dirs[0]
	}
	return o, errors.Join(l.errs...)
}

// loader sets the fields that its sections are bound to.
type loader struct {
	sections  []section
	variables map[string]string
	errs      []error
}

func (l *loader) dir(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.errs = append(l.errs, unreadable("directory", err))
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
		l.errs = append(l.errs, unreadable("file", err))
		return
	}
	for s, err := range statements(string(content)) {
		if err == nil {
			err = l.apply(s)
		}
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("%s:%d: %w", path, s.line, err))
		}
	}
}

// apply sets the field of a statement, unless the environment overrides it. Like
// oslo.config, it ignores the case of section names.
func (l *loader) apply(s statement) error {
	at := slices.IndexFunc(l.sections, func(known section) bool { return strings.EqualFold(known.name, s.section) })
	switch {
	case at < 0 && s.key == "":
		return fault.Field("["+s.section+"]", "%s", fault.Unknown("section", s.section, names(l.sections, func(known section) string { return known.name })))
	case at < 0 || s.key == "":
		return nil // the header of the unknown section was refused before
	}
	name, options := l.sections[at].name, l.sections[at].options
	at = slices.IndexFunc(options, func(known option) bool { return known.name == s.key })
	if at < 0 {
		return fault.Field(field(name, s.key), "%s", fault.Unknown("option", s.key, names(options, func(known option) string { return known.name })))
	}
	if _, overridden := l.variables[variable(name, s.key)]; overridden {
		return nil
	}
	return set(name, options[at], s.value)
}

func (l *loader) environment() {
	for _, s := range l.sections {
		for _, o := range s.options {
			raw, ok := l.variables[variable(s.name, o.name)]
			if !ok {
				continue
			}
			if err := set(s.name, o, raw); err != nil {
				l.errs = append(l.errs, fmt.Errorf("environment variable %s: %w", variable(s.name, o.name), err))
			}
		}
	}
}

func set(section string, o option, raw string) error {
	if err := o.set(raw); err != nil {
		return fault.Field(field(section, o.name), "%s", err)
	}
	return nil
}

func unreadable(what string, err error) error {
	return &fault.Error{Kind: fault.Invalid, Message: "the configuration " + what + " cannot be read", Err: err}
}

// field returns the name of an option for errors.
func field(section, option string) string { return fmt.Sprintf("[%s] %s", section, option) }

// unknownVariables refuses variables that belong to one of our sections but to no
// option. Variables of other sections may belong to another service.
func (l *loader) unknownVariables() {
	for _, s := range l.sections {
		known := names(s.options, func(o option) string { return variable(s.name, o.name) })
		for _, name := range slices.Sorted(maps.Keys(l.variables)) {
			if strings.HasPrefix(name, variable(s.name, "")) && !slices.Contains(known, name) {
				l.errs = append(l.errs, fault.New(fault.Invalid, "%s", fault.Unknown("environment variable", name, known)))
			}
		}
	}
}

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
