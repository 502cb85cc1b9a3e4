// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// RedfishTrouble is how a Redfish misbehaves. The zero RedfishTrouble behaves correctly.
type RedfishTrouble struct {
	Delay    time.Duration // before each answer
	Status   int           // of every answer, with an error in the body; 0: the correct one
	Garbage  bool          // answers are no JSON
	Empty    bool          // answers are empty objects
	Closes   bool          // connections are closed instead of an answer
	Opposite bool          // the reported power is the opposite of the truth
	Flaps    bool          // the reported power is true every other time
	Deaf     bool          // resets are accepted, and nothing happens
	Stuck    bool          // a reset leaves it powering on or off forever
	Stubborn bool          // its operating system ignores GracefulShutdown
	Refuses  bool          // resets are answered with 409
	Fails    bool          // resets become tasks that end in Exception
}

// RedfishOptions describe a Redfish.
type RedfishOptions struct {
	// Resets are the AllowableValues; nil are On, ForceOff and GracefulShutdown.
	Resets []string
	// ActionInfo lists Resets in a resource of their own.
	ActionInfo bool
	Tasks      bool // resets are answered 202, with a task
	NoWatts    bool
	OldWatts   bool // in Power, as before 2020.4, not in EnvironmentMetrics
	Systems    int  // 0 is one
	// Changed is called at each real change of the power.
	Changed func(on bool)
}

// Redfish is a BMC of the test's own that speaks Redfish over TLS. It misbehaves on demand, and
// accepts basic authentication and sessions.
type Redfish struct {
	URL     string
	options RedfishOptions
	files   string

	mu       sync.Mutex
	trouble  RedfishTrouble
	on       bool
	stuck    string
	asked    int
	resets   []string
	sessions map[string]bool
	opened   int
}

// StartRedfish starts a Redfish whose machine is on and takes 210 W, or 9 W while it is off. The
// end of the test stops it.
func StartRedfish(t testing.TB, o RedfishOptions) *Redfish {
	t.Helper()
	if o.Resets == nil {
		o.Resets = []string{"On", "ForceOff", "GracefulShutdown"}
	}
	r := &Redfish{options: o, on: true, files: t.TempDir(), sessions: map[string]bool{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(r.answer))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it end the handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	r.URL = server.URL
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string][]byte{"ca.pem": certificate, "password": []byte(BMCPassword + "\n")} {
		if err := os.WriteFile(filepath.Join(r.files, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// CAFile returns the path of a file with the authority of its certificate.
func (r *Redfish) CAFile() string { return filepath.Join(r.files, "ca.pem") }

// PasswordFile returns the path of a file with the password of BMCUser.
func (r *Redfish) PasswordFile() string { return filepath.Join(r.files, "password") }

// Trouble sets how it misbehaves from now on.
func (r *Redfish) Trouble(t RedfishTrouble) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble, r.stuck = t, ""
}

// On reports the true state of the power.
func (r *Redfish) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}

// Press changes the power without an order.
func (r *Redfish) Press(on bool) {
	r.mu.Lock()
	changed := r.on != on
	r.on = on
	r.mu.Unlock()
	if changed && r.options.Changed != nil {
		r.options.Changed(on)
	}
}

// Resets returns the ResetTypes that were requested.
func (r *Redfish) Resets() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.resets)
}

// EndSessions ends all sessions, and returns how many were opened since the start and how many
// were open.
func (r *Redfish) EndSessions() (opened, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	opened, open = r.opened, len(r.sessions)
	clear(r.sessions)
	return opened, open
}

const redfishRoot = "/redfish/v1"

func (r *Redfish) answer(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	t := r.trouble
	r.mu.Unlock()
	select {
	case <-time.After(t.Delay):
	case <-q.Context().Done():
		return
	}
	path := strings.TrimSuffix(q.URL.Path, "/")
	switch {
	case t.Closes:
		panic(http.ErrAbortHandler)
	case t.Status != 0:
		refuse(w, t.Status, "the BMC is in trouble")
	case t.Garbage:
		fmt.Fprint(w, "<html>{\"PowerState\": \"Off\"")
	case t.Empty:
		fmt.Fprint(w, "{}")
	case path == redfishRoot:
		write(w, http.StatusOK, map[string]any{
			"@odata.id": redfishRoot, "RedfishVersion": "1.18.0", "Systems": link("/Systems"),
			"Links": map[string]any{"Sessions": link("/SessionService/Sessions")},
		})
	case path == redfishRoot+"/SessionService/Sessions" && q.Method == http.MethodPost:
		r.login(w, q)
	case !r.knows(q):
		refuse(w, http.StatusUnauthorized, "who are you")
	case strings.HasPrefix(path, redfishRoot+"/SessionService/Sessions/") && q.Method == http.MethodDelete:
		r.mu.Lock()
		delete(r.sessions, filepath.Base(path))
		r.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/Actions/ComputerSystem.Reset") && q.Method == http.MethodPost:
		r.reset(w, q, t)
	default:
		r.show(w, strings.TrimPrefix(path, redfishRoot), t)
	}
}

func link(path string) map[string]string { return map[string]string{"@odata.id": redfishRoot + path} }

func write(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content) // the client may be gone
}

