"""`python -m hermes_memory_pgvector.cli …` is `hermes-pgvector …`."""

import sys

from hermes_memory_pgvector.cli import main

sys.exit(main())
