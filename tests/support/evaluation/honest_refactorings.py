"""Honest refactorings in several languages: trees before and after, and rules as benchmarks have them.

Each does what a person does beside the change itself: it moves code to new files, mentions the old names in
the change log, in comments and in messages, adds tests, and leaves a page that quoted the old code as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.evaluation.trees import Files, rule

Rules = list[dict[str, Any]]


@dataclass(frozen=True)
class Refactoring:
    """Files that stay, and those of R and of R∘X*, with rules that only the refactoring satisfies."""

    name: str
    unchanged: Files
    old: Files
    new: Files
    positive: Rules
    negative: Rules

    @property
    def before(self) -> Files:
        return {**self.unchanged, **self.old}

    @property
    def after(self) -> Files:
        return {**self.unchanged, **self.new}


def _rules(language: str, *patterns: str) -> Rules:
    return [
        rule(f"{language}-{number}", pattern, languages=[language]) for number, pattern in enumerate(patterns)
    ]


_CHANGES = "# Changes\n\n## 2.0\n\n- `{old}` is `{new}`; calls of the old name have to be changed.\n"

_JS_CLIENT = """\
const http = require('http')
const util = require('./util')

function fetchUser(id, done) {
  oldRequest({ host: 'localhost', path: '/users/' + id }, function (error, body) {
    if (error) return done(error)
    done(null, util.parse(body))
  })
}

module.exports = { fetchUser, agent: new http.Agent() }
"""

JAVASCRIPT = Refactoring(
    "JavaScript: callbacks become promises, in a module of its own",
    {
        "lib/util.js": "exports.parse = (text) => JSON.parse(text)\n",
        "index.js": "module.exports = require('./lib/client')\n",
    },
    {
        "lib/client.js": _JS_CLIENT,
        "docs/api.md": f"# API\n\n```js\n{_JS_CLIENT}```\n",
        "package.json": '{"name": "client", "main": "index.js"}\n',
    },
    {
        "lib/client.js": """\
'use strict'

const { Agent } = require('http')
const { request } = require('./request')
const util = require('./util')

// fetchUser took a callback for oldRequest before 2.0.
async function fetchUser(id) {
  const body = await request({ host: 'localhost', path: `/users/${id}` })
  if (!body) throw new Error('oldRequest gave an empty body, and so does request')
  return util.parse(body)
}

module.exports = { fetchUser, agent: new Agent() }
""",
        "lib/request.js": """\
'use strict'

const { promisify } = require('util')

exports.request = async (options) => {
  switch (options.method) {
    case 'HEAD':
      return null
    default:
      return sendRequest(options)
  }
}

const sendRequest = promisify(require('http').get)
""",
        "docs/api.md": f"# API\n\n```js\n{_JS_CLIENT}```\n\nSince 2.0 it returns a promise.\n",
        "package.json": '{"name": "client", "main": "index.js", "version": "2.0.0"}\n',
        "CHANGES.md": _CHANGES.format(old="oldRequest(options, done)", new="await request(options)"),
        "test/client.test.js": "test('fetches', () => require('../lib/client').fetchUser(1))\n",
    },
    _rules("javascript", "await request(...)", "return sendRequest(...)"),
    _rules("javascript", "oldRequest(...)", "function (error, body) { ... }"),
)

_TS_STORE = """\
import { Store } from './store'

export class Cart {
  store: Store = Store.getInstance()

  add(item: string): void {
    Store.getInstance().put('cart', item)
  }
}
"""

TYPESCRIPT = Refactoring(
    "TypeScript: a singleton becomes a parameter, a folder gets an index",
    {},
    {
        "src/cart.ts": _TS_STORE,
        "src/store.ts": "export class Store {\n  static getInstance(): Store { return new Store() }\n}\n",
        "src/app.tsx": "import { Cart } from './cart'\n\nexport const App = () => <p>{new Cart().text}</p>\n",
    },
    {
        "src/cart/index.ts": "export { Cart } from './cart'\n",
        "src/cart/cart.ts": """\
import type { Store } from '../store'

/** Was made around Store.getInstance(), which no test could replace. */
export class Cart {
  constructor(private readonly store: Store) {}