func refuse(w http.ResponseWriter, status int, message string) {
	write(w, status, map[string]any{"error": map[string]string{"code": "Base.1.8.GeneralError", "message": message}})
}

func (r *Redfish) login(w http.ResponseWriter, q *http.Request) {
	var given struct{ UserName, Password string }
	if err := json.NewDecoder(io.LimitReader(q.Body, 1<<16)).Decode(&given); err != nil || given.UserName != BMCUser || given.Password != BMCPassword {
		refuse(w, http.StatusUnauthorized, "wrong user or password")
		return
	}
	token := unique("token-")
	r.mu.Lock()
	r.sessions[token] = true
	r.opened++
	r.mu.Unlock()
	at := redfishRoot + "/SessionService/Sessions/" + token
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", at)
	write(w, http.StatusCreated, map[string]string{"@odata.id": at, "Id": token, "UserName": BMCUser})
}

func (r *Redfish) knows(q *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	user, password, _ := q.BasicAuth()
	return user == BMCUser && password == BMCPassword || r.sessions[q.Header.Get("X-Auth-Token")]
}

// says returns the power state that the BMC reports.
func (r *Redfish) says(t RedfishTrouble) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck != "" {
		return r.stuck
	}
	r.asked++
	if r.on != (t.Opposite || t.Flaps && r.asked%2 == 0) {
		return "On"
	}
	return "Off"
}

func (r *Redfish) show(w http.ResponseWriter, path string, t RedfishTrouble) {
	reset := map[string]any{"target": redfishRoot + "/Systems/1/Actions/ComputerSystem.Reset"}
	if r.options.ActionInfo {
		reset["@Redfish.ActionInfo"] = redfishRoot + "/Systems/1/ResetActionInfo"
	} else {
		reset["ResetType@Redfish.AllowableValues"] = r.options.Resets
	}
	watts := 9.0
	if r.On() {
		watts = 210
	}
	chassis := map[string]any{"@odata.id": redfishRoot + "/Chassis/1", "Id": "1"}
	switch {
	case r.options.OldWatts:
		chassis["Power"] = link("/Chassis/1/Power")
	case !r.options.NoWatts:
		chassis["EnvironmentMetrics"] = link("/Chassis/1/EnvironmentMetrics")
	}
	var members []string
	var links []map[string]string
	for i := range max(1, r.options.Systems) {
		members = append(members, fmt.Sprintf("/Systems/%d", i+1))
		links = append(links, link(members[i]))
	}
	known := map[string]any{
		"/Systems": map[string]any{"Members@odata.count": len(links), "Members": links},
		"/Systems/1/ResetActionInfo": map[string]any{"Parameters": []map[string]any{
			{"Name": "ResetType", "DataType": "String", "AllowableValues": r.options.Resets},
		}},
		"/Chassis/1":                    chassis,
		"/Chassis/1/EnvironmentMetrics": map[string]any{"PowerWatts": map[string]float64{"Reading": watts}},
		"/Chassis/1/Power":              map[string]any{"PowerControl": []map[string]any{{"MemberId": "0", "PowerConsumedWatts": watts}}},
	}
	if slices.Contains(members, path) {
		known[path] = map[string]any{
			"@odata.id": redfishRoot + path, "Id": filepath.Base(path), "PowerState": r.says(t),
			"Actions": map[string]any{"#ComputerSystem.Reset": reset}, "Links": map[string]any{"Chassis": []map[string]string{link("/Chassis/1")}},
		}
	}
	if task, ok := strings.CutPrefix(path, "/Tasks/"); ok {
		known[path] = map[string]any{
			"@odata.id": redfishRoot + path, "Id": task, "TaskState": task, "Messages": []map[string]string{{"Message": "the task is over"}},
		}
	}
	content, ok := known[path]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no "+path)
		return
	}
	write(w, http.StatusOK, content)
}

func (r *Redfish) reset(w http.ResponseWriter, q *http.Request, t RedfishTrouble) {
	var given struct{ ResetType string }
	if err := json.NewDecoder(io.LimitReader(q.Body, 1<<16)).Decode(&given); err != nil || !slices.Contains(r.options.Resets, given.ResetType) {
		refuse(w, http.StatusBadRequest, "not among the allowable values: "+given.ResetType)
		return
	}
	r.mu.Lock()
	r.resets = append(r.resets, given.ResetType)
	r.mu.Unlock()
	on := given.ResetType == "On" || given.ResetType == "ForceOn"
	switch {
	case t.Refuses:
		refuse(w, http.StatusConflict, "not now")
		return
	case t.Fails:
		r.task(w, "Exception")
		return
	case t.Deaf || t.Stubborn && given.ResetType == "GracefulShutdown":
	case t.Stuck:
		r.mu.Lock()
		r.stuck = map[bool]string{true: "PoweringOn", false: "PoweringOff"}[on]
		r.mu.Unlock()
	default:
		r.Press(on)
	}
	if r.options.Tasks {
		r.task(w, "Completed")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// task answers that there is a task, which ends in the state ends.
func (r *Redfish) task(w http.ResponseWriter, ends string) {
	w.Header().Set("Location", redfishRoot+"/Tasks/"+ends)
	write(w, http.StatusAccepted, map[string]string{"@odata.id": redfishRoot + "/Tasks/" + ends, "Id": ends, "TaskState": "Running"})
}
