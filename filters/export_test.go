package filters

// Match says whether a host's value is as an extra spec asks.
func Match(value, asked string) (bool, error) { return compare(asked).holds(value) }
