// The MPI operator as its module has it. Its own main program cannot move the port of its health
// check from 8080, which only one process of a machine can have.
package main

import (
	"flag"
	"log"
	_ "unsafe"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app"
	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
)

//go:linkname healthCheckPort github.com/kubeflow/mpi-operator/cmd/mpi-operator/app.healthCheckPort
var healthCheckPort int

func main() {
	settings := options.NewServerOption()
	settings.AddFlags(flag.CommandLine)
	flag.IntVar(&healthCheckPort, "health-check-port", healthCheckPort, "port of the health check")
	flag.Parse()
	log.Fatal(app.Run(settings))
}
