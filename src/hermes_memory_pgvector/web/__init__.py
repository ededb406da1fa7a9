"""The memory page: what a browser asks → JSON, for the host's dashboard and for `hermes-pgvector ui`.

In: a home and the parameters of a request. Out: plain documents, or a sentence with a status. The same services answer
as behind the commands; nothing here speaks SQL, and no answer carries a connection string, a password or a key.
"""
