"""From a workload to GPUs and a price: the arithmetic of serving, pure functions of numbers, no Django and no I/O
but the bundled cards. README.md beside this file explains the model, its limits and how it compares with published
measurements. Units everywhere: bytes, seconds, tokens, requests a second, FLOP (a multiply-add is 2).
"""
