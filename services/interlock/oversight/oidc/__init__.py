"""Sign-in by OpenID Connect: the provider, its ID tokens, who a person is, and the sign-ins that are under way (docs/console.md)."""
