-- The relation of commits from the tables "commits" and "licenses" of the GitHub Activity Data.
-- A commit stands there once for all repositories that have it: here it is a row for each of them.
SELECT
  name AS repository,
  activity_commits.commit AS golden,
  CAST(NULL AS VARCHAR) AS base,
  activity_commits.message AS message,
  CAST(NULL AS BIGINT) AS number,
  CAST(NULL AS VARCHAR) AS title,
  CAST(NULL AS VARCHAR) AS body,
  CAST(NULL AS BIGINT) AS stars,
  array_length(activity_commits.difference) AS files,
  CAST(NULL AS BIGINT) AS additions,
  CAST(NULL AS BIGINT) AS deletions,
  to_timestamp(activity_commits.committer.time_sec) AS date,
  CASE activity_licenses.license  -- SPDX identifiers in small letters
    WHEN 'apache-2.0' THEN 'Apache-2.0'
    WHEN 'artistic-2.0' THEN 'Artistic-2.0'
    WHEN 'bsd-2-clause' THEN 'BSD-2-Clause'
    WHEN 'bsd-3-clause' THEN 'BSD-3-Clause'
    WHEN 'unlicense' THEN 'Unlicense'
    ELSE upper(activity_licenses.license)
  END AS licence,
  'GitHub Activity Data' AS source
FROM activity_commits
CROSS JOIN UNNEST(activity_commits.repo_name) AS names(name)
LEFT JOIN activity_licenses ON activity_licenses.repo_name = name
