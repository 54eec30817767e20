"""The experiments behind docs/benchmarks, each a command under ``ces bench``. No service installs this package."""
