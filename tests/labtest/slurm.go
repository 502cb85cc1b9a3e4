// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Slurm is a controller of Slurm of a test's own, with nodes that nothing runs on.
type Slurm struct {
	t      testing.TB
	config string
}

// StartSlurm starts a controller with a number of nodes. Its programs are Debian's packages
// slurmctld, slurm-client and munge (LAB_PROGRAMS).
func StartSlurm(t testing.TB, nodes int) *Slurm {
	t.Helper()
	files := private(t, folder(t), "slurm")
	key := make([]byte, 128)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(files, name) }
	s := &Slurm{t, in("slurm.conf")}
	config := fmt.Sprintf(`ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%d
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=%s
StateSaveLocation=%s
SlurmctldPidFile=%s
SelectType=select/cons_tres
ProctrackType=proctrack/linuxproc
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
NodeName=node[1-%d] State=CLOUD CPUs=16 RealMemory=65536
PartitionName=all Nodes=ALL Default=YES State=UP
`, freePorts(t, 1), in("munge.socket"), in("state"), in("slurmctld.pid"), nodes)
	for name, content := range map[string][]byte{"munge.key": key, "slurm.conf": []byte(config)} {
		if err := os.WriteFile(in(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	munge, err := launch(nil, in("munged.log"), "munged", "--foreground", "--force", "--key-file="+in("munge.key"),
		"--socket="+in("munge.socket"), "--pid-file="+in("munged.pid"), "--seed-file="+in("munge.seed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(munge.kill)
	controller, err := launch(nil, in("slurmctld.log"), "slurmctld", "-D", "-f", s.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(controller.kill)
	err = controller.answers(patience, func() error {
		if out, err := s.control("ping"); err != nil || !strings.Contains(out, "is UP") {
			return fmt.Errorf("slurmctld does not answer: %w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Control lets one scontrol carry out commands that create reservations.
func (s *Slurm) Control(commands ...string) {
	s.t.Helper()
	out, err := s.control(commands...)
	if created := strings.Count(out, "Reservation created"); err != nil || created != len(commands) {
		s.t.Fatalf("slurmctld created %d of %d reservations: %v\n%s", created, len(commands), err, out)
	}
}

func (s *Slurm) control(commands ...string) (string, error) {
	c := exec.Command("scontrol")
	c.Env = append(os.Environ(), "SLURM_CONF="+s.config)
	c.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\nquit\n")
	out, err := c.CombinedOutput()
	return string(out), err
}
