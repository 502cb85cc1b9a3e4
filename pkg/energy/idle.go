// SPDX-License-Identifier: Apache-2.0

package energy

// idle reports whether a host is on and without work.
func (m *Machine) idle() bool { return m.Phase == Awake && !m.Busy }

// Count adds a measurement and returns, by the name of the machine, for how many consecutive
// measurements, including this one, the machine has been idle. before is the result for the last
// measurement. A machine that is not idle has no entry, and starts at 1 when it is idle again
// (checkIdle of paper 004, section 004.1, with erratum E004-5).
func Count(before map[string]int, machines []Machine) map[string]int {
	now := make(map[string]int, len(machines))
	for i := range machines {
		if m := &machines[i]; m.idle() {
			now[m.Name] = before[m.Name] + 1
		}
	}
	return now
}
