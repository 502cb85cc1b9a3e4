// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// File is the Source that reads hosts from a YAML file. The sample
// etc/almanac/hosts.yaml explains its keys.
type File struct {
	path string

	mu    sync.Mutex
	raw   []byte // what hosts was read from; nil before the first success
	hosts []Host
}

// FileSource returns the Source of the file at path, without reading it.
func FileSource(path string) *File { return &File{path: path} }

// Hosts returns the hosts in the order of the file. It reads the file at each call, and parses it
// if its content has changed.
//
// Errors in the content are joined faults of kind Invalid, each "path:line: message". After an
// error the next call parses the file again.
func (f *File) Hosts(ctx context.Context) ([]Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read hosts file: %w", err)
	}
	if f.raw == nil || !bytes.Equal(raw, f.raw) {
		hosts, err := readHosts(f.path, raw)
		if err != nil {
			return nil, err
		}
		f.raw, f.hosts = raw, hosts
	}
	return slices.Clone(f.hosts), nil
}

// maxRange is the largest number of hosts for which one entry of the hosts file can stand.
const maxRange = 10_000

var (
	hostName  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	nameRange = regexp.MustCompile(`^([A-Za-z0-9._-]*)\[([0-9]+)-([0-9]+)\]([A-Za-z0-9._-]*)$`)
)

// ExpandNames returns the host names that a pattern stands for: "node-[08-10]" is
// node-08, node-09 and node-10, and a name without a range is itself. Numbers
// are written with as many digits as the first.
func ExpandNames(pattern string) ([]string, error) {
	if hostName.MatchString(pattern) {
		return []string{pattern}, nil
	}
	if !strings.ContainsAny(pattern, "[]") {
		return nil, fmt.Errorf("%q is not a host name: letters, digits, dots, dashes and underscores", pattern)
	}
	parts := nameRange.FindStringSubmatch(pattern)
	if parts == nil {
		return nil, fmt.Errorf(`%q is not a range of host names; write it like "node-[01-16]"`, pattern)
	}
	first, errFirst := strconv.Atoi(parts[2])
	last, errLast := strconv.Atoi(parts[3])
	switch {
	case errFirst != nil || errLast != nil || last-first >= maxRange:
		return nil, fmt.Errorf("the range of %q is too long; it may hold %d hosts", pattern, maxRange)
	case first > last:
		return nil, fmt.Errorf("the range of %q runs backwards", pattern)
	}
	names := make([]string, 0, last-first+1)
	for number := first; number <= last; number++ {
		names = append(names, fmt.Sprintf("%s%0*d%s", parts[1], len(parts[2]), number, parts[4]))
	}
	return names, nil
}
