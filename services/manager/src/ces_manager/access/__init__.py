"""Who may ask for what: access tokens, identities, and what they allow."""
