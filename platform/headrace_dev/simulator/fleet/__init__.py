"""Simulated SGLang replicas: the scheduler and its cache without a model, in virtual or in scaled real time."""
