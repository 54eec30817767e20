"""The real services under load from simulated agents: throughput and latency, and a long queue with an audit."""
