// SPDX-License-Identifier: Apache-2.0

// Package oslotest tests that every transport of pkg/oslo behaves alike.
package oslotest

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Transport is a transport under test.
type Transport interface {
	oslo.Transport
	Close() error
}

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

// Run runs the suite on the transports that open returns: each to a broker, or a part of one,
// without other users. The suite closes them.
func Run(t *testing.T, open func(t *testing.T) Transport) {
	tests := map[string]func(t *testing.T, c *cloud){
		"ACallIsAnsweredWithItsContext":               testCall,
		"ACallAndACastAreInTheTraceOfTheirCaller":     testTrace,
		"ManyCallsAtOnceGetTheirOwnAnswers":           testConcurrentCalls,
		"AnErrorComesBackWithClassModuleAndKind":      testRemoteErrors,
		"ACallNobodyServesEndsAtItsTimeout":           testTimeout,
		"ACallWhoseTimeIsOverIsUnavailable":           testOver,
		"ACallEndsWithItsContext":                     testCancel,
		"ASlowCallKeepsItsMonitorAlive":               testMonitor,
		"ACastIsServedOnce":                           testCast,
		"AFanoutReachesEveryServer":                   testFanout,
		"ServersOfATopicShareItsRequests":             testSharedTopic,
		"ACallToOneServerIsServedByIt":                testDirectedCall,
		"UnknownMethodsAndVersionsAreRefused":         testDispatch,
		"ARequestThatComesTwiceIsServedOnce":          testDuplicate,
		"AServerServesAsManyAtOnceAsItHasWorkers":     testBound,
		"AServerFinishesWhatItBegan":                  testDrain,
		"ANotificationWaitsForItsListener":            testNotification,
		"ANotificationThatFailsComesAgain":            testRequeue,
		"PoolsOfListenersEachGetEveryNotification":    testPools,
		"AListenersOwnQueueTakesNothingFromOthers":    testOwnQueue,
		"AMandatoryMessageWithoutAQueueIsAnError":     testUnroutable,
		"AQueueWithOtherArgumentsIsAConflict":         testConflict,
		"ClosingAClientEndsItsCalls":                  testCloseClient,
		"ClosingTheTransportEndsCallsAndServers":      testCloseTransport,
		"NothingIsReadableToAServerAndItStillServes":  testGarbage,
		"AHandlerThatPanicsAnswersAndTheServerStays":  testPanic,
		"RequestsWaitInTheQueueUntilAServerReadsThem": testWaiting,
		"InspectTellsWhoReadsAQueueAndWhatWaitsInIt":  testInspect,
		"ARequestWhoseCallerIsGoneIsNotServed":        testGoneCaller,
		"ARequestIsServedOnceItsCallerIsBack":         testReturningCaller,
		"WorkEndsOnceItsCallersQueueIsGone":           testLostCaller,
		"WhatTheCallerDoesNotLearnIsUndone":           testUndo,
		"WhatTheCallerLearnsLateIsNotUndone":          testLateAnswer,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := goroutines()
			c := &cloud{T: t, open: func() Transport { return open(t) }}
			c.transport = c.open()
			t.Cleanup(func() { noneLeft(t, before) })
			t.Cleanup(func() {
				if err := c.transport.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test(t, c)
		})
	}
}

// goroutines counts the goroutines that run code of pkg/oslo or of the AMQP library.
func goroutines() int {
	buffer := make([]byte, 1<<20)
	count := 0
	for stack := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "pkg/oslo") || strings.Contains(stack, "amqp091") {
			count++
		}
	}
	return count
}

func noneLeft(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(patience); goroutines() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buffer := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", buffer[:runtime.Stack(buffer, true)])
		}
	}
}

// cloud is one test's broker with its servers and clients.
type cloud struct {
	*testing.T
	open      func() Transport
	transport Transport
}

// NewID returns a random UUID.
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

var target = oslo.Target{Exchange: "almanac", Topic: "almanac.test", Version: "1.2"}

// serve runs a server until the test ends, and returns once it consumes its queues.
func (c *cloud) serve(name string, workers int, methods map[string]oslo.Handler) *oslo.Server {
	c.Helper()
	server := oslo.NewServer(c.transport, oslo.ServerOptions{
		Exchange:  target.Exchange,
		Topic:     target.Topic,
		Name:      name,
		Endpoints: []oslo.Endpoint{{Version: "1.4", Methods: methods}},
		Workers:   workers,
		Grace:     100 * time.Millisecond,
		NewID:     NewID,
	})
	c.background(server.Serve)
	c.wait(server.Ready(), "the server is ready")
	return server
}

// background runs serve until the test ends.
func (c *cloud) background(serve func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	result := make(chan error, 1)
	go func() { result <- serve(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-result:
			return err
		case <-time.After(patience):
			return fmt.Errorf("it does not stop")
		}
	}
	c.Cleanup(func() {
		if err := stop(); err != nil && !strings.Contains(err.Error(), "being closed") {
			c.Errorf("serve: %v", err)
		}
	})
	return stop
}

func (c *cloud) client(o oslo.ClientOptions) *oslo.Client {
	o.NewID, o.Now = NewID, time.Now
	client := oslo.NewClient(c.transport, o)
	c.Cleanup(client.Close)
	return client
}

// soon returns a ctx that ends when the test's patience is over.
func (c *cloud) soon() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	c.Cleanup(cancel)
	return ctx
}

func (c *cloud) wait(event <-chan struct{}, what string) {
	c.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		c.Fatalf("waited in vain: %s", what)
	}
}

func receive[T any](c *cloud, from <-chan T, what string) T {
	c.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		c.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}
