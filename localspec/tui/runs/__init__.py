"""What the Runs screen shows, as values. Nothing here draws."""
