package oslolog

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
)

const hidden = "***"

// names are what secrets are called, as the end of a longer name too: those of
// oslo_utils/strutils.py that belong to no other project, and the keys of APIs.
var names = []string{
	"password", "passwd", "passphrase", "pswd", "adminpass", "admin_pass", "authpass", "auth_pass", "newpass", "new_pass",
	"token", "secret", "configdrive", "apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key",
	"encrypted_key", "fernetkey", "fernet_key", "sslkey", "ssl_key",
}

// pattern says what to replace by what. Where the end of a secret is in doubt,
// more than the secret goes.
type pattern struct {
	traces  []string // one of them is in every match, in lower case; to look for them is cheap
	find    *regexp.Regexp
	replace string
}

var patterns = []pattern{
	// Quoted, behind = or : or a space: password = "x", 'adminPass': 'x', token "x".
	// A quote that is not closed reaches to the end.
	named(`(?is)(NAME\\*["']?(?:\s*[=:]\s*|\s+)[bu]?\\*")(?:[^"\\]|\\(?:.|\z))*`),
	named(`(?is)(NAME\\*["']?(?:\s*[=:]\s*|\s+)[bu]?\\*')(?:[^'\\]|\\(?:.|\z))*`),
	// Plain: password = x, and Password:x as Go prints the fields of a struct.
	named(`(?i)(NAME(?:\s*=\s*|:))[^\s"']\S*`),
	// The argument of a command: --os-password x.
	named(`(?i)(--[\w-]*NAME\s+)[^\s"']\S*`),
	// XML: <adminPass>x</adminPass>.
	named(`(?i)(<[\w:-]*NAME>)[^<]*`),
	// Headers: X-Auth-Token: x, Authorization: Bearer x.
	{[]string{"-token"}, regexp.MustCompile(`(?i)(\bx-[a-z]+-token"?\s*:\s*)[^\s"']\S*`), "${1}" + hidden},
	{
		[]string{"authorization"},
		regexp.MustCompile(`(?i)(\bauthorization\\*["']?\s*[:=]\s*\[?\\*["']?(?:(?:bearer|basic)\s+)?)[^\s"'\]]+`), "${1}" + hidden,
	},
	// A Fernet token of Keystone, wherever it stands.
	{[]string{"gaaaa"}, regexp.MustCompile(`\bgAAAA[\w-]{20,}=*`), hidden},
	// URLs and DSNs: rabbit://user:x@host, user:x@tcp(host)/db. A password may hold
	// an @ or a / that somebody forgot to encode, so the last @ of the word counts.
	{[]string{"://"}, regexp.MustCompile(`(://[^\s/?#:@]*:)\S*@`), "${1}" + hidden + "@"},
	{
		[]string{"@tcp(", "@unix("},
		regexp.MustCompile(`(^|[\s"'=(])([^\s:/@"'=(]+:)\S*(@(?:tcp|unix)\()`), "${1}${2}" + hidden + "${3}",
	},
}

// named gives the pattern that finds a secret, behind its first group, by its NAME.
func named(expression string) pattern {
	name := "(?:" + strings.Join(names, "|") + ")[0-9]*"
	return pattern{names, regexp.MustCompile(strings.ReplaceAll(expression, "NAME", name)), "${1}" + hidden}
}

// Mask hides the secrets in text behind ***, by the patterns of oslo.utils'
// mask_password: passwords, tokens and keys that follow their name in code, JSON,
// XML, INI, a URL's query or a command line. Beyond those it hides the passwords
// of URLs and DSNs, the values of token and Authorization headers, and Fernet
// tokens. Text that shows no such pattern stays as it is.
func Mask(text string) string {
	lower := strings.ToLower(text)
	for _, p := range patterns {
		if containsAny(lower, p.traces) {
			text = p.find.ReplaceAllString(text, p.replace)
		}
	}
	return text
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// longest is how many bytes of a message or value are kept. journald splits a line
// at 48 KiB, and escapes take up to four times the room; behind the split somebody
// else's text would begin a line.
const longest = 8 << 10

// shown gives text as it may stand in the log.
func shown(text string) string {
	if left := len(text) - longest; left > 0 {
		text = fmt.Sprintf("%s ... and %d bytes more", strings.ToValidUTF8(text[:longest], ""), left)
	}
	return Mask(text)
}

// clean gives the attributes resolved and masked, without those that are empty,
// and the members of groups without a name in their place. What is neither a
// number nor a truth becomes a text. The values of names that speak of a secret
// are hidden whole, as oslo.utils' mask_dict_password does.
func clean(attributes []slog.Attr) []slog.Attr {
	var kept []slog.Attr
	for _, a := range attributes {
		a.Value = a.Value.Resolve()
		switch {
		case a.Equal(slog.Attr{}):
			continue
		case containsAny(strings.ToLower(a.Key), names):
			a.Value = slog.StringValue(hidden)
		default:
			a.Value = cleanValue(a.Value)
		}
		if a.Value.Kind() != slog.KindGroup {
			kept = append(kept, a)
		} else if members := a.Value.Group(); a.Key == "" {
			kept = append(kept, members...)
		} else if len(members) > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

func cleanValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindGroup:
		return slog.GroupValue(clean(v.Group())...)
	case slog.KindString, slog.KindDuration:
		return slog.StringValue(shown(v.String()))
	case slog.KindTime:
		return slog.StringValue(v.Time().Format(time.RFC3339Nano))
	case slog.KindAny:
		return slog.StringValue(shown(fmt.Sprintf("%+v", v.Any())))
	default:
		return v
	}
}
