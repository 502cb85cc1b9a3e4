// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// The largest number of bytes of bodies that arrive or wait for their turn, and of answers that are being sent, those of
// one caller and those of all.
const (
	mostArriving, mostArrivingOfAll = 16 << 20, 256 << 20
	mostUnsent, mostUnsentOfAll     = int64(wholeList), 8 * int64(wholeList)
	// leastCarried is how many bytes a connection takes beside the body or the answer.
	leastCarried = 16 << 10
)

// past is a deadline that is over.
var past = time.Unix(1, 0)

// carried are the bodies or the answers that wait for a client. If there are too many bytes, those that have waited
// longest are given up, those of addresses first.
type carried struct {
	most, mostOfAll int64

	mu      sync.Mutex
	all     int64
	callers map[string]*carriedOf
}

// carriedOf are those of one caller, the oldest first.
type carriedOf struct {
	bytes int64
	list  []*carriage
}

type carriage struct {
	bytes  int64
	giveUp func()
}

func newCarried(most, mostOfAll int64) *carried {
	return &carried{most: most, mostOfAll: mostOfAll, callers: make(map[string]*carriedOf)}
}

// add adds so many bytes that wait for a caller's client; giveUp, which must not block, ends the wait. The caller of
// add calls done when it is over. Those of an empty caller are not counted.
func (l *carried) add(caller string, bytes int64, giveUp func()) (done func()) {
	if caller == "" {
		return func() {}
	}
	one := &carriage{bytes + leastCarried, giveUp}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.callers[caller]
	if of == nil {
		of = &carriedOf{}
		l.callers[caller] = of
	}
	of.list = append(of.list, one)
	of.bytes, l.all = of.bytes+one.bytes, l.all+one.bytes
	for of.bytes > l.most && len(of.list) > 1 {
		l.giveUpOldest(caller)
	}
	for l.all > l.mostOfAll {
		l.giveUpOldest(l.largest())
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(caller, one)
	}
}

// largest returns the caller with the most bytes, of several the last by name. An address comes before those with a
// token, since anybody may send from many. mu is held.
func (l *carried) largest() (caller string) {
	token := func(name string) int {
		if isAddress(name) {
			return 0
		}
		return 1
	}
	for name, of := range l.callers {
		if caller == "" || cmp.Or(cmp.Compare(token(caller), token(name)), cmp.Compare(of.bytes, l.callers[caller].bytes), cmp.Compare(name, caller)) > 0 {
			caller = name
		}
	}
	return caller
}

// giveUpOldest abandons what a caller's client has let wait longest; mu is held, so that it is not over yet.
func (l *carried) giveUpOldest(caller string) {
	oldest := l.callers[caller].list[0]
	oldest.giveUp()
	l.remove(caller, oldest)
}

// remove removes one, if it is still there; mu is held.
func (l *carried) remove(caller string, one *carriage) {
	of := l.callers[caller]
	if of == nil {
		return
	}
	for i := range of.list {
		if of.list[i] == one {
			of.list = append(of.list[:i], of.list[i+1:]...)
			of.bytes, l.all = of.bytes-one.bytes, l.all-one.bytes
			break
		}
	}
	if len(of.list) == 0 {
		delete(l.callers, caller)
	}
}

// receive reads the body of a request, up to the largest that any call reads, so that later steps have it in memory.
// Until served is called, the body is one of those that wait: if there are too many bytes of them, the request ends.
func (s *server) receive(c *gin.Context, caller string) (served func()) {
	length := c.Request.ContentLength
	if length == 0 {
		return func() {}
	}
	most := s.MaxBodyBytes + 1 // one more shows that it is too long
	if length < 0 || length > most {
		length = most
	}
	body, control := c.Request.Body, http.NewResponseController(c.Writer)
	ctx, cancel := context.WithCancel(c.Request.Context())
	served = s.arriving.add(caller, length, func() {
		cancel()
		_ = control.SetReadDeadline(past)
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
func (s *server) deliver(c *gin.Context, caller string, text []byte) {
	if len(text) == 0 {
		return // gin sends the status
	}
	control := http.NewResponseController(c.Writer)
	defer s.unsent.add(caller, int64(len(text)), func() { _ = control.SetWriteDeadline(past) })()
	if _, err := c.Writer.Write(text); err != nil {
		s.Log.InfoContext(c.Request.Context(), "an answer was not sent: its client does not read it or has gone", "error", err)
	}
}
