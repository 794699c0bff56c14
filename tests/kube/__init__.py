"""The chart and the injector on a real API server, whose pods run as processes of this machine (``make kube``)."""
