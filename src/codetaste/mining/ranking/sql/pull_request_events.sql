-- The relation of commits from a table of events, as GH Archive's year tables are: merged pull requests.
-- Trimmed events (from 2025-10-07 on) have no flag: a merge is the action "merged", not "closed".
SELECT
  coalesce(
    json_extract_string(payload, '$.pull_request.base.repo.full_name'),
    regexp_extract(repo.url, '([^/]+/[^/]+)$', 1)
  ) AS repository,
  json_extract_string(payload, '$.pull_request.merge_commit_sha') AS golden,
  CAST(NULL AS VARCHAR) AS base,
  CAST(NULL AS VARCHAR) AS message,
  TRY_CAST(json_extract_string(payload, '$.pull_request.number') AS BIGINT) AS number,
  json_extract_string(payload, '$.pull_request.title') AS title,
  json_extract_string(payload, '$.pull_request.body') AS body,
  TRY_CAST(
    coalesce(
      json_extract_string(payload, '$.pull_request.base.repo.stargazers_count'),
      json_extract_string(payload, '$.pull_request.base.repo.watchers')
    ) AS BIGINT
  ) AS stars,
  TRY_CAST(json_extract_string(payload, '$.pull_request.changed_files') AS BIGINT) AS files,
  TRY_CAST(json_extract_string(payload, '$.pull_request.additions') AS BIGINT) AS additions,
  TRY_CAST(json_extract_string(payload, '$.pull_request.deletions') AS BIGINT) AS deletions,
  coalesce(
    TRY_CAST(json_extract_string(payload, '$.pull_request.merged_at') AS TIMESTAMPTZ), created_at
  ) AS date,
  json_extract_string(payload, '$.pull_request.base.repo.license.spdx_id') AS licence,
  'GH Archive' AS source
FROM archive_events
WHERE
  type = 'PullRequestEvent'
  AND CASE
    WHEN json_extract_string(payload, '$.pull_request.merged') IS NOT NULL
      THEN json_extract_string(payload, '$.pull_request.merged') = 'true'
    ELSE json_extract_string(payload, '$.pull_request.merged_at') IS NOT NULL
      OR json_extract_string(payload, '$.action') = 'merged'
  END
