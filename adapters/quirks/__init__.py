"""Functions for what a provider file cannot say, one file a provider."""
