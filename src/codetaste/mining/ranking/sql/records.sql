-- The relation of commits from files of records, which hour files and clones are read into.
SELECT * FROM records
