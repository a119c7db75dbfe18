"""Plain rows for notebooks: one a trial, one a rule of a trial, one a job, with a documented schema."""