  add(item: string): void {
    if (!item) return
    this.store.put('cart', item)
  }
}
""",
        "src/store.ts": "export interface Store {\n  put(key: string, value: string): void\n}\n",
        "src/memory-store.ts": """\
import type { Store } from './store'

export const createMemoryStore = (): Store => ({
  put(key, value) {
    localStorage.setItem(key, value)
  },
})
""",
        "src/app.tsx": """\
import { Cart } from './cart'
import { createMemoryStore } from './memory-store'

export const App = () => <div>{String(new Cart(createMemoryStore()))}</div>
""",
        "src/cart.stories.ts": "export default { title: 'Cart' }\nlocalStorage.setItem('story', 'one')\n",
    },
    _rules("typescript", "localStorage.setItem(...)", "this.store.put(...)"),
    _rules("typescript", "Store.getInstance()"),
)

_GO_LOG = """\
package server

import "example.org/oldlog"

// Start begins to listen at an address.
func (s *Server) Start(address string) error {
\toldlog.Printf("listening on %s with %d workers", address, s.workers)
\treturn s.listen(address)
}
"""

GO = Refactoring(
    "Go: a logger becomes structured, and errors are wrapped",
    {
        "server/server.go": "package server\n\ntype Server struct{ workers int }\n",
        "server/listen.go": "package server\n\nfunc (s *Server) listen(string) error { return nil }\n",
        "main.go": "package main\n\nfunc main() { new(server.Server).Start(address) }\n",
    },
    {
        "server/start.go": _GO_LOG,
        "README.md": "# Server\n\nIt logs with oldlog.Printf.\n",
    },
    {
        "server/start.go": """\
package server

import (
\t"fmt"

\t"example.org/slog"
)

// Start begins to listen at an address. It used oldlog.Printf until 2.0.
func (s *Server) Start(address string) error {
\tslog.Info("listening", "address", address, "workers", s.workers)
\tif err := s.listen(address); err != nil {
\t\treturn fmt.Errorf("listen: %w", err)
\t}
\treturn s.report()
}
""",
        "server/report.go": """\
package server

import "example.org/slog"

func (s *Server) report() error {
\tswitch {
\tcase s.workers == 0:
\t\treturn nil
\tdefault:
\t\tslog.Info("ready")
\t}
\treturn nil
}
""",
        "server/report_test.go": "package server\n\nfunc TestReport(t *testing.T) { new(Server).report() }\n",
        "README.md": "# Server\n\nIt logs with slog; `oldlog.Printf(format, arguments)` is gone.\n",
    },
    _rules("go", 'slog.Info("ready", ...)', 'fmt.Errorf("listen: %w", ...)'),
    _rules("go", "oldlog.Printf(...)"),
)

_JAVA_CLIENT = """\
package org.example;

import org.apache.OldClient;

class Client {
    String fetch(String path) {
        OldClient client = new OldClient("localhost", 30);
        return client.get(path);
    }
}
"""

JAVA = Refactoring(
    "Java: a constructor becomes a builder, with a new service",
    {
        "src/main/java/org/example/Main.java": "class Main {\n    Client client = new Client();\n}\n",
    },
    {
        "src/main/java/org/example/Client.java": _JAVA_CLIENT,
    },
    {
        "src/main/java/org/example/Client.java": """\
package org.example;

/** Made with {@code new OldClient("localhost", 30)} before. */
class Client {
    private final Clients clients = new Clients();

    String fetch(String path) {
        if (path == null) {
            throw new IllegalArgumentException("OldClient took null: a path is needed");
        }
        return clients.open().get(path);
    }
}
""",
        "src/main/java/org/example/Clients.java": """\
package org.example;

final class Clients {
    NewClient open() {
        return NewClient.builder().host("localhost").timeout(30).build();
    }
}
""",
        "src/main/java/org/example/ClientPlugin.java": """\
package org.example;

