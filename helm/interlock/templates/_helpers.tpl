{{- define "interlock.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "interlock.labels" -}}
app.kubernetes.io/name: interlock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "interlock.selector" -}}
app.kubernetes.io/name: interlock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "interlock.image" -}}
{{- $image := .Values.image -}}
{{- $name := $image.repository -}}
{{- if $image.registry }}{{ $name = printf "%s/%s" $image.registry $image.repository }}{{ end -}}
{{- if $image.digest }}{{ printf "%s@%s" $name $image.digest }}{{ else }}{{ printf "%s:%s" $name (default .Chart.AppVersion $image.tag) }}{{ end -}}
{{- end }}

{{- define "interlock.keys" -}}
{{- default (printf "%s-keys" (include "interlock.name" .)) .Values.keys.existingSecret -}}
{{- end }}

{{/* Who has a certificate of the mesh, as JSON. */}}
{{- define "interlock.members" -}}
{{- $members := list "session" "policy" "dpe" "audit" "sidecar" "operator" -}}
{{- if .Values.oversight.enabled }}{{ $members = append $members "oversight" }}{{ end -}}
{{- if .Values.decision.enabled }}{{ $members = append $members "decision" }}{{ end -}}
{{- toJson $members -}}
{{- end }}

{{/* Secret with the certificate of a member of the mesh. */}}
{{- define "interlock.certificate" -}}
{{- if eq .root.Values.certificates.mode "secret" -}}
{{- printf "%s-%s" (required "certificates.secretPrefix is needed with certificates.mode secret" .root.Values.certificates.secretPrefix) .component -}}
{{- else -}}
{{- printf "%s-%s-tls" (include "interlock.name" .root) .component -}}
{{- end -}}
{{- end }}

{{- define "interlock.sessionSecret" -}}
{{- default (printf "%s-session-store" (include "interlock.name" .)) .Values.sessionStore.existingSecret -}}
{{- end }}

{{- define "interlock.auditSecret" -}}
{{- default (printf "%s-audit-store" (include "interlock.name" .)) .Values.auditStore.existingSecret -}}
{{- end }}

{{- define "interlock.triton" -}}
{{- if .Values.triton.enabled -}}
{{- printf "%s-triton:8001" (include "interlock.name" .) -}}
{{- else -}}
{{- .Values.triton.url -}}
{{- end -}}
{{- end }}

{{- define "interlock.tls" -}}
{{- ne .Values.certificates.mode "mesh" | ternary "true" "" -}}
{{- end }}

{{/* Where the services are, as every member of the mesh is told. */}}
{{- define "interlock.addresses" -}}
{{- $name := include "interlock.name" . -}}
{{- $domain := printf "%s.svc" .Release.Namespace -}}
INTERLOCK_SESSION_ADDRESS: {{ printf "%s-session.%s:7081" $name $domain }}
INTERLOCK_POLICY_ADDRESS: {{ printf "%s-policy.%s:7082" $name $domain }}
INTERLOCK_DPE_ADDRESS: {{ printf "%s-dpe.%s:7083" $name $domain }}
INTERLOCK_AUDIT_ADDRESS: {{ printf "%s-audit.%s:7084" $name $domain }}
{{- if .Values.decision.enabled }}
INTERLOCK_DECISION_ADDRESS: {{ printf "%s-decision.%s:7086" $name $domain }}
{{- end }}
{{- end }}

{{/* A setting as a variable's value: whole numbers as such, since Helm reads every number as a float. */}}
{{- define "interlock.value" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . | toString }}{{ else }}{{ toString . }}{{ end -}}
{{- end }}

{{/* Audience of the tokens by which sidecars tell which pod they are: that of this release alone. */}}
{{- define "interlock.audience" -}}
{{- printf "%s.%s.interlock" (include "interlock.name" .) .Release.Namespace -}}
{{- end }}

{{/* Whether pods are identified. */}}
{{- define "interlock.identifies" -}}
{{- and .Values.injector.enabled .Values.sidecar.podIdentity | ternary "true" "" -}}
{{- end }}

{{/* The service account of a pod that asks the API server: its token, renewed by the kubelet, and the cluster's authority. */}}
{{- define "interlock.account" -}}
- name: account
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {expirationSeconds: 3600, path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}

{{- define "interlock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "interlock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}
