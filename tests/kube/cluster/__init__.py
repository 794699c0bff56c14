"""The real control plane: etcd, API server and controller manager, with certificates of their own."""
