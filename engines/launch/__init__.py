"""How an engine server is started on this machine: each kind is a module to run, `python -m engines.launch.<kind>`."""
