{{- define "reprise.labels" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "reprise.selector" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reprise.fullname" -}}
{{ if contains "reprise" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-reprise" (.Release.Name | trunc 32 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "reprise.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What all containers have in common: nothing of root, nothing to write but /tmp. */}}
{{- define "reprise.container" -}}
image: {{ include "reprise.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
ports:
  - {name: metrics, containerPort: 9090}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 2
# Only that the process answers: a NATS or Redis that is away is no reason to restart it.
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 4
  failureThreshold: 6
# Time for the endpoints to forget the pod; the drain begins with the signal after it. The image has no
# shell to sleep with.
lifecycle:
  preStop:
    sleep: {seconds: 3}
{{- end }}

{{- define "reprise.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* NATS for one role: dict "root" $ "role" name */}}
{{- define "reprise.natsEnv" -}}
{{- if .root.Values.nats.urlSecret }}
- {name: REPRISE_NATS_URL_FILE, value: /run/secrets/nats/url}
{{- else }}
- {name: REPRISE_NATS_URL, value: {{ .root.Values.nats.url | quote }}}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: REPRISE_NATS_CA_FILE, value: /run/secrets/nats-ca/ca.pem}
{{- end }}
{{- if .root.Values.nats.inboxPerRole }}
- {name: REPRISE_NATS_INBOX_PREFIX, value: {{ printf "_INBOX.%s" .role | quote }}}
{{- end }}
- {name: REPRISE_METRICS_ADDR, value: "0.0.0.0:9090"}
{{- end }}

{{- define "reprise.natsMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.nats.urlSecret }}
- {name: nats-url, mountPath: /run/secrets/nats, readOnly: true}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: nats-ca, mountPath: /run/secrets/nats-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "reprise.natsVolumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 128Mi}}
{{- if .root.Values.nats.urlSecret }}
- name: nats-url
  secret: {secretName: {{ .root.Values.nats.urlSecret }}, items: [{key: {{ .role }}, path: url}]}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- name: nats-ca
  secret: {secretName: {{ .root.Values.nats.caSecret }}}
{{- end }}
{{- end }}

{{- define "reprise.env" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}
