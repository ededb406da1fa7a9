"""What is measured, one module per question."""
