// SPDX-License-Identifier: Apache-2.0

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

// names are the names of secrets, which also match as the end of a longer name: those of
// oslo_utils/strutils.py that are not specific to one project, and the keys of APIs.
var names = []string{
	"password", "passwd", "passphrase", "pswd", "adminpass", "admin_pass", "authpass", "auth_pass", "newpass", "new_pass",
	"token", "secret", "configdrive", "apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key",
	"encrypted_key", "fernetkey", "fernet_key", "sslkey", "ssl_key",
}

// pattern replaces a secret. If the end of a secret is in doubt, it replaces more than the secret.
type pattern struct {
	traces  []string // every match contains one of them, in lower case; a cheap test before find
	find    *regexp.Regexp
	replace string
}

var patterns = []pattern{
	// Quoted, after = or : or a space: password = "x", 'adminPass': 'x', token "x". A quote that
	// is not closed extends to the end.
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
	// URLs and DSNs: rabbit://user:x@host, user:x@tcp(host)/db. A password may contain an
	// unescaped @ or /, so the match ends at the last @ of the word.
	{[]string{"://"}, regexp.MustCompile(`(://[^\s/?#:@]*:)\S*@`), "${1}" + hidden + "@"},
	{
		[]string{"@tcp(", "@unix("},
		regexp.MustCompile(`(^|[\s"'=(])([^\s:/@"'=(]+:)\S*(@(?:tcp|unix)\()`), "${1}${2}" + hidden + "${3}",
	},
}

// named returns the pattern for a secret that follows its NAME; the first group of expression
// stays.
func named(expression string) pattern {
	name := "(?:" + strings.Join(names, "|") + ")[0-9]*"
	return pattern{names, regexp.MustCompile(strings.ReplaceAll(expression, "NAME", name)), "${1}" + hidden}
}

// Mask replaces the secrets in text by ***, with the patterns of oslo.utils' mask_password:
// passwords, tokens and keys that follow their name in code, JSON, XML, INI, a URL's query or a
// command line. It also hides the passwords in URLs and DSNs, the values of token and
// Authorization headers, and Fernet tokens. Other text stays as it is.
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

// longest is how many bytes of a message or value are kept. journald splits a line at 48 KiB, and
// escapes may quadruple the length; text after the split would begin a forged line.
const longest = 8 << 10

// shown returns text that is safe to log: at most longest bytes, masked.
func shown(text string) string {
	if left := len(text) - longest; left > 0 {
		text = fmt.Sprintf("%s ... and %d bytes more", strings.ToValidUTF8(text[:longest], ""), left)
	}
	return Mask(text)
}

// clean returns the attributes resolved and masked, without empty ones, and with the members of
// unnamed groups in the place of the group. A value that is neither a number nor a boolean becomes
// a string. The value of an attribute with the name of a secret is hidden completely, as in
// oslo.utils' mask_dict_password.
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

// cleanValue returns the value as it is written: texts without secrets and control characters.
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
