"""The tenants' web portal: server-rendered pages, each under one rule of access and in one tenant's transaction."""
