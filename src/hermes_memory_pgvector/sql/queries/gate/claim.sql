-- Which of these themes may the login of this session not write to? What is nobody's becomes its own, if it may create.
SELECT hermes_claim_themes(%(themes)s::text[]);
