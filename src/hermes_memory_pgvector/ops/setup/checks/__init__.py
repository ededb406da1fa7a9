"""The checks of `doctor`, one module per subject."""
