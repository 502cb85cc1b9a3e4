{{- define "almanac.name" -}}
{{- if contains "almanac" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-almanac" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "almanac.selector" -}}
app.kubernetes.io/name: almanac
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "almanac.labels" -}}
{{ include "almanac.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "almanac.secret" -}}
{{ .Values.existingSecret | default (include "almanac.name" .) }}
{{- end }}

{{/* almanac.conf: an option with an empty value is not written. */}}
{{- define "almanac.conf" -}}
{{- range $section, $options := .Values.conf }}
[{{ $section }}]
{{- range $option, $value := $options }}
{{- if ne (toString $value) "" }}
{{ $option }} = {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end }}
{{ end }}
{{- if .Values.policy }}
[oslo_policy]
policy_file = /etc/almanac/policy.yaml
{{ end }}
{{- end }}

{{/* What all pods have: nothing but almanacd, without any right. */}}
{{- define "almanac.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
volumes:
  - name: conf
    configMap:
      name: {{ include "almanac.name" . }}
  - name: secrets
    secret:
      secretName: {{ include "almanac.secret" . }}
      defaultMode: 0440
  - name: data
    emptyDir: {}
  {{- if .Values.caConfigMap }}
  - name: ca
    configMap:
      name: {{ .Values.caConfigMap }}
  {{- end }}
{{- end }}

{{- define "almanac.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: conf
    mountPath: /etc/almanac
    readOnly: true
  - name: secrets
    mountPath: /run/credentials/almanac
    readOnly: true
  - name: data
    mountPath: /var/lib/almanac
  {{- if .Values.caConfigMap }}
  - name: ca
    mountPath: /etc/almanac-ca
    readOnly: true
  {{- end }}
{{- end }}

{{/* A Job that runs one command of almanacd to its end: list of the chart's context, a name and the arguments. */}}
{{- define "almanac.job" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
apiVersion: batch/v1
kind: Job
metadata:
  # A Job cannot change, so each revision has its own.
  name: {{ include "almanac.name" $root }}-{{ $name }}-{{ $root.Release.Revision }}
  labels:
    {{- include "almanac.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
spec:
  backoffLimit: 20
  template:
    metadata:
      labels:
        app.kubernetes.io/instance: {{ $root.Release.Name }}
        app.kubernetes.io/component: {{ $name }}
    spec:
      restartPolicy: OnFailure
      {{- include "almanac.pod" $root | nindent 6 }}
      containers:
        - name: {{ $name }}
          args:
            {{- range index . 2 }}
            - {{ . | quote }}
            {{- end }}
          env:
            - name: CREDENTIALS_DIRECTORY
              value: /run/credentials/almanac
          {{- if eq $name "keystone" }}
          envFrom:
            - secretRef:
                name: {{ required "keystone.adminSecret names the Secret with the admin's OS_* variables" $root.Values.keystone.adminSecret }}
          {{- end }}
          {{- include "almanac.container" $root | nindent 10 }}
      {{- with $root.Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
