"""`manage.py ledger check`: whether the books agree with each other. One file a check; registry.py lists them.

Each check states two ways to the same figure and compares them in one statement or at one moment, so that it may run
beside the drain. Nothing is changed or mended here.
"""
