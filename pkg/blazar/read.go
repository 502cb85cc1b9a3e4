// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// missing returns the error for keys that a request lacks.
func missing(keys ...string) error {
	return fault.New(fault.Invalid, "Missing parameter %s", strings.Join(keys, ", "))
}

// malformed returns the error for a value that cannot be read.
func malformed(what string) error { return fault.New(fault.Invalid, "Malformed parameter %s", what) }

// nothing reports whether a value means that there is none: clients write null, "" or "None".
func nothing(value any) bool {
	text, is := value.(string)
	return value == nil || is && (text == "" || strings.EqualFold(text, "none"))
}

// has reports whether a key has a value.
func (o Object) has(key string) bool { return !nothing(o[key]) }

// text returns the text of a key; ok is false if there is none.
func (o Object) text(key string) (text string, ok bool, err error) {
	if o[key] == nil {
		return "", false, nil
	}
	text, ok = o[key].(string)
	if !ok {
		return "", false, malformed(key)
	}
	return text, true, nil
}

// largest is the largest number in a request.
const largest = 1<<31 - 1

// number returns a whole number, which may be written as text; ok is false if there is none.
func (o Object) number(key string) (n int, ok bool, err error) {
	value := o[key]
	if nothing(value) {
		return 0, false, nil
	}
	text := ""
	switch value := value.(type) {
	case json.Number:
		text = resource.Whole(value.String())
	case string:
		text = value
	default:
		return 0, false, malformed(key)
	}
	wide, err := strconv.ParseInt(text, 10, 64)
	if err != nil || wide > largest || wide < -largest {
		return 0, false, malformed(key)
	}
	return int(wide), true, nil
}

// numberOr returns a whole number, or otherwise if there is none.
func (o Object) numberOr(key string, otherwise int) (int, error) {
	n, ok, err := o.number(key)
	if !ok {
		n = otherwise
	}
	return n, err
}

// truths are the texts of truth values that Blazar knows (oslo_utils.strutils).
var truths = map[string]bool{
	"1": true, "t": true, "true": true, "on": true, "y": true, "yes": true,
	"0": false, "f": false, "false": false, "off": false, "n": false, "no": false,
}

// truth returns a truth value; ok is false if there is none.
func (o Object) truth(key string) (yes, ok bool, err error) {
	value := o[key]
	if nothing(value) {
		return false, false, nil
	}
	if yes, ok = value.(bool); ok {
		return yes, true, nil
	}
	switch value.(type) {
	case json.Number, string:
		if yes, ok = truths[strings.ToLower(fmt.Sprint(value))]; ok {
			return yes, true, nil
		}
	}
	return false, false, malformed(key + " (must be a bool value or None)")
}

// Asked reports whether the value of a parameter means yes.
func Asked(parameter string) bool { return truths[strings.ToLower(parameter)] }

// objects returns a list of objects; none if there is no list.
func (o Object) objects(key string) ([]Object, error) {
	if o[key] == nil {
		return nil, nil
	}
	list, ok := o[key].([]any)
	if !ok {
		return nil, malformed(key)
	}
	all := make([]Object, len(list))
	for i, entry := range list {
		if all[i], ok = entry.(map[string]any); !ok {
			return nil, malformed(key)
		}
	}
	return all, nil
}

// shorten returns text, cut to a length that fits into a message.
func shorten(text string) string {
	const most = 100
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
