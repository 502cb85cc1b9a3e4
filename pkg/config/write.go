// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// width is the maximum length of comment lines in the sample.
const width = 79

// Sample writes a configuration file with every option at its default, commented out,
// below its description and allowed values, in the layout of oslo-config-generator.
func Sample(w io.Writer) error {
	var cfg Config
	return sample(w, "Almanac", table(&cfg))
}

// SampleSection writes the part of Sample that has one section, by its name in any case.
func SampleSection(w io.Writer, name string) error {
	var cfg Config
	l := loader{sections: table(&cfg)}
	s := l.section(name)
	if s == nil {
		return fault.New(fault.Invalid, "%s", fault.Unknown("section", name, l.sectionNames()))
	}
	restore(l.sections)
	var b bytes.Buffer
	s.sample(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// MinimalSample is a configuration beside OpenStack with the options that have no usable default.
const MinimalSample = `# Almanac beside OpenStack. almanacd config sample lists all options.
[DEFAULT]
transport_url = rabbit://almanac:PASSWORD@mq.example.org:5672/almanac
log_dir = /var/log/almanac

[api]
# The address of this machine.
host = 192.0.2.11
auth_strategy = keystone

[keystone_authtoken]
auth_url = https://keystone.example.org:5000/v3
username = almanac
password = PASSWORD
project_name = service

[database]
connection = mysql+pymysql://almanac:PASSWORD@db.example.org/almanac

[inventory]
source = openstack
`

func sample(w io.Writer, program string, sections []section) error {
	var b bytes.Buffer
	comment(&b, "Configuration of "+program+": every option with its default. To change one, remove the # before "+
		"it. A duration is a number of seconds or has units, such as 90, 2h30m, 30d or 2w.")
	restore(sections)
	for _, s := range sections {
		b.WriteString("\n")
		s.sample(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (s *section) sample(b *bytes.Buffer) {
	fmt.Fprintf(b, "[%s]\n", s.name)
	for _, o := range s.options {
		b.WriteString("\n")
		comment(b, fmt.Sprintf("%s (%s)", o.help, o.kind))
		for _, limit := range o.limits {
			comment(b, limit)
		}
		if o.mutable {
			comment(b, "Note: This option can be changed without restarting.")
		}
		for _, value := range o.texts() {
			b.WriteString("#" + assignment(o.name, value))
		}
	}
}

// Show writes the values of cfg as a configuration file, in the order of the
// sample. It replaces the passwords in URLs of any option, and other secrets as a
// whole, with ***.
func Show(w io.Writer, cfg Config) error {
	var b bytes.Buffer
	for i, s := range table(&cfg) {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "[%s]\n", s.name)
		for _, o := range s.options {
			for _, value := range o.texts() {
				if o.secret || strings.Contains(value, "://") {
					value = mask(value)
				}
				b.WriteString(assignment(o.name, value))
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// assignment returns the line that Load reads as value. Quotes preserve what Load
// would strip.
func assignment(name, value string) string {
	value = escape(value)
	if strings.TrimSpace(value) != value || unquote(value) != value {
		value = `"` + value + `"`
	}
	return strings.TrimRight(name+" = "+value, " ") + "\n"
}

// comment writes text in comment lines of at most width bytes.
func comment(b *bytes.Buffer, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

const hidden = "***"

// passParameter matches a query parameter of a URL that carries a password or a token.
var passParameter = regexp.MustCompile(`(?i)([?&][^=&]*(?:pass|secret|token|api_?key)[^=&]*=)[^&#]*`)

// mask hides the passwords of a URL, which may name several hosts, each with a
// user as in transport URLs, or all with the first one's as in database URLs. It
// hides the whole text if it is not a URL, or if an @ or comma that is not
// percent-encoded makes the end of a password ambiguous.
func mask(secret string) string {
	if strings.HasPrefix(secret, "file:") || secret == "" {
		return passParameter.ReplaceAllString(secret, "${1}"+hidden)
	}
	scheme, rest, ok := strings.Cut(secret, "://")
	end := strings.IndexAny(rest+"/", "/?#")
	hosts, tail := strings.Split(rest[:end], ","), rest[end:]
	if !ok || strings.Contains(tail, "@") {
		return hidden
	}
	for i, host := range hosts {
		user, address, found := strings.Cut(host, "@")
		if strings.Contains(address, "@") || found && !strings.Contains(hosts[0], "@") {
			return hidden
		}
		if name, _, given := strings.Cut(user, ":"); found && given {
			hosts[i] = name + ":" + hidden + "@" + address
		}
	}
	return scheme + "://" + strings.Join(hosts, ",") + passParameter.ReplaceAllString(tail, "${1}"+hidden)
}
