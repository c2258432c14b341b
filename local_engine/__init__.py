"""The bundled engine: models on disk, and one supervised child process a model."""
