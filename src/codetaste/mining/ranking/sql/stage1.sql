-- Stage 1 of the funnel (CodeTaste A.1). Reads "commits", the relation of all commits, and "star_table".
-- One result: the totals of every filter, repeated in each row, and the best commits; no commit is one row.
-- lower() and \s know more characters in one engine than in the other; patterns should not depend on that.
measured AS (
  SELECT
    commits.* EXCLUDE (stars),
    coalesce(star_table.stars, commits.stars) AS stars,
    lower(regexp_replace(
      regexp_replace(
        CASE
          WHEN number IS NULL
            THEN regexp_replace(regexp_replace(coalesce(message, ''), $merge_line, ''), $squash_list, '\1')
          ELSE concat(coalesce(title, ''), chr(10), chr(10), coalesce(body, ''))
        END,
        '^\s+', ''
      ),
      '\s+$', ''
    )) AS folded
  FROM commits
  LEFT JOIN star_table ON lower(commits.repository) = star_table.repository
),
sized AS (
  SELECT
    *,
    CASE
      WHEN coalesce(golden, '') = '' THEN 'incomplete'
      WHEN stars < $min_stars THEN 'stars'
      WHEN files < $min_files THEN 'files'
    END AS removed_by_size
  FROM measured
),
-- Patterns are applied only to what is left: a CASE evaluates a branch for the rows that take it.
counted AS (
  SELECT
    *,
    CASE WHEN removed_by_size IS NULL THEN array_length(regexp_extract_all(folded, $strong_plus)) END
      AS strong_plus,
    CASE WHEN removed_by_size IS NULL THEN array_length(regexp_extract_all(folded, $weak_plus)) END
      AS weak_plus,
    CASE WHEN removed_by_size IS NULL THEN array_length(regexp_extract_all(folded, $strong_minus)) END
      AS strong_minus,
    CASE WHEN removed_by_size IS NULL THEN array_length(regexp_extract_all(folded, $weak_minus)) END
      AS weak_minus
  FROM sized
),
judged AS (
  SELECT
    * EXCLUDE (folded, removed_by_size),
    CASE
      WHEN removed_by_size IS NOT NULL THEN removed_by_size
      WHEN strong_minus > 0 THEN 'strong_minus'
      WHEN strong_plus + weak_plus < 1 OR strong_plus + weak_plus < $min_ratio * weak_minus THEN 'ratio'
      ELSE 'passed'
    END AS verdict
  FROM counted
),
-- Without the texts of removed rows, so that both readers of this relation share a small one.
lean AS MATERIALIZED (
  SELECT
    * REPLACE (
      CASE WHEN verdict = 'passed' THEN message END AS message,
      CASE WHEN verdict = 'passed' THEN title END AS title,
      CASE WHEN verdict = 'passed' THEN body END AS body
    )
  FROM judged
),
unique_commits AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY golden ORDER BY stars DESC NULLS LAST, repository, number) AS copy
  FROM lean
  WHERE verdict = 'passed'
),
totals AS (
  SELECT
    1 AS one,
    count(*) AS total_commits,
    count_if(verdict = 'incomplete') AS total_incomplete,
    count_if(verdict = 'stars') AS total_stars,
    count_if(stars IS NULL AND verdict <> 'incomplete') AS total_stars_unknown,
    count_if(verdict = 'files') AS total_files,
    count_if(files IS NULL AND verdict NOT IN ('incomplete', 'stars')) AS total_files_unknown,
    count_if(verdict = 'strong_minus') AS total_strong_minus,
    count_if(verdict = 'ratio') AS total_ratio,
    count_if(verdict = 'passed') AS total_passed
  FROM lean
),
uniques AS (
  SELECT 1 AS one, count(*) AS total_unique FROM unique_commits WHERE copy = 1
),
best AS (
  SELECT 1 AS one, unique_commits.* EXCLUDE (copy, verdict)
  FROM unique_commits
  WHERE copy = 1
  ORDER BY
    strong_plus DESC, weak_plus DESC, stars DESC NULLS LAST, files DESC NULLS LAST, repository, golden
  LIMIT $keep
)
SELECT totals.* EXCLUDE (one), uniques.total_unique, best.* EXCLUDE (one)
FROM totals
JOIN uniques ON uniques.one = totals.one
LEFT JOIN best ON best.one = totals.one
ORDER BY
  strong_plus DESC, weak_plus DESC, stars DESC NULLS LAST, files DESC NULLS LAST, repository, golden
