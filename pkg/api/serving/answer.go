// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
)

// JSON returns the step of a call that sends the answer as JSON, or the error. A call sets a
// status other than 200 itself; one that answers nil has no content.
func JSON(call func(c *Call) (answer any, err error)) Step {
	return func(c *Call) {
		answer, err := call(c)
		compute, is := answer.(Later)
		if !is || err != nil {
			c.answer(answer, err)
			return
		}
		err = c.InTurn(func() {
			answer, err := compute()
			c.answer(answer, err)
		})
		if err != nil {
			c.Fail(err)
		}
	}
}

// Later computes an answer that a call has read the data for. It runs in the project's turn, and so does the writing of
// its JSON, so that large answers leave a processor for others. It must not read what may be slow, nor decide, since
// decisions wait for the turn themselves.
type Later func() (answer any, err error)

// Computed returns the step of a call that has its data in memory, and is as a whole what Later is.
func Computed(call func(c *Call) (answer any, err error)) Step {
	return JSON(func(c *Call) (any, error) {
		return Later(func() (any, error) { return call(c) }), nil
	})
}

func (c *Call) answer(answer any, err error) {
	switch {
	case err != nil:
		c.Fail(err)
	case answer == nil:
		c.Status(http.StatusNoContent)
	default:
		if version := c.GetString(versionKey); version != "" {
			sendTagged(c, version, answer)
			return
		}
		c.Send(c.Writer.Status(), answer)
	}
}
