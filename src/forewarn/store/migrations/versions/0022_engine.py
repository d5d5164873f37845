"""The engine: what it writes often, or must find again after a crash, has a place of its own."""

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Change one thing after another; each is a function below."""
