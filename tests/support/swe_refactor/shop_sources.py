"""The files of a small Java project that has something for each of the six types of refactorings.

Two nested classes and a method of a third have names that occur twice; one test has always failed.
"""

from __future__ import annotations

from support.swe_refactor.tested_project import FILES

_MAIN, _TESTS = "src/main/java/org/example", "src/test/java/org/example"
BASKET, LABELS, PAGES, PRICES, RATES, REPORT, SHELVES, TILL = (
    f"{_MAIN}/{name}.java"
    for name in ("Basket", "Labels", "Pages", "Prices", "Rates", "Report", "Shelves", "Till")
)
BROKEN = "templates/Broken.java"
"""No Java, and in no source set of the build."""

_BASKET = """\
package org.example;

public class Basket {
    private final int[] prices;

    public Basket(int... prices) {
        this.prices = prices;
    }

    public int toPay() {
        int net = 0;
        for (int price : prices) {
            net += price;
        }
        return roundUp(net + tax(net));
    }

    static int tax(int net) {
        int rate = 10;
        if (net > 1000) {
            rate = 20;
        }
        return Math.max(net * rate / 100, 1);
    }

    static int roundUp(int price) {
        int rest = price % 10;
        if (rest == 0) {
            return price;
        }
        return price - rest + 10;
    }

    public String describe(String name) {
        String title = name.trim();
        StringBuilder line = new StringBuilder();
        line.append(title.toUpperCase());
        line.append(": ");
        line.append(prices.length);
        return line.toString();
    }

    public int cheapest() {
        int found = Prices.highest();
        for (int price : prices) {
            found = Math.min(found, price);
        }
        return found;
    }
}
"""
_RATES = """\
package org.example;

final class Rates {
    static final int FACTOR = 2;

    private Rates() {
    }
}
"""
_LABELS = """\
package org.example;

final class Labels {
    private Labels() {
    }
}
"""
_PRICES = """\
package org.example;

final class Prices {
    private Prices() {
    }

    static int highest() {
        int digits = Integer.toString(Rates.FACTOR).length();
        int found = (int) Math.pow(10, 3 + digits);
        System.setProperty("highest", String.valueOf(found));
        return found;
    }
}
"""
_SHELVES = """\
package org.example;

public class Shelves {
    public static class Left {
        public static class Item {
            private final int width;

            public Item(int width) {
                this.width = width;
            }

            public int area(int height) {
                return square(height);
            }

            private int square(int height) {
                int area = width * height;
                System.setProperty("area", String.valueOf(area));
                return area;
            }
        }
    }

    public static class Right {
        public static class Item {
            private final int width;

            public Item(int width) {
                this.width = width;
            }

            public int area(int height) {
                return square(height);
            }

            private int square(int height) {
                int area = width * height;
                System.setProperty("area", String.valueOf(area));
                return area;
            }
        }
    }
}
"""
_TILL = """\
package org.example;

public class Till {
    public int change(int given, int price) {
        int rest = given - price;
        int coins = 0;
        while (rest > 0) {
            rest -= Math.min(rest, 5);
            coins++;
        }
        return coins * Rates.FACTOR;
    }

    public int fee(int price) {
        int fee = price / 50;
        if (fee < 1) {
            fee = 1;
        }
        return fee + Rates.FACTOR;
    }
}
"""
_REPORT = """\
package org.example;

public class Report {
    public String line(int number, String text) {
        String mark = number % 2 == 0 ? "even" : "odd";
        String start = number + " " + mark;
        return start + ": " + text;
    }

    static String page(int number) {
        StringBuilder page = new StringBuilder();
        page.append("page ");
        page.append(number);
        return page.toString();
    }

    public String unused(int number) {
        String name = page(number);
        System.setProperty("page", name);
        return name + "!";
    }
}
"""
_BASKET_TEST = """\
package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.Test;

class BasketTest {
    @Test void paysFullTens() {
        assertEquals(120, new Basket(30, 75).toPay());
    }

    @Test void paysNoMoreThanFullTens() {
        assertEquals(110, new Basket(100).toPay());
    }

    @Test void hasTitle() {
        assertEquals("FRUIT: 2", new Basket(1, 2).describe(" fruit "));
    }

    @Test void knowsTheCheapest() {
        assertEquals(1, new Basket(1, 2).cheapest());
    }

    @Test void knowsItsShelf() {
        assertEquals(6, new Shelves.Right.Item(2).area(3));
    }
}
"""
_TILL_TEST = """\
package org.example;

import static org.junit.Assert.assertEquals;
import org.junit.Test;

public class TillTest {
    @Test public void givesChange() {
        assertEquals(4, new Till().change(10, 2));
    }

    @Test public void takesFee() {
        assertEquals(3, new Till().fee(10));
    }

    @Test public void writesLines() {
        assertEquals("1 odd: a", new Report().line(1, "a"));
    }

    @Test public void hasAlwaysFailed() {
        assertEquals(1, new Till().fee(0));
    }
}
"""
PROJECT = {
    **FILES,
    BASKET: _BASKET,
    RATES: _RATES,
    LABELS: _LABELS,
    PRICES: _PRICES,
    SHELVES: _SHELVES,
    TILL: _TILL,
    REPORT: _REPORT,
    BROKEN: "class Broken { int half( {\n",
    f"{_TESTS}/BasketTest.java": _BASKET_TEST,
    f"{_TESTS}/TillTest.java": _TILL_TEST,
}
