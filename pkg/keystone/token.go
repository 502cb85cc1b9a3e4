// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"regexp"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Token describes a valid token.
type Token struct {
	UserID, UserName             string
	UserDomainID, UserDomainName string
	// ProjectID, DomainID or System is the scope of the token; an unscoped token has none.
	ProjectID, ProjectName             string
	ProjectDomainID, ProjectDomainName string
	DomainID, DomainName               string
	System                             bool
	// IsAdminProject is false only if Keystone has an admin project and the token is for
	// another project.
	IsAdminProject bool
	Roles          []string
	Expires        time.Time
	// ServiceRoles are the roles of the service token in the same request, if any.
	ServiceRoles []string

	// rules are the access rules of its application credential; nil: none.
	rules []accessRule
	// chained: a service with a service role forwarded the request.
	chained bool
}

// accessRule is a call that an application credential allows.
type accessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
}

// named is the JSON form of a user, project or domain.
type named struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"domain"`
}

// document is the body of Keystone's response to GET /v3/auth/tokens.
type document struct {
	Token struct {
		User    named           `json:"user"`
		Project named           `json:"project"`
		Domain  named           `json:"domain"`
		System  map[string]bool `json:"system"`
		Roles   []struct {
			Name string `json:"name"`
		} `json:"roles"`
		IsAdminProject        *bool     `json:"is_admin_project"`
		Expires               time.Time `json:"expires_at"`
		ApplicationCredential struct {
			AccessRules []accessRule `json:"access_rules"`
		} `json:"application_credential"`
	} `json:"token"`
}

// token returns Keystone's document about a token as a Token.
func (d document) token() Token {
	t := d.Token
	token := Token{
		UserID: t.User.ID, UserName: t.User.Name, UserDomainID: t.User.Domain.ID, UserDomainName: t.User.Domain.Name,
		ProjectID: t.Project.ID, ProjectName: t.Project.Name,
		ProjectDomainID: t.Project.Domain.ID, ProjectDomainName: t.Project.Domain.Name,
		DomainID: t.Domain.ID, DomainName: t.Domain.Name, System: t.System["all"],
		IsAdminProject: t.IsAdminProject == nil || *t.IsAdminProject,
		Expires:        t.Expires, rules: t.ApplicationCredential.AccessRules,
	}
	for _, role := range t.Roles {
		token.Roles = append(token.Roles, role.Name)
	}
	return token
}

// Permits returns a Denied fault if the access rules of the token's application credential
// do not list a call of our service type. The rules do not apply to requests that a service
// forwards (keystonemiddleware, validate_allowed_request).
func (t Token) Permits(serviceType, method, path string) error {
	if t.rules == nil || t.chained {
		return nil
	}
	for _, rule := range t.rules {
		if rule.Service == serviceType && rule.Method == method && pathPattern(rule.Path).MatchString(path) {
			return nil
		}
	}
	return fault.New(fault.Denied, "the access rules of your application credential do not allow %s %s of service %s",
		method, path, serviceType)
}

var pathPart = regexp.MustCompile(`\{[^}]*\}|\*\*|\*|[^{*]+|\{`)

// pathPattern returns the pattern of the path of an access rule, in which * and {name} stand
// for one segment and ** for any number.
func pathPattern(path string) *regexp.Regexp {
	var pattern strings.Builder
	for _, part := range pathPart.FindAllString(path, -1) {
		switch {
		case part == "**":
			pattern.WriteString(".*")
		case part == "*" || strings.HasPrefix(part, "{") && len(part) > 1:
			pattern.WriteString("[^/]+")
		default:
			pattern.WriteString(regexp.QuoteMeta(part))
		}
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`)
}
