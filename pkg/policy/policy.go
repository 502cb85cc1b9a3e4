// SPDX-License-Identifier: Apache-2.0

// Package policy decides which caller may do what. The rules are in the language of oslo.policy;
// their defaults are in code, and an operator's policy.yaml overrides them.
//
// goslo.policy evaluates the rules. Load refuses what goslo.policy would silently accept: a rule,
// a credential or a target attribute that does not exist, rules that refer to each other in a
// circle, and the http: check, which it does not implement. Unlike in oslo.policy, a mistyped rule
// is an error and never evaluates to false.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	goslo "github.com/databus23/goslo.policy"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Credentials are the attributes of a token's owner.
type Credentials struct {
	UserID, UserDomainID       string
	ProjectID, ProjectDomainID string
	// DomainID is the domain that a domain-scoped token is for.
	DomainID string
	// System is true for a token whose scope is the whole system.
	System bool
	// IsAdminProject is true unless Keystone has an admin project and the token is for another
	// project.
	IsAdminProject bool
	// Roles are the names of the roles. The roles that Keystone's admin and member imply count too.
	Roles []string
}

// Scope is what a token is valid for.
type Scope string

// The scopes that a rule may accept.
const (
	Project Scope = "project"
	System  Scope = "system"
)

// scope returns what a token is for, and the same in words.
func (c Credentials) scope() (s Scope, name string) {
	switch {
	case c.System:
		return System, "the system"
	case c.ProjectID != "":
		return Project, "a project"
	case c.DomainID != "":
		return "", "a domain"
	}
	return "", "nothing in particular"
}

// context returns the credentials in the form of goslo.policy, under the names of oslo.context
// (RequestContext.to_policy_values).
func (c Credentials) context(target map[string]string) goslo.Context {
	attributes := map[string]string{
		"user_id": c.UserID, "user_domain_id": c.UserDomainID,
		"project_id": c.ProjectID, "project_domain_id": c.ProjectDomainID,
		"domain_id": c.DomainID, "is_admin_project": "False",
	}
	if c.IsAdminProject {
		attributes["is_admin_project"] = "True"
	}
	if c.System {
		attributes["system_scope"] = "all"
	}
	maps.DeleteFunc(attributes, func(_, value string) bool { return value == "" })
	return goslo.Context{Auth: attributes, Roles: implied(c.Roles), Request: target}
}

// credentials are the attributes to which a check may refer.
var credentials = []string{
	"user_id", "user_domain_id", "project_id", "project_domain_id", "domain_id", "system_scope", "is_admin_project",
}

// implied adds the roles that Keystone's own implications grant (keystone-manage bootstrap: admin
// implies member, member implies reader), for a token that lists only the first.
func implied(roles []string) []string {
	all := slices.Clone(roles)
	for _, implication := range [][2]string{{"admin", "member"}, {"member", "reader"}} {
		if has(all, implication[0]) && !has(all, implication[1]) {
			all = append(all, implication[1])
		}
	}
	return all
}

// has reports whether roles contain a role. It ignores the case of the name, as oslo.policy does.
func has(roles []string, name string) bool {
	return slices.ContainsFunc(roles, func(r string) bool { return strings.EqualFold(r, name) })
}

// Enforcer decides by one set of rules, which never changes. Load returns a new Enforcer from the
// current files.
type Enforcer struct {
	rules  map[string]entry
	engine *goslo.Enforcer
}

// entry is a rule in effect.
type entry struct {
	Rule
	source string // the file that contains the check; empty for the default
	needs  []string
}

// Check returns nil if the rule allows by to act on target, and otherwise a Denied fault that names
// the rule. Like oslo.policy with enforce_scope, it denies a token whose scope the rule does not
// accept, whatever the check string is.
//
// target describes the resource; its only attribute is project_id.
func (e *Enforcer) Check(rule string, by Credentials, target map[string]string) error {
	asked, ok := e.rules[rule]
	if !ok {
		return fmt.Errorf("check policy: %s", fault.Unknown("rule", rule, e.Rules()))
	}
	if len(asked.Scopes) > 0 {
		if scope, name := by.scope(); !slices.Contains(asked.Scopes, scope) {
			return fault.New(fault.Denied, "policy does not allow %s with a token for %s; get one for a %s",
				rule, name, strings.Join(fault.Texts(asked.Scopes), " or for the "))
		}
	}
	if !e.engine.Enforce(rule, by.context(target)) {
		return fault.New(fault.Denied, "policy does not allow %s with %s; it requires %q",
			rule, described(by.Roles), asked.Check)
	}
	return nil
}

// described returns the roles in words, sorted.
func described(roles []string) string {
	if len(roles) == 0 {
		return "no role"
	}
	return "the roles " + strings.Join(slices.Sorted(slices.Values(roles)), ", ")
}

// Rules returns the names of the rules in effect, sorted.
func (e *Enforcer) Rules() []string { return slices.Sorted(maps.Keys(e.rules)) }

// Step is one rule in an explanation, and whether it allows the operation.
type Step struct {
	Rule, Check string
	// Source is the file that contains the check; empty for a default.
	Source  string
	Allowed bool
}

// Explain returns the rules that Check evaluates: the rule, then every rule to which it refers,
// each once, depth first. It does not check scopes.
func (e *Enforcer) Explain(rule string, by Credentials, target map[string]string) []Step {
	var steps []Step
	seen := make(map[string]bool)
	var visit func(name string)
	visit = func(name string) {
		r, ok := e.rules[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		steps = append(steps, Step{
			Rule: name, Check: r.Check, Source: r.source, Allowed: e.engine.Enforce(name, by.context(target)),
		})
		for _, needed := range r.needs {
			visit(needed)
		}
	}
	visit(rule)
	return steps
}
