// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
)

// receive reads the body of a request, up to the largest that any call reads, so that later steps have it in memory.
// Until served is called, the body is one of those that wait: if there are too many bytes of them, the request ends.
func (c *Call) receive(caller string) (served func()) {
	length := c.Request.ContentLength
	if length == 0 {
		return func() {}
	}
	most := c.server.MaxBodyBytes + 1 // one more shows that it is too long
	if length < 0 || length > most {
		length = most
	}
	body, control := c.Request.Body, http.NewResponseController(c.Writer)
	ctx, cancel := context.WithCancel(c.Request.Context())
	served = c.server.arriving.add(caller, length, func() {
		cancel()
		_ = control.SetReadDeadline(Past)
	})
	raw, err := io.ReadAll(io.LimitReader(body, most))
	c.Request = c.Request.WithContext(ctx)
	c.Request.Body = received{bytes.NewReader(raw), err, body}
	return served
}

// received is a body that has been read, or as much of it as came before the error.
type received struct {
	text *bytes.Reader
	err  error
	io.Closer
}

// Read implements io.Reader.
func (r received) Read(to []byte) (int, error) {
	n, err := r.text.Read(to)
	if err == io.EOF && r.err != nil {
		err = r.err
	}
	return n, err
}

// wholeAnswer keeps an answer in memory.
type wholeAnswer struct {
	gin.ResponseWriter
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *wholeAnswer) Write(text []byte) (int, error) { return w.text.Write(text) }

// WriteString implements io.StringWriter.
func (w *wholeAnswer) WriteString(text string) (int, error) { return w.text.WriteString(text) }

// WriteHeaderNow implements gin.ResponseWriter: the header is sent with the answer.
func (w *wholeAnswer) WriteHeaderNow() {}

// Written implements gin.ResponseWriter.
func (w *wholeAnswer) Written() bool { return w.text.Len() > 0 }

// Size implements gin.ResponseWriter.
func (w *wholeAnswer) Size() int { return w.text.Len() }

// deliver sends an answer.
func (c *Call) deliver(caller string, text []byte) {
	if len(text) == 0 {
		return // gin sends the status
	}
	control := http.NewResponseController(c.Writer)
	defer c.server.unsent.add(caller, int64(len(text)), func() { _ = control.SetWriteDeadline(Past) })()
	if _, err := c.Writer.Write(text); err != nil {
		c.server.Log.InfoContext(c.Request.Context(), "an answer was not sent: its client does not read it or has gone", "error", err)
	}
}
