// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

const (
	// farthest and longestStage are how far ahead a request may start and how long it may last, in
	// the question's unit. They equal the limits of the service in seconds.
	farthest     = 100_000_000_000
	longestStage = 100 * 366 * 24 * 3600
)

// check validates the question and sets the defaults.
func (q *StageQuestion) check() error {
	if q.Strategy == "" {
		q.Strategy = string(staging.EDF)
	}
	switch {
	case outOfRange(q.Now):
		return fault.Field("now", "is out of range")
	case q.Bandwidth == nil || *q.Bandwidth <= 0 || *q.Bandwidth > mostTime:
		return fault.Field("bandwidth", "is required, and must be more than 0: what is transferred in one unit of time")
	case !slices.Contains(staging.Strategies, staging.Strategy(q.Strategy)):
		return fault.Field("strategy", "%s", fault.Unknown("strategy", q.Strategy, staging.Strategies))
	case q.PoolLimit < 0 || q.PoolLimit > mostTime:
		return fault.Field("pool_limit", "must be from 0 to 2^53; 0 is no limit")
	}
	nodes, err := q.checkNodes()
	if err != nil {
		return err
	}
	if err := q.checkPending(nodes); err != nil {
		return err
	}
	return q.checkRequest()
}

// checkNodes returns the names of the nodes, or an Invalid fault for the first that is wrong.
func (q *StageQuestion) checkNodes() (names map[string]bool, err error) {
	if n := len(q.Nodes); n < 1 || n > mostHosts {
		return nil, fault.Field("nodes", "must be from 1 to %d of them", mostHosts)
	}
	names = map[string]bool{}
	alike := map[string]bool{}
	for i, n := range q.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		key := strings.ToLower(n.Name) // Nova ignores case
		switch {
		case n.Name == "":
			return nil, fault.Field(path+".name", "is required")
		case alike[key]:
			return nil, fault.Field(path+".name", "%q is the name of two nodes", n.Name)
		}
		names[n.Name], alike[key] = true, true
		if err := n.Capacity.check(path + ".capacity"); err != nil {
			return nil, err
		}
		for j, c := range n.Committed {
			if err := c.check(fmt.Sprintf("%s.committed[%d]", path, j)); err != nil {
				return nil, err
			}
		}
		for j, p := range n.Pool {
			if err := p.check(fmt.Sprintf("%s.pool[%d]", path, j)); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

// check returns an Invalid fault if the time or the resources are wrong.
func (c *StageCommitted) check(path string) error {
	if c.Start == nil || outOfRange(*c.Start) {
		return fault.Field(path+".start", "is required, and must be less than 2^53")
	}
	if outOfRange(c.End) || c.End <= *c.Start {
		return fault.Field(path+".end", "must be after the start, and less than 2^53")
	}
	if err := c.Resources.check(path + ".resources"); err != nil {
		return err
	}
	if c.Resources.vector().IsZero() {
		return fault.Field(path+".resources", "are empty; set what is committed")
	}
	return nil
}

// check returns an Invalid fault if the image, its end or its size is wrong.
func (p *StageImage) check(path string) error {
	switch {
	case p.Image == "":
		return fault.Field(path+".image", "is required")
	case p.Expire == nil || outOfRange(*p.Expire):
		return fault.Field(path+".expire", "is required, and must be less than 2^53")
	}
	return checkSize(path+".size", p.Size)
}

// checkSize returns an Invalid fault if the size of an image is out of range. nil is allowed.
func checkSize(path string, size *float64) error {
	if size != nil && (*size < 0 || *size > mostTime) {
		return fault.Field(path, "must be from 0 to 2^53")
	}
	return nil
}

// checkPending returns an Invalid fault for the first transfer that is wrong, or whose node is not among
// nodes.
func (q *StageQuestion) checkPending(nodes map[string]bool) error {
	ids := map[string]bool{}
	for i, p := range q.Pending {
		path := fmt.Sprintf("pending[%d]", i)
		if err := p.check(path, q.Now); err != nil {
			return err
		}
		switch {
		case ids[p.ID]:
			return fault.Field(path+".id", "%q is the id of two transfers", p.ID)
		case !nodes[p.Node]:
			return fault.Field(path+".node", "there is no node %q among nodes", p.Node)
		}
		ids[p.ID] = true
	}
	return nil
}

// check returns an Invalid fault if a field of the transfer is missing or contradicts another.
func (p *StagePending) check(path string, now int64) error {
	switch {
	case p.ID == "":
		return fault.Field(path+".id", "is required")
	case p.Image == "":
		return fault.Field(path+".image", "is required")
	case p.Duration == nil || *p.Duration < 1 || outOfRange(*p.Duration):
		return fault.Field(path+".duration", "is required, and must be from 1 to 2^53")
	case p.Deadline == nil || outOfRange(*p.Deadline):
		return fault.Field(path+".deadline", "is required, and must be less than 2^53")
	case p.Expire != nil && (outOfRange(*p.Expire) || *p.Expire < *p.Deadline):
		return fault.Field(path+".expire", "must not be before the deadline")
	case p.Start != nil && (outOfRange(*p.Start) || *p.Start > now || *p.Start+*p.Duration <= now):
		return fault.Field(path+".start", "must be such that the transfer is under way now; omit it for a transfer that is not")
	}
	return checkSize(path+".size", p.Size)
}

// checkRequest returns an Invalid fault if the request of the question is wrong. It may be missing.
func (q *StageQuestion) checkRequest() error {
	r := q.Request
	if r == nil {
		return nil
	}
	switch {
	case r.VMs == nil || *r.VMs < 1 || *r.VMs > mostOfAny:
		return fault.Field("request.vms", "is required, and must be from 1 to %d", mostOfAny)
	case r.Start == nil || *r.Start < q.Now || *r.Start > q.Now+farthest:
		return fault.Field("request.start", "is required, and must not be before now nor more than %d after it", farthest)
	case r.End == nil || *r.End <= *r.Start || *r.End > *r.Start+longestStage:
		return fault.Field("request.end", "is required, and must be after the start, by no more than %d", longestStage)
	case r.Image == "" && r.Size != nil:
		return fault.Field("request.image", "is required for an image with a size")
	}
	if err := checkSize("request.size", r.Size); err != nil {
		return err
	}
	if err := r.Resources.check("request.resources"); err != nil {
		return err
	}
	if r.Resources.vector().IsZero() {
		return fault.Field("request.resources", "are empty; set the size of one VM")
	}
	return nil
}

// check returns an Invalid fault if resources are missing, named twice or out of range.
func (r *StageResources) check(path string) error {
	switch {
	case r == nil:
		return fault.Field(path, "is required: vcpus, memory_mb and disk_gb")
	case r.VCPUs != nil && r.CPU != nil:
		return fault.Field(path+".cpu", "is another name of vcpus; use only one of them")
	case r.MemoryMB != nil && r.Memory != nil:
		return fault.Field(path+".memory", "is another name of memory_mb; use only one of them")
	}
	v := r.vector()
	return checkResources(path, v1.Resources{VCPUs: v.VCPUs, MemoryMB: v.MemoryMB, DiskGB: v.DiskGB, Custom: v.Custom})
}

// vector returns the resources, under either of their names.
func (r *StageResources) vector() resource.Vector {
	first := func(values ...*int64) int64 {
		for _, v := range values {
			if v != nil {
				return *v
			}
		}
		return 0
	}
	return resource.Vector{VCPUs: first(r.VCPUs, r.CPU), MemoryMB: first(r.MemoryMB, r.Memory), DiskGB: r.DiskGB, Custom: r.Custom}
}

// facts returns the question's images and transfers in the form of the service.
func (q *StageQuestion) facts() (*staging.Facts, error) {
	sizes, err := q.sizes()
	if err != nil {
		return nil, err
	}
	unit := q.unit(sizes)
	whole := func(size float64) int64 { return int64(math.Ceil(size * unit)) }
	image := func(id string) staging.Image { return staging.Image{ID: id, Size: whole(sizes[id])} }
	f := &staging.Facts{
		Site: staging.Site{
			Strategy: staging.Strategy(q.Strategy), Limit: int64(q.PoolLimit * unit),
			Repositories: []staging.Repository{{Name: "repository", Rate: *q.Bandwidth * unit}},
		},
		Images: map[string]staging.Image{}, Pools: map[string][]staging.Entry{},
	}
	if q.PoolLimit > 0 {
		f.Site.Limit = max(f.Site.Limit, 1) // 0 would be no limit
	}
	if q.Request != nil && q.Request.Image != "" {
		f.Images[q.Request.Image] = image(q.Request.Image)
	}
	for _, n := range q.Nodes {
		for _, p := range n.Pool {
			f.Pools[n.Name] = append(f.Pools[n.Name], staging.Entry{Image: image(p.Image), From: q.shifted(q.Now), Expire: q.shifted(*p.Expire)})
		}
	}
	for i, p := range q.Pending {
		t := staging.Transfer{
			ID: p.ID, Image: image(p.Image), Node: p.Node, Seconds: *p.Duration, Entered: int64(i),
			Deadline: q.shifted(*p.Deadline), Expire: q.shifted(*p.Deadline),
		}
		if p.Expire != nil {
			t.Expire = q.shifted(*p.Expire)
		}
		if p.Start != nil {
			t.Started, t.Repository = true, f.Site.Repositories[0].Name
			t.Start, t.End = q.shifted(*p.Start), q.shifted(*p.Start+*p.Duration)
		}
		f.Running = append(f.Running, t)
	}
	return f, nil
}

// sizes returns the size of each image: a size in the question; otherwise the one that follows from
// the duration of its transfer; otherwise that of the request's image, because in the paper all
// images have one size.
func (q *StageQuestion) sizes() (map[string]float64, error) {
	sizes := map[string]float64{}
	for _, said := range q.said() {
		if known, twice := sizes[said.image]; twice && said.size != nil && known != *said.size {
			return nil, fault.Field(said.path, "image %q has another size elsewhere, %v", said.image, known)
		}
		if said.size != nil {
			sizes[said.image] = *said.size
		}
	}
	for _, p := range q.Pending {
		if _, known := sizes[p.Image]; !known {
			sizes[p.Image] = float64(*p.Duration) * *q.Bandwidth
		}
	}
	usual, known := 0.0, q.Request == nil || q.Request.Image == ""
	if !known {
		if usual, known = sizes[q.Request.Image]; !known {
			return nil, fault.Field("request.size", "is required: the size of image %q is otherwise unknown", q.Request.Image)
		}
	}
	for _, n := range q.Nodes {
		for _, p := range n.Pool {
			if _, known := sizes[p.Image]; !known {
				sizes[p.Image] = usual
			}
		}
	}
	return sizes, nil
}

// saidSize is a place in the question where an image can have a size; size is nil if it has none
// there.
type saidSize struct {
	path, image string
	size        *float64
}

// said returns all sizes of images that the question states, with their places in it.
func (q *StageQuestion) said() []saidSize {
	var list []saidSize
	if r := q.Request; r != nil {
		list = append(list, saidSize{"request.size", r.Image, r.Size})
	}
	for i, p := range q.Pending {
		list = append(list, saidSize{fmt.Sprintf("pending[%d].size", i), p.Image, p.Size})
	}
	for i, n := range q.Nodes {
		for j, p := range n.Pool {
			list = append(list, saidSize{fmt.Sprintf("nodes[%d].pool[%d].size", i, j), p.Image, p.Size})
		}
	}
	return list
}

// unit returns how many internal units make one unit of size of the question. It is 1 if all sizes,
// the pool limit and the bandwidth are whole numbers. Otherwise it is the largest power of ten from
// 1 to 1,000,000 with which the largest size and the pool limit stay within mostTime; 1 if none
// does.
func (q *StageQuestion) unit(sizes map[string]float64) float64 {
	all, largest := []float64{q.PoolLimit, *q.Bandwidth}, q.PoolLimit
	for _, size := range sizes {
		all, largest = append(all, size), max(largest, size)
	}
	if !slices.ContainsFunc(all, func(v float64) bool { return v != math.Trunc(v) }) {
		return 1
	}
	unit := 1e6
	for unit > 1 && largest*unit > mostTime {
		unit /= 10
	}
	return unit
}
