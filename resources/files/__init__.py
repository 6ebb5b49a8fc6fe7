"""Files that several processes share: locks, files replaced as a whole, SQLite databases, and private folders."""
