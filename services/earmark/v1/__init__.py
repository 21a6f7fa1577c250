"""Generated from protos/earmark/v1 by protos/generate.sh. Never edited."""
