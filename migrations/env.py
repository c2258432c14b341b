"""What Alembic runs. The connection comes from `gateway.storage.schema`; use `gateway db upgrade`, not `alembic`."""

from alembic import context

from gateway.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
