"""Takes a changed configuration into service: built beside the running one, swapped in at once, kept out when wrong."""
