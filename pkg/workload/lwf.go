// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// The reasons to skip a lease.
const (
	badTime    = "has a time that is not as HH:MM:SS"
	badNodes   = "has a number of nodes that is none"
	badAmount  = "has an amount of a resource that is no number"
	noDuration = "has no duration"
	badImage   = "has a disk image whose size is no number of megabytes"
	lwfColumns = 10
	percentCPU = 100 // one CPU
	megabyte   = 1 << 20
	noImage    = "NONE.img"
)

// leases reads the lease workloads of Haizea, which are XML. Times are seconds since the
// beginning of the workload.
//
// The Job of a lease is Reserved only if the lease has an exact start, not if it is best effort (an
// empty start) or starts now. Its Estimate is the lease's duration; its Runtime is the real
// duration, or the duration if the file has none. A lease with several sets of nodes has nodes of
// the same shape: the largest amount of each resource in the sets.
type leases struct {
	decoder *xml.Decoder
	input   *meter
	head    *Header
	rooted  bool              // the root element is read
	first   *xml.StartElement // the request that follows the site
	err     error             // set if there is no request
}

// newLeases reads the site, which precedes the requests.
func newLeases(r *bufio.Reader, head *Header) *leases {
	input := &meter{r: r}
	l := &leases{decoder: xml.NewDecoder(input), input: input, head: head}
	l.first, l.err = l.request()
	return l
}

// site is the XML of the machine.
type site struct {
	Sets []struct {
		Nodes string `xml:"numnodes,attr"`
	} `xml:"nodes>node-set"`
}

// lease is the XML of a lease.
type lease struct {
	Arrival      string  `xml:"arrival,attr"`
	RealDuration *moment `xml:"realduration"`
	Lease        struct {
		ID          string `xml:"id,attr"`
		Preemptible string `xml:"preemptible,attr"`
		Sets        []struct {
			Nodes     string `xml:"numnodes,attr"`
			Resources []struct {
				Type   string `xml:"type,attr"`
				Amount string `xml:"amount,attr"`
			} `xml:"res"`
		} `xml:"nodes>node-set"`
		Exact    *moment `xml:"start>exact"`
		Duration *moment `xml:"duration"`
		Deadline *moment `xml:"deadline"`
		Image    *struct {
			ID   string `xml:"id,attr"`
			Size string `xml:"size,attr"`
		} `xml:"software>disk-image"`
	} `xml:"lease"`
}

type moment struct {
	Time string `xml:"time,attr"`
}

// next returns the job of the next lease of the file, or why the lease is left out.
func (l *leases) next() (job Job, why string, err error) {
	start, err := l.first, l.err
	l.first = nil
	if start == nil && err == nil {
		start, err = l.request()
	}
	if err != nil {
		l.err = err
		return job, "", err
	}
	line, _ := l.decoder.InputPos()
	var read lease
	if err := l.decode(&read, start); err != nil {
		l.err = err
		return job, "", err
	}
	job, why = read.job()
	job.Line = int64(line)
	return job, why, nil
}

// request reads up to the start of the next request.
func (l *leases) request() (*xml.StartElement, error) {
	for {
		l.input.left = longestLine
		token, err := l.decoder.Token()
		if err != nil {
			return nil, l.failed(err)
		}
		start, ok := token.(xml.StartElement)
		switch name := start.Name.Local; {
		case !ok:
		case !l.rooted && name != "lease-workload" && name != "lease-requests":
			return nil, l.failed(fmt.Errorf("it begins with <%.40s>, and not with <lease-workload>", name))
		case !l.rooted:
			l.rooted = true
		case name == "lease-request":
			return &start, nil
		case name == "site":
			var read site
			if err := l.decode(&read, &start); err != nil {
				return nil, err
			}
			for _, set := range read.Sets {
				n, _ := whole([]byte(set.Nodes), mostSize)
				l.head.MaxNodes = min(mostSize, l.head.MaxNodes+int(max(0, n)))
			}
		}
	}
}

// decode reads an element of XML of bounded length into v.
func (l *leases) decode(v any, start *xml.StartElement) error {
	l.input.left = longestLine
	if err := l.decoder.DecodeElement(v, start); err != nil {
		return l.failed(err)
	}
	return nil
}

// failed returns the error of the stream for an error of the XML: io.EOF, which the decoder returns
// only at the end of a document, and otherwise an Invalid fault with the line.
func (l *leases) failed(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	line, _ := l.decoder.InputPos()
	return &fault.Error{Kind: fault.Invalid, Message: fmt.Sprintf("line %d: the XML cannot be read", line), Err: err}
}

