"""A small Maven project with tests of JUnit 4 and 5, and its history as git commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

from codetaste.java.build.coverage import CoverageTarget
from support.source.repositories import ENVIRONMENT

SHOP = "src/main/java/org/example/Shop.java"
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>shop</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
    </dependency>
    <dependency>
      <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version>
      <scope>test</scope>
    </dependency>
    <dependency>
      <groupId>org.junit.vintage</groupId><artifactId>junit-vintage-engine</artifactId><version>5.10.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.11.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
  </plugins></build>
</project>
"""
BEFORE = """\
package org.example;

import java.util.List;

public class Shop {
    public static class Till {
        public int total(int[] prices) {
            return prices.length;
        }
    }

    /** Overloads: only that of arrays is called, by an heir. */
    public int total(int[] prices) {
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum;
    }

    public <T extends Number> int total(List<T> prices) {
        int sum = 0;
        for (T price : prices) {
            sum += price.intValue();
        }
        return sum;
    }

    public String name() {
        Runnable greeting = () -> System.getProperty("none");
        greeting.run();
        return "shop";
    }
}
"""
AFTER = BEFORE.replace(
    """\
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum;
    }

    public <T""",
    """\
        return sum(prices);
    }

    private int sum(int[] prices) {
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum;
    }

    public <T""",
)
HEIR = "package org.example;\n\npublic class CornerShop extends Shop {\n}\n"
TEST = "src/test/java/org/example/ShopTest.java"
JUNIT_4 = """\
package org.example;

import static org.junit.Assert.assertEquals;
import org.junit.Test;

public class ShopTest {
    @Test public void adds() {
        assertEquals(3, new CornerShop().total(new int[] {1, 2}));
    }
}
"""
JUNIT_5 = """\
package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.Test;

class NameTest {
    @Test void isNamed() {
        assertEquals("shop", new Shop().name());
    }
}
"""
FILES = {
    "pom.xml": POM,
    ".mvn/jvm.config": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n",  # half of Maven's processor time
    SHOP: BEFORE,
    "src/main/java/org/example/CornerShop.java": HEIR,
    TEST: JUNIT_4,
    "src/test/java/org/example/NameTest.java": JUNIT_5,
}


class History:
    """A repository in ``folder``; each commit has the files of the first one, with changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet")
        self.first = self.commit({})

    def commit(self, changes: dict[str, str | None]) -> str:
        """Commit the first files with ``changes``, where None removes a file; return the hash."""
        self._git("rm", "--quiet", "-r", "--ignore-unmatch", ".")
        for name, content in {**FILES, **changes}.items():
            if content is not None:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", "a commit")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout


def method(content: str, signature: str, class_name: str = "org.example.Shop") -> CoverageTarget:
    """Return the method whose first line has ``signature``, of a file with ``content``; the last such one."""
    lines = content.splitlines()
    start = [at for at, line in enumerate(lines) if signature in line][-1]
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = next(at for at in range(start, len(lines)) if lines[at] == " " * indent + "}")
    name = signature.partition("(")[0].split()[-1]
    return CoverageTarget(SHOP, class_name, name, start + 1, end + 1)
