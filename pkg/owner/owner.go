// SPDX-License-Identifier: Apache-2.0

// Package owner knows who owns files: it names the owner in errors, and hands what root creates to the user
// whose folder it is in, so that a command that runs once as root leaves nothing that the service cannot use.
package owner

import (
	"cmp"
	"os/user"
	"path/filepath"
	"strconv"
)

// Group returns the name of the group of the file or folder at path, or of the nearest folder above it about
// which this process may know; empty if that is unknown.
func Group(path string) string {
	for {
		if _, gid, err := stat(path); err == nil {
			return groupName(gid)
		}
		above := filepath.Dir(path)
		if above == path {
			return ""
		}
		path = above
	}
}

// Of returns the name of the owner of the file or folder at path; empty if that is unknown.
func Of(path string) string {
	uid, _, err := stat(path)
	if err != nil {
		return ""
	}
	return userName(uid)
}

// User returns the name of the user of this process, or its number.
func User() string {
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(effective())
	}
	return cmp.Or(u.Username, u.Uid)
}

// userName returns the name of a user, or the number if it has none.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// groupName returns the name of a group, or the number if it has none.
func groupName(gid int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return g.Name
	}
	return strconv.Itoa(gid)
}
