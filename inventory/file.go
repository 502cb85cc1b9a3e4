// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
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
