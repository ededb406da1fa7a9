-- What is quarantined in a theme that is moved is so under its new name.
UPDATE quarantines SET theme = %(new)s WHERE theme = %(old)s;
