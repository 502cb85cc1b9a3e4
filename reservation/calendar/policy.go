package calendar

// Policy names a rule of paper 003 section 5 for choosing among feasible starts.
type Policy string

// The seven policies. PE is the number of free hosts of a start's availability rectangle,
// duration is its length; best is the smallest, worst the largest.
const (
	PolicyFirstFit           Policy = "first-fit"
	PolicyPEBestFit          Policy = "pe-best-fit"
	PolicyPEWorstFit         Policy = "pe-worst-fit"
	PolicyDurationBestFit    Policy = "duration-best-fit"
	PolicyDurationWorstFit   Policy = "duration-worst-fit"
	PolicyPEDurationBestFit  Policy = "pe-duration-best-fit"
	PolicyPEDurationWorstFit Policy = "pe-duration-worst-fit"
)

// Policies lists all policies, in the order of the paper.
var Policies = []Policy{
	PolicyFirstFit, PolicyPEBestFit, PolicyPEWorstFit, PolicyDurationBestFit, PolicyDurationWorstFit, PolicyPEDurationBestFit, PolicyPEDurationWorstFit,
}

// better reports whether the policy prefers a, a later start, to b. Of equal candidates the
// earlier start wins.
func (p Policy) better(a, b Candidate) bool {
	switch p {
	case PolicyPEBestFit:
		return a.Free < b.Free
	case PolicyPEWorstFit:
		return a.Free > b.Free
	case PolicyDurationBestFit:
		return a.length() < b.length()
	case PolicyDurationWorstFit:
		return a.length() > b.length()
	case PolicyPEDurationBestFit:
		return a.area() < b.area()
	case PolicyPEDurationWorstFit:
		return a.area() > b.area()
	default: // FirstFit
		return false
	}
}

func (c Candidate) length() int64 { return int64(c.End - c.Begin) }

func (c Candidate) area() float64 { return float64(c.Free) * float64(c.length()) }
