package calendar

// Policy names a rule of paper 003 section 5 for choosing among feasible starts.
type Policy string

// The seven policies. PE is the number of free hosts of a start's availability rectangle,
// duration is its length; best is the smallest, worst the largest.
const (
	FirstFit           Policy = "first-fit"
	PEBestFit          Policy = "pe-best-fit"
	PEWorstFit         Policy = "pe-worst-fit"
	DurationBestFit    Policy = "duration-best-fit"
	DurationWorstFit   Policy = "duration-worst-fit"
	PEDurationBestFit  Policy = "pe-duration-best-fit"
	PEDurationWorstFit Policy = "pe-duration-worst-fit"
)

// Policies lists all policies, in the order of the paper.
var Policies = []Policy{
	FirstFit, PEBestFit, PEWorstFit, DurationBestFit, DurationWorstFit, PEDurationBestFit, PEDurationWorstFit,
}

// better reports whether the policy prefers a, a later start, to b. Of equal candidates the
// earlier start wins.
func (p Policy) better(a, b Candidate) bool {
	switch p {
	case PEBestFit:
		return a.Free < b.Free
	case PEWorstFit:
		return a.Free > b.Free
	case DurationBestFit:
		return a.length() < b.length()
	case DurationWorstFit:
		return a.length() > b.length()
	case PEDurationBestFit:
		return a.area() < b.area()
	case PEDurationWorstFit:
		return a.area() > b.area()
	default: // FirstFit
		return false
	}
}

func (c Candidate) length() int64 { return int64(c.End - c.Begin) }

func (c Candidate) area() float64 { return float64(c.Free) * float64(c.length()) }
