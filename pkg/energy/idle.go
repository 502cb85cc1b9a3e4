package energy

// idle says that a host is on, open and without any work.
func (m *Machine) idle() bool { return m.Phase == Awake && !m.Busy }

// Count counts a measurement: it gives for how many of them, this one included, each
// machine has been idle without a break, by name. before is what the last measurement
// gave. One that is not idle, or was not there, has no entry and begins again at 1
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
