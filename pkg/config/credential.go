// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// credentialsFolder is the variable with which systemd names the folder of a service's credentials
// (systemd.exec(5), LoadCredential).
const credentialsFolder = "CREDENTIALS_DIRECTORY"

// credentials reads the files of folder whose names are SECTION.OPTION; an empty folder is none. Like
// variables, those of other sections may serve another purpose.
func (l *loader) credentials(folder string) {
	if folder == "" {
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		l.fail(unreadable("folder "+credentialsFolder, folder, err))
		return
	}
	for _, entry := range entries {
		group, name, _ := strings.Cut(entry.Name(), ".")
		if s := l.section(group); s != nil {
			l.add(s.credential(folder, entry, name))
		}
	}
}

// credential reads the value of an option as it is, without the end of the line that an editor adds.
func (s *section) credential(folder string, entry fs.DirEntry, key string) reading {
	r := reading{where: "credential " + entry.Name(), overrides: true, literal: true}
	if s.option(key) == nil {
		r.where, r.err = "", fault.New(fault.Invalid, "%s", fault.Unknown("credential", entry.Name(), names(s.options, func(o option) string { return s.name + "." + o.name })))
		return r
	}
	text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
	if err != nil {
		r.where, r.err = "", unreadable("credential", filepath.Join(folder, entry.Name()), err)
		return r
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	r.statement = statement{section: s.name, key: key, value: value}
	return r
}
