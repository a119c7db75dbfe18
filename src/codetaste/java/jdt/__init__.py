"""Eclipse JDT without a build: what surrounds a method of a source tree, and the methods of Java texts."""
