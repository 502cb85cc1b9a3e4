// SPDX-License-Identifier: Apache-2.0

package serving

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