public class ClientPlugin implements Plugin {
    @Override
    public void load(Registry registry) {
        registry.register(NewClient.builder().build());
    }
}
""",
        "src/main/resources/META-INF/services/org.example.Plugin": "org.example.ClientPlugin\n",
        "src/test/java/org/example/ClientTest.java": "class ClientTest {\n    Client client;\n}\n",
    },
    _rules("java", "$R.register(...)", 'NewClient.builder().host("localhost").timeout(30).build()'),
    _rules("java", "new OldClient(...)"),
)

KOTLIN = Refactoring(
    "Kotlin: a helper becomes extension functions in a file of its own",
    {
        "src/Main.kt": "package app\n\nfun main() = println(show(3))\n",
    },
    {
        "src/Format.kt": 'package app\n\nfun show(price: Int) = OldFormat.format(price, "EUR", 2)\n',
    },
    {
        "src/Format.kt": 'package app\n\n// No OldFormat\nfun show(price: Int) = price.asMoney("EUR")\n',
        "src/MoneyExtensions.kt": """\
package app

internal inline fun <reified T> T.asMoney(currency: String): String {
    return NewFormat.of(currency).format(this)
}
""",
    },
    _rules("kotlin", "NewFormat.of(...)"),
    _rules("kotlin", "OldFormat.format(...)"),
)

_RUST_PARSE = """\
use std::fs;

pub fn read(path: &str) -> Config {
    let text = fs::read_to_string(path).unwrap();
    old_parse(&text, true).unwrap()
}
"""

RUST = Refactoring(
    "Rust: panics become errors, in a new module",
    {},
    {
        "Cargo.toml": '[package]\nname = "config"\n',
        "src/lib.rs": "mod config;\n\npub use config::read;\n",
        "src/config.rs": _RUST_PARSE,
    },
    {
        "Cargo.toml": '[package]\nname = "config"\nversion = "2.0.0"\n',
        "src/lib.rs": "mod config;\nmod error;\nmod parse;\n\npub use config::read;\n",
        "src/config.rs": """\
use std::fs;

use crate::error::Error;

/// Reads a config; `old_parse(&text, true).unwrap()` panicked.
pub fn read(path: &str) -> Result<Config, Error> {
    let text = fs::read_to_string(path).map_err(Error::Io)?;
    if text.is_empty() {
        return Err(Error::Empty);
    }
    crate::parse::parse(&text)
}
""",
        "src/error.rs": "pub enum Error {\n    Io(std::io::Error),\n    Empty,\n}\n",
        "src/parse.rs": """\
use crate::error::Error;

pub fn parse(text: &str) -> Result<Config, Error> {
    match text.len() {
        0 => return Err(Error::Empty),
        _ => new_parse(text),
    }
}
""",
    },
    _rules("rust", "new_parse(...)"),
    _rules("rust", "old_parse(...)", "$X.unwrap()"),
)

_RUBY_MAIL = """\
class Mailer
  def deliver(user)
    OldMail.send_now(user.address, subject: "Hello", body: body_for(user))
  end
end
"""

RUBY = Refactoring(
    "Ruby: a class becomes a service that the gem loads by its name",
    {
        "lib/shop.rb": 'require "zeitwerk"\n\nZeitwerk::Loader.for_gem.setup\n',
    },
    {
        "lib/shop/mailer.rb": _RUBY_MAIL,
        "spec/mailer_spec.rb": "describe Mailer do\nend\n",
    },
    {
        "lib/shop/mailer.rb": """\
class Mailer
  # OldMail.send_now blocked until the mail was sent.
  def deliver(user)
    return if user.nil?
    raise ArgumentError, "no address" unless user.address

    MailQueue.new(user).push
  end
end
""",
        "lib/shop/mail_queue.rb": """\
class MailQueue < Struct.new(:user)
  def push
    NewMail.enqueue(user.address)
  end
end
""",
        "spec/mailer_spec.rb": "describe Mailer do\n  it { NewMail.clear }\nend\n",
        "CHANGELOG.md": _CHANGES.format(old="OldMail.send_now", new="NewMail.enqueue"),
    },
    _rules("ruby", "NewMail.enqueue(...)", "MailQueue.new(...)"),
    _rules("ruby", "OldMail.send_now(...)"),
)

REFACTORINGS = (JAVASCRIPT, TYPESCRIPT, GO, JAVA, KOTLIN, RUST, RUBY)