// job returns the lease as a job, or why the lease is left out.
func (read *lease) job() (job Job, why string) {
	clock := func(text string) (t int64) {
		t, bad := clockTime(text)
		if bad != "" && why == "" {
			why = bad
		}
		return t
	}
	job = Job{ID: strings.TrimSpace(read.Lease.ID), Waited: -1, Submit: clock(read.Arrival)}
	job.Preemptible = strings.EqualFold(strings.TrimSpace(read.Lease.Preemptible), "true")
	if read.Lease.Duration == nil {
		return job, noDuration
	}
	job.Estimate = clock(read.Lease.Duration.Time)
	job.Runtime = job.Estimate
	if read.RealDuration != nil {
		job.Runtime = clock(read.RealDuration.Time)
	}
	if exact := read.Lease.Exact; exact != nil {
		job.Reserved, job.Start = true, clock(exact.Time)
	}
	if deadline := read.Lease.Deadline; deadline != nil {
		job.Deadline = clock(deadline.Time)
	}
	if why != "" {
		return job, why
	}
	if image := read.Lease.Image; image != nil {
		if why = job.setImage(image.ID, image.Size); why != "" {
			return job, why
		}
	}
	return job, read.nodes(&job)
}

// setImage sets the disk image of a job, whose size is in megabytes in the file. In the old form
// the image is in quotation marks, and NONE.img means no image.
func (j *Job) setImage(image, size string) (why string) {
	n, bad := whole([]byte(strings.TrimSpace(size)), mostTime)
	if bad != "" || n < 0 {
		return badImage
	}
	if image = strings.Trim(image, " '\""); image != "" && image != noImage {
		j.Image, j.ImageSize = image, n*megabyte
	}
	return ""
}

// nodes sets the size of a job and the shape of its nodes. why is the reason why the lease cannot
// be used; "" if it can.
func (read *lease) nodes(job *Job) (why string) {
	for _, set := range read.Lease.Sets {
		n, bad := whole([]byte(strings.TrimSpace(set.Nodes)), mostSize)
		if bad != "" || n < 1 || job.Size > mostSize-int(n) {
			return badNodes
		}
		var shape resource.Vector
		for _, res := range set.Resources {
			amount, bad := whole([]byte(strings.TrimSpace(res.Amount)), mostTime)
			switch {
			case bad != "" || amount < 0:
				return badAmount
			case res.Type == "CPU":
				shape.VCPUs = (amount + percentCPU - 1) / percentCPU
			case res.Type == "Memory":
				shape.MemoryMB = amount
			}
		}
		job.Size += int(n)
		job.Shape = job.Shape.Max(shape)
	}
	return ""
}

// clockTime parses [days:]HH:MM:SS[.hundredths], with any number of hours, or plain seconds.
func clockTime(text string) (seconds int64, why string) {
	text = strings.TrimSpace(text)
	parts := strings.Split(text, ":")
	last := len(parts) - 1
	parts[last], _, _ = strings.Cut(parts[last], ".")
	units := []int64{1, 60, 3600, 86400}
	if last >= len(units) {
		return 0, badTime
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 40)
		if err != nil {
			return 0, badTime
		}
		seconds += int64(n) * units[last-i]
	}
	if seconds > mostTime {
		return 0, outOfRange
	}
	return seconds, ""
}

// meter fails a read after the bytes that one element may have, so that memory is bounded.
type meter struct {
	r    *bufio.Reader
	left int
}

var errLongElement = errors.New("an element is longer than 1 MiB")

// ReadByte implements io.ByteReader. Because of it the decoder reads single bytes and buffers
// nothing, so the count is the size of an element.
func (m *meter) ReadByte() (byte, error) {
	if m.left--; m.left < 0 {
		return 0, errLongElement
	}
	return m.r.ReadByte()
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) { return m.r.Read(p) }

// oldLeases reads the format of Haizea's leases before XML, with one lease on each line: arrival,
// start (-1 means best effort), duration, real duration, nodes, CPU, memory, disk, image and its
// size. Times are seconds. The nodes are whole hosts, so the jobs have no shape.
type oldLeases struct{ row row }

func (f *oldLeases) isHeader(line []byte) bool { return bytes.HasPrefix(line, []byte("#")) }

// job returns the job of a line of Haizea's older format, or why the line is left out.
func (f *oldLeases) job(line []byte) (job Job, why string) {
	r := &f.row
	r.split(line)
	if len(r.fields) != lwfColumns {
		return job, fewColumns
	}
	job = Job{Submit: r.time(0), Estimate: max(0, r.time(2)), Runtime: r.time(3), Size: r.size(4), Waited: -1}
	if start := r.time(1); start >= 0 {
		job.Reserved, job.Start = true, start
	} else {
		job.Preemptible = true
	}
	if why := job.setImage(string(r.fields[8]), string(r.fields[9])); why != "" && r.why == "" {
		r.why = why
	}
	return job, r.why
}
