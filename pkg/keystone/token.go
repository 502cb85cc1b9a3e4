package keystone

import (
	"regexp"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Token is what Keystone says of a token that is valid.
type Token struct {
	UserID, UserName             string
	UserDomainID, UserDomainName string
	// One of ProjectID, DomainID and System says what the token is for; none of
	// them where it is for nothing in particular.
	ProjectID, ProjectName             string
	ProjectDomainID, ProjectDomainName string
	DomainID, DomainName               string
	System                             bool
	// IsAdminProject is false only where Keystone has an admin project and the
	// token is for another one.
	IsAdminProject bool
	Roles          []string
	Expires        time.Time
	// ServiceRoles are the roles of the service token that came with it; empty
	// without one.
	ServiceRoles []string

	// rules are the access rules of its application credential; nil without any.
	rules []accessRule
	// chained says that a service with a service role passed the request on.
	chained bool
}

// accessRule is what an application credential allows.
type accessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
}

// named is how Keystone writes a user, project or domain.
type named struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"domain"`
}

// document is the body of Keystone's answer to GET /v3/auth/tokens.
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

// Permits says nothing where the token may be used for a call of our service
// type. It fails with a Denied fault where the access rules of its application
// credential do not list the call; what a service passes on is not asked
// (keystonemiddleware, validate_allowed_request).
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

// pathPattern reads the path of an access rule: * and {name} stand for one
// segment, ** for any number.
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
