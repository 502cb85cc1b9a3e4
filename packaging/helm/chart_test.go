// SPDX-License-Identifier: Apache-2.0

// Package chart holds the tests of the Helm chart in the folder almanac.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const folder = "almanac"

// everything switches on what is optional.
const everything = `
keystone: {enabled: true, adminSecret: admin}
ingress: {enabled: true, className: nginx, tlsSecret: tls}
networkPolicy: {enabled: true, from: [{podSelector: {}}]}
serviceMonitor: {enabled: true}
caConfigMap: authorities
policy: {"reservations:create": "role:member"}
conf:
  keystone_authtoken: {region_name: RegionOne}
  limits: {max_hosts_per_project: 4}
  api: {max_body_bytes: 10000000, streams: ""}
`

// guided returns the values that docs/deployment.md prints.
func guided(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, helm, _ := strings.Cut(string(page), "\n## Helm\n")
	_, values, _ := strings.Cut(helm, "```yaml\n")
	values, _, found := strings.Cut(values, "```\n")
	if !found {
		t.Fatal("docs/deployment.md has no values of the chart")
	}
	return values
}

// rendered returns the manifests of the chart with values, by their file and their kind.
func rendered(t *testing.T, values string) (manifests map[string]string, failed error) {
	t.Helper()
	chart, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	release := chartutil.ReleaseOptions{Name: "almanac", Namespace: "openstack", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, &capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	manifests = map[string]string{}
	for name, text := range files {
		if strings.TrimSpace(text) != "" {
			manifests[strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))] = text
		}
	}
	return manifests, nil
}

func must(t *testing.T, values string) map[string]string {
	t.Helper()
	manifests, err := rendered(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// read decodes a manifest into a type of Kubernetes, which must have each of its fields.
func read[T any](t *testing.T, manifest string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(manifest), &object); err != nil {
		t.Errorf("%v:\n%s", err, manifest)
	}
	return object
}

func TestHelmFindsNoMistakeInTheChart(t *testing.T) {
	for name, values := range map[string]string{"the defaults": "{}", "everything": everything, "the guide": guided(t)} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		version := chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
		for _, message := range lint.AllWithKubeVersion(folder, given, "openstack", &version).Messages {
			if message.Severity > 1 { // above INFO
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

func TestKubernetesKnowsEachFieldOfTheManifests(t *testing.T) {
	for name, values := range map[string]string{"the defaults": "{}", "everything": everything, "the guide": guided(t)} {
		for file, manifest := range must(t, values) {
			switch file {
			case "configmap":
				read[core.ConfigMap](t, manifest)
			case "secret":
				read[core.Secret](t, manifest)
			case "service":
				read[core.Service](t, manifest)
			case "deployment":
				read[apps.Deployment](t, manifest)
			case "ingress":
				read[networking.Ingress](t, manifest)
			case "networkpolicy":
				read[networking.NetworkPolicy](t, manifest)
			case "poddisruptionbudget":
				read[policy.PodDisruptionBudget](t, manifest)
			case "job-schema", "job-keystone":
				read[batch.Job](t, manifest)
			case "servicemonitor", "NOTES": // of the Prometheus operator; for people
			default:
				t.Errorf("%s: the test does not know the kind of %s", name, file)
			}
		}
	}
}

func TestAllPodsRunWithoutRights(t *testing.T) {
	manifests := must(t, everything)
	for name, pod := range map[string]core.PodSpec{
		"deployment":   read[apps.Deployment](t, manifests["deployment"]).Spec.Template.Spec,
		"job-schema":   read[batch.Job](t, manifests["job-schema"]).Spec.Template.Spec,
		"job-keystone": read[batch.Job](t, manifests["job-keystone"]).Spec.Template.Spec,
	} {
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: the pod has rights: %+v", name, pod.SecurityContext)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%s: container %s has rights: %+v", name, c.Name, s)
			}
		}
	}
}

// The folders are mounted as Kubernetes mounts them: the files are links into a folder of their own.
func TestAlmanacdAcceptsTheConfiguration(t *testing.T) {
	program := filepath.Join(t.TempDir(), "almanacd")
	build := exec.Command("go", "build", "-o", program, "./cmd/almanacd")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, values := range map[string]string{"the defaults": "{}", "a limit, rules and a region": strings.Replace(everything, "caConfigMap: authorities", "", 1),
		"the guide": strings.Replace(guided(t), "existingSecret: almanac-secrets", "", 1)} {
		t.Run(name, func(t *testing.T) {
			manifests, credentials := must(t, values), t.TempDir()
			for option, value := range read[core.Secret](t, manifests["secret"]).Data {
				mount(t, credentials, option, value)
			}
			conf := t.TempDir()
			for file, text := range read[core.ConfigMap](t, manifests["configmap"]).Data {
				mount(t, conf, file, bytes.ReplaceAll([]byte(text), []byte("/etc/almanac/"), []byte(conf+"/")))
			}
			if text := manifests["configmap"]; strings.Contains(text, "e+") || strings.Contains(text, "streams") {
				t.Errorf("numbers are not written out, or an empty option is written:\n%s", text)
			}
			validate := exec.Command(program, "--config-file", filepath.Join(conf, "almanac.conf"), "config", "validate")
			validate.Env = append(os.Environ(), "CREDENTIALS_DIRECTORY="+credentials)
			if out, err := validate.CombinedOutput(); err != nil || bytes.Contains(out, []byte("warning: ")) {
				t.Errorf("%v\n%s\n%s", err, out, manifests["configmap"])
			}
		})
	}
}

// mount writes a file as the kubelet does.
func mount(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, "..data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "..data", name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"replicas: 0":                       "replicas",
		"secrets: {password: x}":            "'password' does not match",
		"repicas: 3":                        "repicas",
		"keystone: {publicUrl: almanac}":    "publicUrl",
		"keystone: {enabled: true}":         "keystone.adminSecret names the Secret",
		"conf: {api: {host: [a]}}":          "host",
		"service: {type: ExternalName}":     "type",
		"podDisruptionBudget: {enabled: 1}": "enabled",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %s", values, err, want)
		}
	}
}

func TestAnotherSecretTakesThePlaceOfTheCharts(t *testing.T) {
	manifests := must(t, "existingSecret: mine")
	if text, there := manifests["secret"]; there {
		t.Errorf("the chart has a Secret of its own:\n%s", text)
	}
	for _, volume := range read[apps.Deployment](t, manifests["deployment"]).Spec.Template.Spec.Volumes {
		if volume.Name == "secrets" && volume.Secret.SecretName != "mine" {
			t.Errorf("the pods use the Secret %s", volume.Secret.SecretName)
		}
	}
}
