"""Attempts at upstreams, and giving their answers on."""
