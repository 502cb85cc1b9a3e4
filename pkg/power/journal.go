// SPDX-License-Identifier: Apache-2.0

package power

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// journal stores the order log of an agent in a file, so that a run has the orders of the previous
// one. The zero journal stores nothing.
type journal struct {
	path string
	lock *os.File
}

// page is the content of the file.
type page struct {
	Epoch  int64           `json:"epoch"`
	Orders []acceptedOrder `json:"orders"` // those of a host in the order in which they came
}

type acceptedOrder struct {
	energy.Order
	energy.Outcome
}

// openJournal opens the file and locks it for this process. It creates the file and its folder if
// they do not exist.
func openJournal(path string) (journal, error) {
	if path == "" {
		return journal{}, nil
	}
	if err := owner.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return journal{}, fmt.Errorf("create the folder of the agent's state file; create it yourself, or name another in [agent] state_file: %w", err)
	}
	lock, err := owner.OpenFile(path+".lock", os.O_RDWR, 0o600)
	if err != nil {
		return journal{}, fmt.Errorf("open the agent's state file: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close() // nothing was written
		return journal{}, fault.New(fault.Conflict, "another agent uses the state file %s; each agent needs a state_file of its own", path)
	}
	return journal{path: path, lock: lock}, nil
}

// close unlocks the state file.
func (j journal) close() error {
	if j.lock == nil {
		return nil
	}
	return j.lock.Close()
}

// read returns the order log that was written last.
func (j journal) read() (*orderLog, error) {
	b := &orderLog{hosts: map[string][]entry{}}
	if j.path == "" {
		return b, nil
	}
	text, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's state file: %w", err)
	}
	var p page
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fault.New(fault.Invalid, "the agent's state file %s is damaged (%v); it is safe to remove it while no order is under way",
			j.path, err)
	}
	b.epoch = p.Epoch
	for _, t := range p.Orders {
		b.hosts[t.Host] = append(b.hosts[t.Host], entry{order: t.Order, outcome: t.Outcome})
	}
	return b, nil
}

// write replaces the stored order log. After a crash the file contains the new log or the one
// before.
func (j journal) write(b *orderLog) error {
	if j.path == "" {
		return nil
	}
	p := page{Epoch: b.epoch, Orders: []acceptedOrder{}}
	for _, entries := range b.hosts {
		for _, e := range entries {
			p.Orders = append(p.Orders, acceptedOrder{e.order, e.outcome})
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the agent's state: %w", err)
	}
	return fault.While(replace(j.path, append(bytes.TrimSpace(text), '\n')), "write the agent's state file")
}

// replace replaces the content of the file at path. It returns when the content is on the disk.
func replace(path string, content []byte) error {
	next, err := owner.OpenFile(path+".new", os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
