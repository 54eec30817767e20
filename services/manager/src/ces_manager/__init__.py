"""CES manager: REST API, job life cycle, node liveness; the only writer of the database."""
