"""Figures: two hosts in network namespaces, frozen baseline programs, and a judge that believes only the far end's kernel stamps.

Needs nothing but Python itself, so that `make timing` runs before any package is installed.
"""
