"""Which models there are, with limits, prices and dates: by our own files, then by a dated snapshot of others'."""
