// Not built: the CRD of the Spark operator is read from this module.
module tutti.dev/sparkjob/crd

go 1.25.0

require github.com/kubeflow/spark-operator/v2 v2.4.0
