{{/*
What Tutti does to the gangs that it serves: a part of the ClusterRole, or, where namespaces are named,
a Role in each of these. A test compares it with the calls that the code makes.
*/}}
{{- define "tutti.served" -}}
# What happened to a gang, for kubectl describe.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Phase, conditions and counters. The specs of gangs belong to the users: never written.
- apiGroups: [tutti.dev]
  resources: [podgroups/status]
  verbs: [patch]
{{- if ne .Values.settings.mode "shadow" }}
{{- if has "podgroups.scheduling.k8s.io" .Values.settings.gangSources }}
# The condition of Kubernetes' own PodGroups that a scheduler writes. Their specs are never written.
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
{{- end }}
# One pod is read when a binding was refused, or when no list shows one that is reserved: to learn
# whether it is bound all the same.
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
# How many failures the Job of such members still stands: an evicted pod counts as one.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
# Promises are made, signed again by each new leader, and deleted once they are kept.
- apiGroups: [tutti.dev]
  resources: [reservations]
  verbs: [create, patch, delete]
# The point of it all: a member gets its node.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
{{- if .Values.settings.handOver }}
# A pod that kube-scheduler binds is pinned to its node, and its gate is removed, in one patch.
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}
# Members of a gang that lost others and finds no room, where its PodGroup says onPartial: Release.
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- if .Values.settings.bindVolumes }}
# The node for which a waiting claim is provisioned, in an annotation; it is removed again if no volume
# was made and the gang is given back.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, patch]
{{- end }}
# The condition PodScheduled, by which people and cluster autoscalers see why a pod waits.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- if has "podgroups.scheduling.volcano.sh" .Values.settings.gangSources }}
# Phase, conditions and counters of Volcano's PodGroups, whose status is no resource of its own. Tutti
# sends a patch that has the status alone.
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [patch]
# What the pods of a vcjob will ask for: they are made once Tutti says that there is room.
- apiGroups: [batch.volcano.sh]
  resources: [jobs]
  verbs: [get]
{{- end }}
{{- if .Values.devices.enabled }}
# The devices of a claim and the pods that use it, before such a pod is bound; and its finalizer, which
# keeps the claim while it has devices. The specs of claims are never changed.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaims/status]
  verbs: [patch]
# The claim of a pod whose extended resources a DeviceClass backs. It belongs to the pod, and goes with it.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [create]
{{- end }}
{{- if .Values.spark.enabled }}
# What a driver of Spark says of its executors: one ConfigMap by its name, which its pod mounts.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
{{- end }}
{{- if or .Values.spark.enabled (has "yunikorn.apache.org/task-groups" .Values.settings.gangSources) }}
# The gang of an application of Spark or YuniKorn. It belongs to a pod, or to the controller of pods,
# and goes with it.
- apiGroups: [tutti.dev]
  resources: [podgroups]
  verbs: [create]
{{- end }}
{{- end }}
{{- end -}}
