// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSimulateStagingRefusesWhatItCannotRunAndNamesTheFlag(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	for _, args := range []string{"--experiment acuracy", "--image-size 0", "--pool-limit 1", "--suspend-rate -1", "--reservation-length 0", "--boot soon", "--measured-rate 0"} {
		code, messages := simulate(t, append([]string{"staging", "--out", folder}, strings.Fields(args)...)...)
		if flag := strings.Fields(args)[0]; code != exitUsage || !strings.Contains(messages, flag) || strings.Count(messages, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", args, code, messages)
		}
	}
}
