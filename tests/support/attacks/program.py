"""The attacking program: it runs in a sandbox with Python's standard library alone.

Standard input is a JSON object: ``port``, ``token``, ``requests`` (the total), ``connections``, and lists
``first`` and ``then`` of shots, of which the second is repeated. A shot has ``path``, ``headers`` (pairs) and
``body``, in which ``@number@`` is replaced; ``compress`` sends the body in gzip, ``hang_up`` closes the
connection once the reply begins. Standard output is a JSON object with the number of responses by status,
and the refusals' messages.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException

plan = json.load(sys.stdin)
statuses: Counter[str] = Counter()
messages: dict[str, int] = {}
lock = threading.Lock()
sent = 0


def send(connection: HTTPConnection, shot: dict[str, object], number: int) -> None:
    """Send one request and read its response."""
    body = str(shot["body"]).replace("@number@", str(number)).encode("utf-8", "surrogatepass")
    data = gzip.compress(body, 1) if shot.get("compress") else body
    connection.putrequest("POST", str(shot["path"]), skip_accept_encoding=True)
    connection.putheader("x-api-key", plan["token"])
    headers = shot["headers"]
    assert isinstance(headers, list)
    for name, value in headers:
        connection.putheader(name, value)
    if not any(name == "content-length" for name, _ in headers):
        connection.putheader("content-length", str(len(data)))
    connection.endheaders(data)
    response = connection.getresponse()
    if shot.get("hang_up") and response.status == 200:
        connection.close()
        status, text = "hung up", ""
    else:
        status, text = str(response.status), response.read().decode("utf-8", "replace")
    with lock:
        statuses[status] += 1
        if status not in ("200", "hung up") and len(messages) < 50:
            messages[text[:500]] = messages.get(text[:500], 0) + 1


def run(shots: list[dict[str, object]], first: int, last: int, step: int) -> None:
    """Send every ``step``-th request from ``first`` to ``last`` on a connection."""
    global sent  # noqa: PLW0603 - counts the requests of all threads
    connection = HTTPConnection("127.0.0.1", plan["port"], timeout=60)
    for number in range(first, last, step):
        try:
            send(connection, shots[number % len(shots)], number)
        except (OSError, HTTPException) as error:
            connection.close()
            with lock:
                statuses[type(error).__name__] += 1
        with lock:
            sent += 1


run(plan["first"], 0, len(plan["first"]), 1)
count = plan["connections"]
threads = [
    threading.Thread(target=run, args=(plan["then"], len(plan["first"]) + n, plan["requests"], count))
    for n in range(count)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump({"sent": sent, "statuses": statuses, "messages": messages}, sys.stdout)
