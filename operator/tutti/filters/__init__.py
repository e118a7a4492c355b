"""The rules of kube-scheduler's filters: for a pod and a node, and for pods in one domain."""
