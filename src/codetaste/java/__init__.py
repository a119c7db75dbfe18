"""What work on Java code needs: JDKs, pinned jars, and Java programs that answer requests."""
