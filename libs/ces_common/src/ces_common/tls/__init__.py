"""TLS: whom a client trusts, and the certificates that a cluster makes for its servers."""
