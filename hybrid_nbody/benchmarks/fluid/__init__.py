"""What the fluid model reaches, and the steps that led to it."""
