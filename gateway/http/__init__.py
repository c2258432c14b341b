"""Everything that FastAPI serves; the only folder that imports it."""
