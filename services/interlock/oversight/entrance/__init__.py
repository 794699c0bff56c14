"""How people come in and go: by key, by the operator's link, by an OpenID provider, and out again."""
