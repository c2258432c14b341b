"""Configurations of other gateways, turned into ours."""
