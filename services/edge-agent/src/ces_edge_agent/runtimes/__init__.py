"""Runtimes: what starts, watches and stops workers. Imports nothing: the shim starts through here."""
