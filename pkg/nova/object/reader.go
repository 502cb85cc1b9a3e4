// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// reader reads the fields of one object. A field that is unset or null reads as the zero value.
// The first field of a wrong type is the error; from then on all fields read as zero.
type reader struct {
	path string // prefix of field names in errors, such as "flavor."
	data map[string]json.RawMessage
	err  *error // shared by all readers of one message
	// version is that of the object, such as "1.39".
	version string
}

// newReader returns the reader of the JSON object raw, which must have the kind: its name and
// major version, such as "InstanceList 2". Nova changes the major version if a reader of the
// old one would misunderstand the new one.
func newReader(path, kind string, raw json.RawMessage) (reader, error) {
	if isNull(raw) {
		return reader{}, fault.Field(path, "is missing")
	}
	if err := bounded(raw); err != nil {
		return reader{}, err
	}
	r := reader{err: new(error)}.open(path, kind, raw)
	return r, *r.err
}

// open returns the reader of raw, an object inside r or r itself.
func (r reader) open(path, kind string, raw json.RawMessage) reader {
	opened := reader{path: path + ".", err: r.err}
	if isNull(raw) || *r.err != nil {
		return opened
	}
	o, err := splitObject(raw)
	if err != nil {
		*r.err = fault.Field(path, "%s", fault.Of(err).Message)
		return opened
	}
	if *r.err = o.mustBe(path, kind); *r.err == nil {
		opened.data, opened.version = o.Data, o.Version
	}
	return opened
}

// mustBe returns an error for an object of another kind.
func (o *Object) mustBe(path, kind string) error {
	name, major, _ := strings.Cut(kind, " ")
	if o.Name != name {
		return fault.Field(path, "must be a %s, and is a %.100q", name, o.Name)
	}
	if got, _, _ := strings.Cut(o.Version, "."); got != major {
		return fault.Field(path, "is a %s of version %.100q; only %s.x is supported", name, o.Version, major)
	}
	return nil
}

// minor returns the minor number of the object's version; 0 if it is unset, null or has none.
func (r reader) minor() int {
	_, text, _ := strings.Cut(r.version, ".")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return minor
}

func (r reader) null(field string) bool { return isNull(r.data[field]) }

// read reads a field into value; what names the expected type: "a string".
func (r reader) read(field, what string, value any) {
	if r.null(field) || *r.err != nil {
		return
	}
	if json.Unmarshal(r.data[field], value) != nil {
		r.wrong(field, "must be "+what)
	}
}

func (r reader) wrong(field, message string) {
	if *r.err == nil {
		*r.err = fault.Field(r.path+field, "%s", message)
	}
}

func (r reader) object(field, kind string) reader {
	return r.open(r.path+field, kind, r.data[field])
}

// text returns a field that is a string or null; null is "".
func (r reader) text(field string) string {
	if r.null(field) || *r.err != nil {
		return ""
	}
	text, ok := unquote(r.data[field])
	if !ok {
		r.wrong(field, "must be a string")
	}
	return text
}

func (r reader) texts(field string) (texts []string) {
	r.read(field, "a list of strings", &texts)
	return texts
}

func (r reader) textMap(field string) (texts map[string]string) {
	r.read(field, "a map of strings", &texts)
	return texts
}

func (r reader) list(field string) (elements []json.RawMessage) {
	r.read(field, "a list", &elements)
	return elements
}

func (r reader) yes(field string) (yes bool) {
	r.read(field, "true or false", &yes)
	return yes
}

// maxAmount is the largest number that Nova and Placement store.
const maxAmount = 1<<31 - 1

// amount reads an integer that is not negative.
func (r reader) amount(field string) (amount int64) {
	r.read(field, "an integer", &amount)
	if amount < 0 || amount > maxAmount {
		r.wrong(field, "must be between 0 and 2147483647")
		return 0
	}
	return amount
}
