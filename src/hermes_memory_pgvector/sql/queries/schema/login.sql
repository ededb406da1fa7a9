-- What was this login granted, if it was granted single themes?
SELECT login, may_write FROM login_grants WHERE login = session_user;
