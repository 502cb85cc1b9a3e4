// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// expression is a parsed check string, in the form of goslo.policy.
type expression struct {
	text  string   // in goslo.policy's form
	needs []string // the rules that it refers to, in their order
}

var (
	attribute = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	variable  = regexp.MustCompile(`^%\(([^()]*)\)s$`)
	// constant matches what oslo.policy reads as a Python literal on the left side.
	constant = regexp.MustCompile(`^(True|False|[-+]?\d+|'[^'\\]*'|"[^"\\]*")$`)
)

// read parses a check string word by word as oslo.policy does (oslo_policy/_parser.py,
// _parse_tokenize) and writes it in the form that goslo.policy requires: goslo.policy accepts no
// colon in a name and no white space other than blank and tab.
func read(check string) (expression, error) {
	var e expression
	var words []string
	for word := range strings.FieldsSeq(check) {
		inner := strings.TrimLeft(word, "(")
		middle := strings.TrimRight(inner, ")")
		words = append(words, slices.Repeat([]string{"("}, len(word)-len(inner))...)
		switch lower := strings.ToLower(middle); lower {
		case "and", "or", "not", "@", "!":
			words = append(words, lower)
		case "":
		default:
			text, err := e.single(middle)
			if err != nil {
				return e, err
			}
			words = append(words, text)
		}
		words = append(words, slices.Repeat([]string{")"}, len(inner)-len(middle))...)
	}
	e.text = strings.Join(words, " ")
	if check != "" && !wellFormed(words) {
		return e, fmt.Errorf("%q is not a check string; join checks with and, or, not and parentheses", check)
	}
	return e, nil
}

// wellFormed reports whether the words form one expression. goslo.policy must not receive words
// that do not: its lexer keeps running after its parser has reported an error.
func wellFormed(words []string) bool {
	open, operand := 0, true // operand: the next word must be an operand
	for _, word := range words {
		switch word {
		case "and", "or", ")":
			if operand {
				return false
			}
			if word == ")" {
				open--
			} else {
				operand = true
			}
		default:
			if !operand {
				return false
			}
			if word == "(" {
				open++
			} else {
				operand = word == "not"
			}
		}
		if open < 0 {
			return false
		}
	}
	return open == 0 && !operand
}

// single parses one check, KIND:MATCH.
func (e *expression) single(check string) (string, error) {
	kind, match, ok := strings.Cut(check, ":")
	if !ok || match == "" {
		return "", fmt.Errorf("%q is not a check; write KIND:MATCH, such as role:member", check)
	}
	literal, quoted := match, false
	if target := variable.FindStringSubmatch(match); target != nil {
		if target[1] != ProjectID {
			return "", fmt.Errorf("%s: a target has no attribute %q; the only one is %%(%s)s", check, target[1], ProjectID)
		}
	} else if quoted = !strings.ContainsAny(match, `'"\%()`); quoted {
		literal = "'" + match + "'"
	} else {
		return "", fmt.Errorf("%s: the right side must be one word, or %%(%s)s and nothing else", check, ProjectID)
	}
	switch {
	case kind == "http" || kind == "https":
		return "", fmt.Errorf("%s: Almanac does not ask other servers; use checks of roles, credentials and rules", check)
	case kind == "rule":
		if !quoted {
			return "", fmt.Errorf("%s: write the name of the rule", check)
		}
		e.needs = append(e.needs, match)
	case kind == "role" || slices.Contains(credentials, kind):
	case constant.MatchString(kind):
		if quoted {
			return "", fmt.Errorf("%s compares two constants; write @ for always and ! for never", check)
		}
		return "'" + strings.Trim(kind, `'"`) + "':" + literal, nil
	case attribute.MatchString(kind):
		return "", fmt.Errorf("%s: %s; the kinds are role, rule and %s", check,
			fault.Unknown("credential", kind, credentials), strings.Join(credentials, ", "))
	default:
		return "", fmt.Errorf("%s: the left side must be role, rule, a credential or a constant", check)
	}
	return kind + ":" + literal, nil
}
