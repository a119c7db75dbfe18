"""A site as a folder or an archive, as it is or without what looks like a key."""
