// Package placing has the words of instance placement: what is to be placed and
// what a filter says of a host.
package placing

// Request is what a placement decision needs to know of an instance; the source
// is Nova's RequestSpec (nova/objects/request_spec.py).
type Request struct {
	ProjectID string
	// Hints are the scheduler hints of the boot request.
	Hints map[string][]string
	// Preemptible says that the instance may be terminated to make room.
	Preemptible bool
}

// Verdict is a filter's word on one host: the zero Verdict admits it, any other
// refuses it and says why.
type Verdict struct {
	Reason string
}

// Admit is the verdict that lets a host pass.
var Admit = Verdict{}

// Refuse gives the verdict that keeps a host out, with a sentence for the user.
func Refuse(reason string) Verdict { return Verdict{Reason: reason} }

// Admitted says that the host passes.
func (v Verdict) Admitted() bool { return v == Admit }
