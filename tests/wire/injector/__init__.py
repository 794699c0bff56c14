"""The injector over HTTPS."""
