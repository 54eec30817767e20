"""Runtimes: what starts, watches and stops workers. Kept empty, since the shim's start-up passes through here."""
