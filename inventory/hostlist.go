// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Bounds of a list of hosts: mostListed is the largest number of names that its brackets together
// stand for, longestName is the length of a host name in Nova's database, mostDigits that of a
// number in brackets.
const (
	mostListed  = 10_000
	longestName = 255
	mostDigits  = 18
)

var (
	hostName  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	hostRange = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?$`)
)

// ExpandNames returns the host names of a list, each once, in the order of the list. Its elements
// are separated by commas; numbers in brackets stand for several names:
//
//	node-01,node-02            node-01 node-02
//	node-[08-10,12]            node-08 node-09 node-10 node-12
//	r[1-2]n[01-02].example.org r1n01.example.org r1n02.example.org r2n01.example.org r2n02.example.org
//	node-[1-10/3]              node-1 node-4 node-7 node-10
//
// It reads what ClusterShell 1.9 and Slurm 22.05 read alike, and of ClusterShell alone the steps
// and what follows the last bracket. It refuses what both read differently. Brackets together stand
// for at most 10,000 names, and a name has at most 255 characters.
func ExpandNames(list string) ([]string, error) {
	elements, err := splitList(list)
	if err != nil {
		return nil, err
	}
	var names []string
	listed := make(map[string]bool)
	left := mostListed
	for _, text := range elements {
		e := element{text: text}
		if err := e.parse(left); err != nil {
			return nil, err
		}
		if e.count > 1 {
			left -= e.count
		}
		for _, name := range e.names() {
			if !listed[name] {
				listed[name] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// splitList returns the elements of a list, without the spaces around them.
func splitList(list string) (elements []string, err error) {
	begin, inside := 0, false
	for i := range len(list) + 1 {
		switch {
		case i < len(list) && list[i] == '[':
			inside = true
		case i < len(list) && list[i] == ']':
			inside = false
		case i == len(list) || list[i] == ',' && !inside:
			text := strings.TrimSpace(list[begin:i])
			if text == "" {
				return nil, fmt.Errorf("%q is not a host name, nor a list of them without gaps", list)
			}
			elements, begin = append(elements, text), i+1
		}
	}
	return elements, nil
}

// element is an element of a list. Each of its parts is a text, or brackets with their numbers as
// they are written: the alternatives at that place of the name.
type element struct {
	text  string
	parts [][]string
	count int // of names
	// longest is the length of the longest name.
	longest int
}

// parse reads the parts of the element, which may stand for at most left names.
func (e *element) parse(left int) error {
	e.count = 1
	for rest := e.text; rest != ""; {
		before, after, bracket := strings.Cut(rest, "[")
		switch {
		case before == "" && len(e.parts) > 0:
			return differs(e.text, "brackets without a character between them", "write a list for one of them")
		case strings.ContainsAny(before, "!&^"):
			return differs(e.text, `"!", "&" and "^"`, "list the hosts that remain")
		case strings.Contains(before, "]"):
			return fmt.Errorf(`%q has no "[" before a "]"`, e.text)
		case before != "" && !hostName.MatchString(before):
			return fmt.Errorf("%q is not a host name: letters, digits, dots, dashes and underscores", e.text)
		}
		if before != "" {
			e.add([]string{before})
		}
		if rest = ""; bracket {
			inside, behind, closed := strings.Cut(after, "]")
			if !closed {
				return fmt.Errorf(`%q has no "]" after a "["`, e.text)
			}
			numbers, err := parseRanges(e.text, inside)
			if err != nil {
				return err
			}
			e.add(numbers)
			rest = behind
		}
		switch {
		case e.count > max(1, left):
			return fmt.Errorf("%q is too long; the brackets of a list may stand for %d hosts", e.text, mostListed)
		case e.longest > longestName:
			return fmt.Errorf("a name of %.40q… is too long; a host name has at most %d characters", e.text, longestName)
		}
	}
	return nil
}

// add adds a part, which stands for several texts, to an element of a host list.
func (e *element) add(part []string) {
	longest := 0
	for _, text := range part {
		longest = max(longest, len(text))
	}
	e.parts, e.count, e.longest = append(e.parts, part), e.count*len(part), e.longest+longest
}

// names returns the names of the element; the numbers of its last brackets change first.
func (e *element) names() []string {
	names := []string{""}
	for _, part := range e.parts {
		longer := make([]string, 0, len(names)*len(part))
		for _, name := range names {
			for _, text := range part {
				longer = append(longer, name+text)
			}
		}
		names = longer
	}
	return names
}

// parseRanges returns the numbers in a pair of brackets of an element.
func parseRanges(text, inside string) (all []string, err error) {
	if strings.ContainsAny(inside, " \t\r\n") {
		return nil, differs(text, "spaces in brackets", "leave them out")
	}
	for one := range strings.SplitSeq(inside, ",") {
		parts := hostRange.FindStringSubmatch(one)
		if parts == nil {
			return nil, fmt.Errorf(`%q in %q is not a range of numbers; write it like "node-[01-16,18]"`, one, text)
		}
		first, last, step := parts[1], parts[2], parts[3]
		if last == "" {
			last = first
		}
		if len(first) > mostDigits || len(last) > mostDigits {
			return nil, fmt.Errorf("a number in %q is too long; it may have %d digits", text, mostDigits)
		}
		if padded := first[0] == '0' && len(first) > 1 || last[0] == '0' && len(last) > 1; padded && len(first) != len(last) {
			return nil, differs(text, fmt.Sprintf("%q", one), "write both numbers with the same number of digits")
		}
		if all, err = appendRange(all, first, last, step); err != nil {
			return nil, fmt.Errorf("the range %q of %q %w", one, text, err)
		}
	}
	return all, nil
}

// appendRange appends each step-th number from first to last, with at least as many digits as first.
func appendRange(all []string, first, last, step string) ([]string, error) {
	from, _ := strconv.ParseInt(first, 10, 64) // all three are digits that fit
	to, _ := strconv.ParseInt(last, 10, 64)
	by := int64(1)
	if step != "" {
		var err error
		if by, err = strconv.ParseInt(step, 10, 64); err != nil || by == 0 {
			return nil, fmt.Errorf("has the step %s; it is 1 or more", step)
		}
	}
	switch {
	case from > to:
		return nil, fmt.Errorf("runs backwards")
	case (to-from)/by >= int64(mostListed-len(all)):
		return nil, fmt.Errorf("is too long; brackets may stand for %d hosts", mostListed)
	}
	for n := from; n <= to; n += by {
		all = append(all, fmt.Sprintf("%0*d", len(first), n))
		if n > to-by {
			break
		}
	}
	return all, nil
}

// differs is the error for what ClusterShell and Slurm do not read alike.
func differs(text, what, remedy string) error {
	return fmt.Errorf("ClusterShell and Slurm read %s in %q differently; %s", what, text, remedy)
}
