"""``interlock check --cluster``: an installation, looked at from the API server of its cluster."""
