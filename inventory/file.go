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

// FileSource gives the Source of the file at path. Nothing is read yet.
func FileSource(path string) *File { return &File{path: path} }

// Hosts gives the hosts in the order of the file. It looks at the file at every
// call and parses it when its content has changed.
//
// What is wrong with the content is told by joined faults of kind Invalid, each
// "path:line: what is wrong". After an error the next call reads anew.
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
