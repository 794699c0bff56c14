"""The admission webhook that gives pods a sidecar: a pure function from a pod to its patch, behind an HTTPS server."""
