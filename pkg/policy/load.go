// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	goslo "github.com/databus23/goslo.policy"
	"github.com/goccy/go-yaml"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Options name the files that override the default rules.
type Options struct {
	// File is a YAML file that maps names of rules to check strings; empty means that there is
	// none.
	File string
	// Dirs are folders whose *.yaml files are read after File, in the order of their names. If
	// several files define a rule, the last one counts.
	Dirs []string
}

// Load returns the defaults overridden by the files. It fails with an Invalid fault that lists
// everything that is wrong with them.
func Load(o Options) (*Enforcer, error) {
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	e := &Enforcer{rules: make(map[string]entry)}
	for _, r := range Defaults() {
		e.rules[r.Name] = entry{Rule: r}
	}
	known, texts := e.Rules(), make(map[string]string)
	var errs []error
	for _, file := range files {
		checks, err := readFile(file)
		if err != nil {
			return nil, err
		}
		for name, check := range checks {
			rule := e.rules[name]
			rule.Name, rule.Check, rule.source = name, check, file
			e.rules[name] = rule
		}
	}
	for _, name := range e.Rules() {
		rule := e.rules[name]
		read, err := read(rule.Check)
		if err != nil {
			errs = append(errs, rule.wrong(err))
			continue
		}
		rule.needs, texts[name] = read.needs, read.text
		e.rules[name] = rule
	}
	errs = append(errs, e.unreachable(known)...)
	errs = append(errs, e.unresolved()...)
	if len(errs) == 0 {
		errs = append(errs, e.compile(texts))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fault.New(fault.Invalid, "the policy is wrong:\n%v", err)
	}
	return e, nil
}

func (r entry) wrong(err error) error { return fmt.Errorf("%s: rule %s: %w", r.source, r.Name, err) }

// files returns the paths of the files in the order in which they are read.
func (o Options) files() ([]string, error) {
	var files []string
	if o.File != "" {
		files = append(files, o.File)
	}
	for _, dir := range o.Dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read the policy of [oslo_policy] policy_dirs: %w", err)
		}
		for _, entry := range entries {
			if name := entry.Name(); filepath.Ext(name) == ".yaml" && !strings.HasPrefix(name, ".") && !entry.IsDir() {
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	return files, nil
}

// readFile returns the rules of a file: check strings by the name of the rule.
func readFile(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy of [oslo_policy] policy_file: %w", err)
	}
	var rules map[string]any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return nil, fault.New(fault.Invalid, "%s must list rules, each as \"name\": \"check\": %s", path, yaml.FormatError(err, false, false))
	}
	checks := make(map[string]string, len(rules))
	for name, value := range rules {
		check, ok := value.(string)
		if !ok {
			return nil, fault.New(fault.Invalid, "%s: rule %s: a check is a string in quotes; \"@\" allows everybody, \"!\" nobody", path, name)
		}
		checks[name] = check
	}
	return checks, nil
}

// unreachable returns an error for every mistyped name: a name that is neither a rule of Almanac
// nor one to which another rule refers.
func (e *Enforcer) unreachable(known []string) []error {
	asked := make(map[string]bool)
	for _, r := range e.rules {
		for _, name := range r.needs {
			asked[name] = asked[name] || name != r.Name
		}
	}
	var errs []error
	for _, name := range e.Rules() {
		if !asked[name] && !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("%s: %s", e.rules[name].source, fault.Unknown("rule", name, known)))
		}
	}
	return errs
}

// unresolved returns an error for every rule that refers to a missing rule, or to itself.
func (e *Enforcer) unresolved() []error {
	var errs []error
	for _, name := range e.Rules() {
		r := e.rules[name]
		for _, needed := range r.needs {
			if _, ok := e.rules[needed]; !ok {
				errs = append(errs, r.wrong(errors.New(fault.Unknown("rule", needed, e.Rules()))))
			}
		}
		if e.asksFor(r, name, make(map[string]bool)) {
			errs = append(errs, r.wrong(errors.New("it refers to itself, directly or through other rules")))
		}
	}
	return errs
}

// asksFor reports whether r refers to the rule, directly or through other rules.
func (e *Enforcer) asksFor(r entry, rule string, seen map[string]bool) bool {
	for _, needed := range r.needs {
		if needed == rule {
			return true
		}
		if !seen[needed] {
			seen[needed] = true
			if e.asksFor(e.rules[needed], rule, seen) {
				return true
			}
		}
	}
	return false
}

// compile passes the check strings to goslo.policy.
func (e *Enforcer) compile(texts map[string]string) error {
	engine, err := goslo.NewEnforcer(texts)
	if err != nil {
		return err
	}
	engine.AddCheck("role", func(c goslo.Context, _, match string) bool { return has(c.Roles, match) })
	e.engine = engine
	return nil
}
