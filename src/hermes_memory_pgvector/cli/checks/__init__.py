"""What `doctor` looks at, one module per part of the house."""
