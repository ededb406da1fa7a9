"""Setting up, looking after and taking out: `up`, `doctor`, `config`, `migrate`, `try`, `uninstall`."""
