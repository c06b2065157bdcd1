"""The protobuf schema: ``commlens_hlo.proto`` and what tools/regenerate_schema.py makes of it."""
