// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// StoreServer writes fields of a server into the database of its cell, such as a vm_state that the lab's
// servers never stay in.
func (c LabCloud) StoreServer(t testing.TB, id string, fields map[string]any) {
	t.Helper()
	for cell := range c.Cells(t) {
		store(t, fmt.Sprintf("nova_cell%d", cell+1), "instances", id, fields) // the other cells have no such row
	}
}

// Cells returns the number of Nova's cells that have hosts.
func (c LabCloud) Cells(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), "cells"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// InCell returns the hosts of a cell; the first cell is 1.
func (c LabCloud) InCell(t testing.TB, cell int) (hosts []string) {
	t.Helper()
	for _, process := range computeProcesses(t) {
		if process.cell == fmt.Sprintf("cell%d", cell) {
			hosts = append(hosts, process.hosts...)
		}
	}
	return hosts
}

// CellOf returns the hosts of the cell of a host, with it.
func (c LabCloud) CellOf(t testing.TB, host string) []string {
	t.Helper()
	for cell := range c.Cells(t) {
		if hosts := c.InCell(t, cell+1); slices.Contains(hosts, host) {
			return hosts
		}
	}
	t.Fatalf("the lab has no host %s", host)
	return nil
}

// NovaManage runs nova-manage and returns its output.
func (c LabCloud) NovaManage(t testing.TB, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(folder(t), "nova-manage"), args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("nova-manage %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out)
}

// Audit runs `nova-manage placement audit --delete`, which removes the allocations of consumers
// that Nova does not know, and returns its output.
func (c LabCloud) Audit(t testing.TB) string {
	t.Helper()
	const removed = 4 // the exit status when it has removed some
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder(t), "nova-manage"), "placement", "audit", "--verbose", "--delete").CombinedOutput()
	if ended, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || ended.ExitCode() != removed) {
		t.Fatalf("nova-manage placement audit: %v\n%s", err, out)
	}
	return string(out)
}
