"""Shapes of calls: what a single request to the target cannot do, done by several, or by another one."""
