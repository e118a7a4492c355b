"""The rules of kube-scheduler's filters for a pod and a node, or for pods in one domain."""
