"""Commands that count as test runs."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.activity.transcripts import command_activity

RUNS = r"""
pytest
cd x && FOO=1 timeout 5 pytest -q | tail -5
bash -lc 'cd x && pytest'
bash -c "bash -c 'bash -c \"go test ./...\"'"
sudo -u x env A=1 xvfb-run -a npm test
for i in 1 2 3; do cargo test; done
if ! go test ./...; then exit 1; fi
out=$(pytest 2>&1); echo "$out"
diff <(pytest) old
(cd x; pytest) & wait
time make test
eval "pytest -q"
find . -name 'test_*.py' -exec pytest {} \;
xargs -n1 pytest < list
poetry run pytest -x
uv run --with foo pytest
conda run -n env pytest
hatch run test
python -m pytest tests
python3 -m unittest discover
python -m coverage run -m pytest
coverage run --source=x -m pytest
python manage.py test app
python setup.py test
tox -e py38
nox -s tests
./gradlew :core:test
gradle build
mvn -q -DskipTests=false verify
./mvnw package
yarn jest foo
yarn workspace foo test
pnpm --filter x run test:unit
npm t
npm --prefix web run test
npx vitest run
node node_modules/.bin/mocha
node --test
nx run-many -t test
make -C build check
make test-unit
ctest --output-on-failure
bazel test //...
bundle exec rspec
vendor/bin/phpunit
php artisan test
dotnet test
cargo +nightly nextest run
go test -run TestX ./pkg/...
/scripts/run_tests
source /scripts/setup_shell.sh && /scripts/run_tests
./run_tests.sh
python scripts/ci/run-tests
tests/runtests.py admin
""".strip().splitlines()
RUNS_NONE = r"""
echo pytest
grep -rn pytest .
rg 'npm test'
git grep -n "make test"
pip install pytest
python -m pip install pytest
apt-get install -y phpunit
yarn add --dev jest
npm install jest
npm ci
# pytest
ls # pytest
echo "pytest && pytest"
git commit -m "go test"
which pytest
command -v pytest
man pytest
pytest --version
pytest --collect-only -q
cargo test --no-run
go test -c ./...
tox -l
make -n test
mvn -DskipTests package
gradle build -x test
make
make build
make build-tests
npm run build
go build ./...
go vet ./...
ls tests
cat run_tests
chmod +x run_tests
sed -n 1,5p test.sh
find . -name test
test -f x
[ -f test ]
/usr/bin/test -f x
python -c "import pytest; print(pytest)"
python -m compileall tests
docker pull x/test
ruff check .
echo "unterminated; pytest
""".strip().splitlines()
WORDS = st.sampled_from(["echo", "grep -rn", "cat", "printf %s", "git commit -m", "rg -l", "touch"])
PROGRAMS = [
    "timeout 60 {}",
    "timeout -k 5 60 {}",
    "sudo -E {}",
    "sudo -u me {}",
    "env A=b {}",
    "A=b {}",
    "time {}",
    "nice -n 5 {}",
    "stdbuf -oL {}",
    "xvfb-run -a {}",
]
"""Prefixes of a command."""
TEXTS = [
    "cd x && {}",
    "( {} )",
    "for i in 1 2; do {}; done",
    "if true; then {}; fi",
    "{} 2>&1 | tail -5",
    "{} > log 2>&1 || true",
]
"""Shell constructs around a command."""
WRAPPERS = st.sampled_from([*PROGRAMS, *TEXTS])


@pytest.mark.parametrize("text", RUNS)
def test_known_test_runner_counts_as_test_run(text: str) -> None:
    done = command_activity(text)
    assert (done.test_runs, done.unparsed) == (1, 0)


@pytest.mark.parametrize("text", RUNS_NONE)
def test_command_that_only_mentions_runner_runs_no_tests(text: str) -> None:
    assert not command_activity(text).test_runs


def test_here_document_runs_only_in_shell() -> None:
    assert not command_activity("cat > run.sh <<'EOF'\npytest\nEOF\n").test_runs
    assert not command_activity("python - <<'EOF'\nprint('pytest')\nEOF\n").test_runs
    assert command_activity("bash <<'EOF'\ncd x\npytest\nEOF\n").test_runs
    assert command_activity("cat <<EOF > log && pytest\nx\nEOF\n").test_runs


@given(WORDS, st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=30))
def test_runner_in_quoted_word_runs_nothing(program: str, noise: str) -> None:
    assert not command_activity(f"{program} {shlex.quote(f'{noise}; pytest; {noise}')}").test_runs


@given(st.lists(WRAPPERS, max_size=4))
def test_wrappers_change_nothing(wrappers: list[str]) -> None:
    runs, looks = "pytest -q", "grep -c pytest log"
    for number, wrapper in enumerate(wrappers):
        if wrapper in PROGRAMS and number:
            runs, looks = f"bash -c {shlex.quote(runs)}", f"bash -c {shlex.quote(looks)}"
        runs, looks = wrapper.format(runs), wrapper.format(looks)
    assert command_activity(runs) == Activity(commands=1, test_runs=1)
    assert command_activity(looks) == Activity(commands=1)
