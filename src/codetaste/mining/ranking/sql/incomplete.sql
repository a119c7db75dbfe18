-- Records without a hash, which a source could not tell; without those of repositories known to
-- have too few stars.
incomplete AS (
  SELECT
    commits.* EXCLUDE (stars),
    coalesce(star_table.stars, commits.stars) AS stars,
    row_number() OVER (PARTITION BY lower(commits.repository), number ORDER BY date) AS copy
  FROM commits
  LEFT JOIN star_table ON lower(commits.repository) = star_table.repository
  WHERE coalesce(golden, '') = ''
)
SELECT * EXCLUDE (copy)
FROM incomplete
WHERE copy = 1 AND (stars IS NULL OR stars >= $min_stars)
ORDER BY stars DESC NULLS LAST, repository, number
