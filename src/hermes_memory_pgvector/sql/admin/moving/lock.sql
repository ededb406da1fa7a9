-- waits for what is being written, and holds back what comes next until the transaction ends; who reads goes on reading
LOCK TABLE {tables} IN SHARE MODE
