{{/* One service of the mesh: Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler.
root, component, port; env, secrets (name → [Secret, key]), mounts, volumes, init: what it has beyond the others. */}}
{{- define "interlock.component" -}}
{{- $name := printf "%s-%s" (include "interlock.name" .root) .component -}}
{{- $values := index .root.Values .component -}}
{{- $tls := and (include "interlock.tls" .root) (not .plain) -}}
{{- $most := ternary $values.autoscaling.min $values.replicas $values.autoscaling.enabled | int -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "interlock.labels" . | nindent 4 }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "interlock.selector" . | nindent 6 }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {{- include "interlock.labels" . | nindent 8 }}
      annotations:
        interlock.dev/inject: "false"
        checksum/settings: {{ include (print .root.Template.BasePath "/settings.yaml") .root | sha256sum }}
    spec:
      {{- with .account }}
      serviceAccountName: {{ . }}
      # Its older name too: an upgrade or a rollback that takes one away alone gets it back from the other.
      serviceAccount: {{ . }}
      {{- end }}
      automountServiceAccountToken: false
      # A Service called interlock-* would be taken for a setting.
      enableServiceLinks: false
      securityContext: {{- include "interlock.podSecurity" . | nindent 8 }}
      terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets: {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "interlock.selector" $ | nindent 14 }}
        {{- end }}
      {{- with .init }}
      initContainers: {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "interlock.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [serve, {{ .component }}]
          securityContext: {{- include "interlock.containerSecurity" . | nindent 12 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          ports:
            - {name: grpc, containerPort: {{ .port }}}
            - {name: {{ ternary "https" "metrics" (eq .component "oversight") }}, containerPort: {{ ternary 7075 9464 (eq .component "oversight") }}}
          envFrom:
            - configMapRef: {name: {{ include "interlock.name" .root }}-settings}
          env:
            {{- if $tls }}
            - {name: INTERLOCK_TLS_CERT_FILE, value: /etc/interlock/tls/tls.crt}
            - {name: INTERLOCK_TLS_KEY_FILE, value: /etc/interlock/tls/tls.key}
            - {name: INTERLOCK_TLS_CA_FILE, value: /etc/interlock/tls/ca.crt}
            {{- else }}
            - {name: INTERLOCK_ALLOW_PLAINTEXT, value: "true"}
            {{- end }}
            {{- range $key, $value := .env }}
            - {name: {{ $key }}, value: {{ $value | quote }}}
            {{- end }}
            {{- range $key, $secret := .secrets }}
            - name: {{ $key }}
              valueFrom:
                secretKeyRef: {name: {{ first $secret }}, key: {{ last $secret }}}
            {{- end }}
          {{- $ask := dict "httpGet" (dict "path" "/healthz" "port" (ternary "https" "metrics" (eq .component "oversight"))) }}
          {{- $ready := dict "httpGet" (dict "path" "/readyz" "port" (ternary "https" "metrics" (eq .component "oversight"))) }}
          {{- if eq .component "oversight" }}
          {{- $scheme := ternary "HTTPS" "HTTP" (not (not $tls)) }}
          {{- $ask = dict "httpGet" (merge (dict "scheme" $scheme) $ask.httpGet) }}
          {{- $ready = dict "httpGet" (merge (dict "scheme" $scheme) $ready.httpGet) }}
          {{- end }}
          {{- if not $tls }}
          {{- /* The kubelet's gRPC probe speaks no TLS, so it is for a plain port only. */}}
          {{- $ready = dict "grpc" (dict "port" (int .port)) }}
          {{- end }}
          startupProbe: {{- merge (dict "periodSeconds" 2 "timeoutSeconds" 3 "failureThreshold" 60) $ask | toYaml | nindent 12 }}
          livenessProbe: {{- merge (dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6) $ask | toYaml | nindent 12 }}
          readinessProbe: {{- merge (dict "periodSeconds" 5 "timeoutSeconds" 5) $ready | toYaml | nindent 12 }}
          lifecycle:
            # Time for the endpoints to forget the pod, before it stops to listen.
            preStop: {exec: {command: [/opt/interlock/bin/python3, -I, -c, "import time; time.sleep(5)"]}}
          volumeMounts:
            - {name: state, mountPath: /var/lib/interlock}
            {{- if $tls }}
            - {name: tls, mountPath: /etc/interlock/tls, readOnly: true}
            {{- end }}
            {{- with .mounts }}{{ . | nindent 12 }}{{ end }}
      volumes:
        - name: state
          emptyDir: {sizeLimit: 256Mi}
        {{- if $tls }}
        - name: tls
          secret: {secretName: {{ include "interlock.certificate" . }}, defaultMode: 0440}
        {{- end }}
        {{- with .volumes }}{{ . | nindent 8 }}{{ end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "interlock.labels" . | nindent 4 }}
spec:
  # A connection of the mesh ends after five minutes, so that callers spread over the pods.
  selector: {{- include "interlock.selector" . | nindent 4 }}
  ports:
    - {name: grpc, port: {{ .port }}, targetPort: grpc}
    {{- if eq .component "oversight" }}
    - {name: https, port: 7075, targetPort: https}
    {{- else }}
    - {name: metrics, port: 9464, targetPort: metrics}
    {{- end }}
{{- if gt $most 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "interlock.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "interlock.selector" . | nindent 6 }}
{{- end }}
{{- if $values.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels: {{- include "interlock.labels" . | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ $values.autoscaling.min }}
  maxReplicas: {{ $values.autoscaling.max }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ $values.autoscaling.cpu }}}}
  behavior:
    scaleDown: {stabilizationWindowSeconds: 300}
{{- end }}
{{- end }}
