// SPDX-License-Identifier: Apache-2.0

package serving

import "cmp"

// Access states who may make a call.
type Access struct {
	// Caller is who that is, in a few words.
	Caller string
	// Rules are the rules of the policy that decide about the call as a whole.
	Rules []string
	// Admit identifies the caller, before its turn.
	Admit []Step
	// Check applies the rules, in the caller's turn, and loads what they are about.
	Check []Step
	// Secret is true if the parameters of the path are a secret, which the log must not have.
	Secret bool
}

// Anybody lets everybody in, without a token.
func Anybody() Access { return Access{Caller: "everybody"} }

// Rule admits callers that the rule allows to act on resources of their own project, or on resources without a
// project.
func Rule(name string) Access {
	return Loading([]string{name}, func(c *Call) {
		by := c.Asker()
		if err := by.Check(name, by.ProjectID); err != nil {
			c.Fail(err)
		}
	})
}

// Rules admits callers with a token; the call itself applies one of the rules.
func Rules(names ...string) Access { return Loading(names) }

// Loading admits callers with a token. The checks apply the rules, and load what the call is about.
func Loading(rules []string, checks ...Step) Access {
	return Access{Caller: "a token", Rules: rules, Admit: []Step{Authenticate}, Check: checks}
}

// OwnAndOthers returns the rule about what belongs to the caller's project, and the one about what belongs to others.
func OwnAndOthers(rule string) []string { return []string{rule, rule + "_all_projects"} }

// Found is the result of looking for what a call is about.
type Found struct {
	// Err is the error of the reading; without one, the thing belongs to a project, and Own is true if that is the asker's.
	Err       error
	ProjectID string
	Own       bool
	// Missing is the error for those who may not learn that it exists.
	Missing error
}

// Reach returns nil if the asker may act on what was found. The rule decides about a thing of the asker's own project, and
// the rule with the suffix _all_projects about any other: for askers that it denies, that thing does not exist.
func (a *Asker) Reach(rule string, f Found) error {
	if f.Err == nil && !f.Own {
		if a.May(rule+"_all_projects", f.ProjectID) {
			return nil
		}
		f.Err = f.Missing
	}
	// An asker that may not act on things of its own project must not learn which ones exist.
	return cmp.Or(a.Check(rule, a.ProjectID), f.Err)
}
