// The controller of Karpenter's dra-kwok-driver. Its own main program always listens on the ports
// 8082 and 8083, which only one process of a machine can have.
package main

import (
	"context"
	"flag"
	"log"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/karpenter/dra-kwok-driver/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/dra-kwok-driver/pkg/controllers"
)

func main() {
	// controller-runtime adds --kubeconfig.
	probes := flag.String("health-probe-bind-address", "", "address of the health check")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	check(v1alpha1.AddToScheme(clientgoscheme.Scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 clientgoscheme.Scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
	})
	check(err)
	check(manager.AddHealthzCheck("healthz", healthz.Ping))
	slices := controllers.NewResourceSliceController(manager.GetClient())
	check(slices.Register(context.Background(), manager))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
